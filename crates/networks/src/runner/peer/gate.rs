//! What a peer is made to suffer: for a time it does nothing, or is late with everything.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Whether a peer may go on, and how late it is. All that it does passes here.
pub(super) struct Gate(watch::Sender<State>);

#[derive(Clone, Copy)]
struct State {
    paused_until: Instant,
    late_until: Instant,
    late: Duration,
}

impl Gate {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(watch::Sender::new(State { paused_until: now, late_until: now, late: Duration::ZERO }))
    }

    /// Nothing happens for so long from now. Nothing at all ends a pause.
    pub(super) fn pause(&self, lasts: Duration) {
        self.0.send_modify(|state| state.paused_until = Instant::now() + lasts);
    }

    /// All that is sent from now is so late.
    pub(super) fn delay(&self, late: Duration, lasts: Duration) {
        self.0.send_modify(|state| (state.late, state.late_until) = (late, Instant::now() + lasts));
    }

    /// How late what is sent now has to be.
    pub(super) fn late(&self) -> Duration {
        let state = *self.0.borrow();
        if Instant::now() < state.late_until { state.late } else { Duration::ZERO }
    }

    /// When the last pause ends or ended.
    pub(super) fn paused_until(&self) -> Instant {
        self.0.borrow().paused_until
    }

    /// Waits until there is no pause.
    pub(super) async fn pass(&self) {
        let mut changes = self.0.subscribe();
        loop {
            let until = changes.borrow_and_update().paused_until;
            if until <= Instant::now() {
                return;
            }
            tokio::select! {
                () = sleep_until(until) => {}
                _ = changes.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nobody_passes_during_a_pause_and_a_shorter_one_ends_it() {
        let (gate, started) = (Gate::new(), Instant::now());
        gate.pass().await;
        assert_eq!(started.elapsed(), Duration::ZERO);
        gate.pause(Duration::from_secs(5));
        gate.pass().await;
        assert_eq!(started.elapsed(), Duration::from_secs(5));
        gate.pause(Duration::from_mins(1));
        let end = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            gate.pause(Duration::ZERO);
        };
        tokio::join!(gate.pass(), end);
        assert_eq!(started.elapsed(), Duration::from_secs(6));
    }

    #[tokio::test(start_paused = true)]
    async fn lateness_passes() {
        let gate = Gate::new();
        assert_eq!(gate.late(), Duration::ZERO);
        gate.delay(Duration::from_millis(50), Duration::from_secs(1));
        assert_eq!(gate.late(), Duration::from_millis(50));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(gate.late(), Duration::ZERO);
    }
}
