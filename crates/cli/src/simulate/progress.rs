//! How far a simulation is: a bar on a terminal, a line for each part elsewhere.

use crate::output::{Line, say};
use mainstay_testkit::simulation::{Part, Progress};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the bar is drawn, at most.
const FRAME: Duration = Duration::from_millis(100);
/// Columns of the bar itself.
const BAR_COLUMNS: usize = 16;

/// See the [module](self). Told by many threads at once.
pub(super) struct Bar {
    system: String,
    line: Line,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    part: Option<Part>,
    /// What came of the part, and of those before it.
    now: Count,
    before: Count,
    drawn: Option<Instant>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    done: usize,
    failed: usize,
}

impl Bar {
    /// Nothing is drawn before there is something to tell.
    pub(super) fn new(system: &str) -> Self {
        Self { system: system.to_owned(), line: Line::new(), began: Instant::now(), state: Mutex::default() }
    }

    /// Draws how far it is, unless it did a moment ago.
    pub(super) fn tell(&self, progress: &Progress) {
        let mut state = self.state();
        if state.part != Some(progress.part) {
            let Count { done, failed } = state.now;
            state.before.done += done;
            state.before.failed += failed;
            (state.part, state.now, state.drawn) = (Some(progress.part), Count::default(), None);
            if !self.line.is_drawn() {
                let worlds = super::render::worlds(progress.total);
                say(&format!("{}: {}, {worlds}\n", self.system, progress.part));
            }
        }
        // Threads overtake each other on their way here.
        state.now.done = state.now.done.max(progress.done);
        state.now.failed = state.now.failed.max(progress.failed);
        if self.line.is_drawn() && state.drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
            state.drawn = Some(Instant::now());
            let progress = Progress { done: state.now.done, ..*progress };
            let (worlds, failed) =
                (state.before.done + state.now.done, state.before.failed + state.now.failed);
            self.line.draw(&render(&progress, worlds, failed, self.began.elapsed()));
        }
    }

    /// Leaves an empty line to go on with.
    pub(super) fn clear(&self) {
        if self.state().part.is_some() {
            self.line.clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What a thread that panicked has left behind is as true as before.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One line: part, bar, how many of how many, worlds per second and failures of all parts so far.
fn render(progress: &Progress, worlds: usize, failed: usize, took: Duration) -> String {
    let Progress { part, done, total, .. } = progress;
    let full = BAR_COLUMNS * done / (*total).max(1);
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR_COLUMNS.saturating_sub(full)));
    let speed = super::render::per_second(worlds, took);
    format!("{part:<14} [{bar}] {done}/{total}  {speed} worlds/s  {failed} failed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use mainstay_testkit::simulation::Family;

    fn check(done: usize, total: usize, failed: usize, expected: &Expect) {
        let progress = Progress { part: Part::Each(Family::CrashPoints), done, total, failed };
        expected.assert_eq(&render(&progress, 2 * done, failed, Duration::from_secs(4)));
    }

    #[test]
    fn the_bar_fills_as_worlds_end() {
        check(0, 40, 0, &expect!["crash points   [................] 0/40  0 worlds/s  0 failed"]);
        check(10, 40, 2, &expect!["crash points   [####............] 10/40  5 worlds/s  2 failed"]);
        check(40, 40, 2, &expect!["crash points   [################] 40/40  20 worlds/s  2 failed"]);
        check(0, 0, 0, &expect!["crash points   [................] 0/0  0 worlds/s  0 failed"]);
    }

    #[test]
    fn a_long_line_stays_within_its_columns() {
        let progress = Progress { part: Part::Combinations, done: 999_999, total: 1_000_000, failed: 9999 };
        let line = render(&progress, 999_999, 9999, Duration::from_millis(1500));
        assert!(line.len() <= Line::COLUMNS, "{line}");
    }
}
