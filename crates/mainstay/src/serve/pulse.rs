//! Whether the main loop still runs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Check;

/// A loop's sign of life: the loop beats, whoever asks learns whether it has lately. Clones share one pulse.
///
/// A pulse counts as beaten when it is made, so that a loop has its whole limit to start.
#[derive(Clone)]
pub struct Pulse {
    limit: Duration,
    last: Arc<Mutex<Instant>>,
}

impl Pulse {
    /// A pulse that is healthy until `limit` after the last beat.
    pub fn new(limit: Duration) -> Self {
        Self { limit, last: Arc::new(Mutex::new(Instant::now())) }
    }

    /// How often a loop that has nothing to do should beat all the same.
    pub fn interval(&self) -> Duration {
        self.limit / 6
    }

    /// The loop came round. Cheap enough for every turn.
    pub fn beat(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether the last beat is within the limit; if not, how long ago it was.
    pub fn check(&self) -> Result<(), String> {
        let silent = self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        if silent <= self.limit {
            return Ok(());
        }
        let (silent, limit) = (silent.as_secs_f64(), self.limit.as_secs_f64());
        Err(format!("the main loop has not ticked for {silent:.1} s, limit {limit:.1} s"))
    }

    pub(super) fn checks(&self) -> Vec<Check> {
        vec![("loop".to_owned(), self.check())]
    }
}

impl fmt::Debug for Pulse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pulse").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pulse_fails_after_its_limit_and_recovers_with_a_beat() {
        let pulse = Pulse::new(Duration::from_secs(30));
        advance(Duration::from_secs(30)).await;
        assert_eq!(pulse.check(), Ok(()));
        advance(Duration::from_millis(1500)).await;
        let said = "the main loop has not ticked for 31.5 s, limit 30.0 s";
        assert_eq!(pulse.check(), Err(said.to_owned()));
        pulse.clone().beat();
        assert_eq!(pulse.check(), Ok(()));
    }
}
