//! Threads for handlers that may block. The runtime's own would keep it from ending for as long as one of them blocks; these do not.

use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError, SendError};
use std::thread;
use std::time::Duration;

use super::lock;

/// Most threads at one time. More calls than this have not returned only if handlers block for good.
const THREADS_MAX: usize = 512;
/// A thread ends that had nothing to do for this long.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// What a thread does. It must not panic.
type Job = Box<dyn FnOnce() + Send>;

/// All threads of the process.
static THREADS: Mutex<Threads> = Mutex::new(Threads { idle: Vec::new(), count: 0, last: 0 });

struct Threads {
    /// Threads that have nothing to do, by number.
    idle: Vec<(u64, mpsc::Sender<Job>)>,
    count: usize,
    /// The last number given out.
    last: u64,
}

/// Why a job is not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoThread {
    #[error("{THREADS_MAX} calls of handlers have not returned; no other is made")]
    TooMany,
    #[error("cannot start a thread for the handler")]
    Start(#[source] std::io::Error),
}

/// Runs a job on a thread of its own, which may be one that has done others.
pub(super) fn run(mut job: Job) -> Result<(), NoThread> {
    loop {
        let idle = lock(&THREADS).idle.pop();
        let Some((_, thread)) = idle else { break };
        match thread.send(job) {
            Ok(()) => return Ok(()),
            Err(SendError(back)) => job = back,
        }
    }
    let counted = Counted::new().ok_or(NoThread::TooMany)?;
    let started = thread::Builder::new().name("mainstay-handler".into()).spawn(move || work(job, counted));
    started.map(drop).map_err(NoThread::Start)
}

/// One of the threads.
struct Counted(());

impl Counted {
    fn new() -> Option<Self> {
        let mut threads = lock(&THREADS);
        if threads.count >= THREADS_MAX {
            return None;
        }
        threads.count += 1;
        Some(Self(()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        lock(&THREADS).count -= 1;
    }
}

fn work(first: Job, _counted: Counted) {
    let mut job = Some(first);
    while let Some(next) = job {
        next();
        let (thread, jobs) = mpsc::channel();
        let number = {
            let mut threads = lock(&THREADS);
            threads.last += 1;
            let number = threads.last;
            threads.idle.push((number, thread));
            number
        };
        job = match jobs.recv_timeout(IDLE_MAX) {
            Ok(more) => Some(more),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let mut threads = lock(&THREADS);
                let place = threads.idle.iter().position(|(idle, _)| *idle == number);
                if let Some(place) = place {
                    threads.idle.remove(place);
                }
                drop(threads);
                // Somebody who has taken it off the list is about to send.
                if place.is_none() { jobs.recv().ok() } else { None }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_side_by_side_and_threads_are_used_again() {
        let (tell, told) = mpsc::channel();
        let blocked: Vec<_> = (0..8)
            .map(|_| {
                let (free, freed) = mpsc::channel::<()>();
                let tell = tell.clone();
                run(Box::new(move || {
                    tell.send(thread::current().id()).unwrap();
                    let _ = freed.recv();
                }))
                .unwrap();
                free
            })
            .collect();
        let mut threads: Vec<_> = (0..8).map(|_| told.recv().unwrap()).collect();
        threads.sort_by_key(|id| format!("{id:?}"));
        threads.dedup();
        assert_eq!(threads.len(), 8, "each has one of its own");
        drop(blocked);
    }
}
