//! Work that can take long, away from the threads that answer requests.
//!
//! Compiling and evaluating CEL takes up to a second. On a runtime with several threads it is done on
//! blocking threads, as many at once as [`places`] says; others wait for their turn. When the caller gives
//! up, because the client has left or the server shuts down, the work is cancelled.
//!
//! On a runtime with one thread, which simulations use, work is done in place: their time stands still
//! meanwhile, and a run must not depend on threads.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// How many pieces of work are done at once in this process.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(places())));

/// Two for each core, so that cheap work need not wait until all expensive work is done.
fn places() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get).saturating_mul(2)
}

/// Tells work to stop when nobody waits for it any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether work is done in place.
pub(crate) fn is_in_place() -> bool {
    !Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Does the work. It is given a flag that becomes true when its result is no longer wanted.
pub(crate) async fn offload<T: Send + 'static>(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> T {
    if is_in_place() {
        return work(&AtomicBool::new(false));
    }
    let stop = StopOnDrop(Arc::default());
    // The semaphore is never closed.
    let place = PLACES.clone().acquire_owned().await.ok();
    let flag = stop.0.clone();
    let done = tokio::task::spawn_blocking(move || {
        let result = work(&flag);
        drop(place);
        result
    });
    match done.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_stops_when_its_caller_is_gone() {
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (stopped, has_stopped) = tokio::sync::oneshot::channel();
        let work = tokio::spawn(offload(move |stop| {
            started.send(()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            stopped.send(()).unwrap();
        }));
        // The only worker is free to run this task while the work goes on.
        has_started.await.unwrap();
        work.abort();
        has_stopped.await.unwrap();
    }

    #[tokio::test]
    async fn one_thread_does_its_work_in_place() {
        let here = std::thread::current().id();
        assert_eq!(offload(|_| std::thread::current().id()).await, here);
    }
}
