//! Word that something is under way, for what takes longer than a second.

use super::say;
use std::future::Future;
use std::io::IsTerminal as _;
use std::time::Duration;

/// What is over by then needs no word.
const SILENCE: Duration = Duration::from_secs(1);
const FRAME: Duration = Duration::from_millis(200);

/// A line of stderr that is written over and over, if stderr can do that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    on_terminal: bool,
}

impl Line {
    /// Of a whole line; on a narrower terminal each drawing would go on a line of its own.
    pub(crate) const COLUMNS: usize = 79;

    pub(crate) fn new() -> Self {
        let can_go_back = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        Line { on_terminal: std::io::stderr().is_terminal() && can_go_back }
    }

    /// Whether anything is drawn.
    pub(crate) fn is_drawn(self) -> bool {
        self.on_terminal
    }

    pub(crate) fn draw(self, text: &str) {
        if self.on_terminal {
            let columns = Self::COLUMNS;
            say(&format!("\r{text:<columns$.columns$}"));
        }
    }

    /// Leaves an empty line to go on with.
    pub(crate) fn clear(self) {
        if self.on_terminal {
            say(&format!("\r{:1$}\r", "", Self::COLUMNS));
        }
    }
}

/// Waits for work, and says what it is and for how long it has been under way: on a terminal all the time, elsewhere once.
pub(crate) async fn patiently<T>(doing: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(SILENCE, &mut work).await {
        return done;
    }
    let line = Line::new();
    if !line.is_drawn() {
        say(&format!("{doing}…\n"));
        return work.await;
    }
    let mut frames = tokio::time::interval(FRAME);
    let began = tokio::time::Instant::now() - SILENCE;
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                line.clear();
                return done;
            }
            _ = frames.tick() => line.draw(&format!("{doing}… {} s", began.elapsed().as_secs())),
        }
    }
}
