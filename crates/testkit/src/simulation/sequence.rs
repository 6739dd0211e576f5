//! One thing after the other: the order in which requests are carried out and events delivered.
//!
//! All programs of a world run on one thread, but which of them tokio polls first, and which of a `HashMap`'s entries
//! somebody finds first, is left to chance. So nothing reaches the server at once. Everything waits until all programs
//! have come to rest; then one request or event goes through, and all come to rest again. Which one is the world's
//! choice: the one that has waited longest (and by its text among equals), or any, as the seed has it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};

use super::life::Life;
use super::lock;

/// How long each request and each event takes. Timers fire only when nobody has anything to do, so waiting for one is
/// waiting for all to come to rest.
const LATENCY: Duration = Duration::from_millis(1);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Sequence {
    waiting: Mutex<Vec<Ticket>>,
    arrived: Notify,
    /// None: first come, first served.
    choice: Mutex<Option<fastrand::Rng>>,
}

#[derive(Debug)]
struct Ticket {
    since: Instant,
    text: String,
    life: Arc<Life>,
    grant: oneshot::Sender<()>,
}

impl Sequence {
    /// With seed 0 in the order of arrival.
    pub(super) fn new(seed: u64) -> Self {
        let choice = (seed != 0).then(|| fastrand::Rng::with_seed(seed));
        Self { waiting: Mutex::default(), arrived: Notify::new(), choice: Mutex::new(choice) }
    }

    /// Waits for one's turn. Never ends for who has died.
    pub(super) async fn turn(&self, life: &Arc<Life>, text: String) {
        loop {
            life.wait_while_stalled().await;
            let (grant, granted) = oneshot::channel();
            let ticket = Ticket { since: Instant::now(), text: text.clone(), life: Arc::clone(life), grant };
            lock(&self.waiting).push(ticket);
            self.arrived.notify_one();
            if granted.await.is_err() || life.is_dead() {
                std::future::pending::<()>().await;
            }
            if !life.is_stalled() {
                return;
            }
        }
    }

    /// Gives turns, for ever.
    pub(super) async fn run(&self) {
        loop {
            if lock(&self.waiting).is_empty() {
                self.arrived.notified().await;
            }
            sleep(LATENCY).await;
            while let Some(ticket) = self.next() {
                // One whose sender has given up is not carried out.
                if ticket.grant.send(()).is_ok() {
                    break;
                }
            }
        }
    }

    fn next(&self) -> Option<Ticket> {
        let mut waiting = lock(&self.waiting);
        waiting.retain(|ticket| !ticket.life.is_dead() && !ticket.grant.is_closed());
        waiting.sort_by(|one, other| (one.since, &one.text).cmp(&(other.since, &other.text)));
        if waiting.is_empty() {
            return None;
        }
        let chosen = lock(&self.choice).as_mut().map_or(0, |rng| rng.usize(..waiting.len()));
        Some(waiting.remove(chosen))
    }
}

#[cfg(test)]
mod tests;
