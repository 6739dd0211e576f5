//! Work that begins while its shard is handed over, in thousands of interleavings.
//!
//! [`work`] is compiled a second time here, with the atomics of `shuttle`.

#![expect(clippy::duplicate_mod, reason = "the same code, with other atomics")]

use shuttle::sync::atomic::{AtomicBool, Ordering::SeqCst};
use shuttle::sync::{Arc, mpsc};
use shuttle::thread;
use work::Work;

mod sync {
    pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
}

#[path = "../work.rs"]
mod work;

const SCHEDULES: usize = 5_000;
const WORKERS: usize = 3;

#[test]
fn no_work_runs_for_a_shard_that_was_handed_over() {
    let schedule = || {
        let (work, handed_over) = (Arc::new(Work::default()), Arc::new(AtomicBool::new(false)));
        let (tell, idle) = mpsc::channel();
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let (work, handed_over, tell) = (Arc::clone(&work), Arc::clone(&handed_over), tell.clone());
                thread::spawn(move || {
                    if work.begin() {
                        assert!(!handed_over.load(SeqCst), "it began after the shard was handed over");
                        thread::yield_now();
                        assert!(!handed_over.load(SeqCst), "the shard was handed over under it");
                    }
                    if work.end() {
                        tell.send(()).unwrap();
                    }
                })
            })
            .collect();
        work.drain(true);
        // Whoever drains is woken by the last that ends. A wake-up that is lost would leave this waiting for ever.
        while !work.is_idle() {
            idle.recv().unwrap();
        }
        handed_over.store(true, SeqCst);
        for worker in workers {
            worker.join().unwrap();
        }
    };
    shuttle::check_random(schedule, SCHEDULES);
}
