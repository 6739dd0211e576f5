mod dialects;
mod sockets;

use super::*;

fn endpoint(adapter: Adapter, url: String) -> Endpoint {
    Endpoint { adapter, url, timeout: Duration::from_millis(500) }
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_delays_nobody() {
    let started = tokio::time::Instant::now();
    let wait = |seconds: u64| async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        (seconds, started.elapsed().as_secs())
    };
    // The first hangs for long; with two places the others go on beside it, one after another.
    let answers = each([60, 1, 2, 3], 2, wait).await;
    assert_eq!(answers, [(60, 60), (1, 1), (2, 3), (3, 6)]);
    assert_eq!(each([], 2, wait).await, []);
    assert_eq!(each([1, 1], 0, wait).await.len(), 2);
}
