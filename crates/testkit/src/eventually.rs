//! Bounded waits on a predicate.

use std::time::Duration;

use tokio::time::Instant;

/// How long [`eventually`] waits. Generous, because it is only ever used up by a test that fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// Between two looks. Short, because the looks are cheap and tests wait for nothing else.
const INTERVAL: Duration = Duration::from_millis(20);

/// Calls `probe` until it gives `Some`, and returns that.
///
/// # Panics
/// When a minute has passed; `what` says in the message what was waited for.
pub async fn eventually<T>(what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, probe).await
}

/// [`eventually`] with a patience of one's own.
///
/// # Panics
/// When `patience` has passed; `what` says in the message what was waited for.
pub async fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {patience:?} in vain: {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}
