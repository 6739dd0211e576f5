//! The commit path with locks whose scheduling is controlled: thousands of interleavings of writers, a reader and the disk's
//! thread, on a disk that fails, lies or panics now and then.
//!
//! [`commit`] is compiled a second time here, with the locks of `shuttle`.

#![expect(clippy::duplicate_mod, reason = "the same code, with other locks")]

use super::super::panic_text;
use commit::{Commits, Disk, Log, keep};
use shuttle::rand::Rng as _;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use tokio::sync::oneshot;

mod sync {
    pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    use std::sync::PoisonError;
    use std::time::Duration;

    /// Time does not pass in a schedule, so whoever waits for it only lets others go first.
    pub(super) fn wait<'a, T>(
        _: &Condvar,
        lock: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        _: Duration,
    ) -> MutexGuard<'a, T> {
        drop(guard);
        shuttle::thread::yield_now();
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[path = "../commit.rs"]
mod commit;

/// What is seen, and what waits. A value stands for a write.
#[derive(Default)]
struct Values {
    seen: Vec<u32>,
    queued: Vec<(u32, oneshot::Sender<bool>)>,
}

impl Log for Values {
    type Group = Vec<(u32, oneshot::Sender<bool>)>;
    type Snapshot = Vec<u32>;

    fn is_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    fn take(&mut self) -> Option<Self::Group> {
        Some(std::mem::take(&mut self.queued)).filter(|group| !group.is_empty())
    }

    fn confirm(&mut self, group: &Self::Group) {
        self.seen.extend(group.iter().map(|(value, _)| value));
    }

    fn roll_back(&mut self) -> Option<Self::Group> {
        self.take()
    }

    fn snapshot(&self) -> Vec<u32> {
        self.seen.clone()
    }
}

/// A disk that fails by the schedule's dice.
struct Dice {
    holds: Arc<Mutex<Vec<u32>>>,
    failures_left: u32,
    panics: bool,
}

impl Dice {
    fn fails(&mut self) -> bool {
        let fails = self.failures_left > 0 && shuttle::rand::thread_rng().gen_bool(0.5);
        self.failures_left -= u32::from(fails);
        fails
    }
}

impl Disk<Values> for Dice {
    fn write(&mut self, group: &Vec<(u32, oneshot::Sender<bool>)>) -> Result<(), String> {
        let fails = self.fails();
        // One that fails may have written before it did.
        if !fails || shuttle::rand::thread_rng().gen_bool(0.5) {
            self.holds.lock().unwrap().extend(group.iter().map(|(value, _)| value));
        }
        assert!(!(fails && self.panics), "a disk that panics");
        if fails { Err("full".into()) } else { Ok(()) }
    }

    fn check(&mut self) -> Result<(), String> {
        if self.fails() { Err("gone".into()) } else { Ok(()) }
    }

    fn recover(&mut self, state: Vec<u32>) -> Result<(), String> {
        if self.fails() {
            return Err("still full".into());
        }
        *self.holds.lock().unwrap() = state;
        Ok(())
    }

    fn answer(&mut self, group: Vec<(u32, oneshot::Sender<bool>)>, outcome: Result<(), &str>) {
        for (_, done) in group {
            let _ = done.send(outcome.is_ok());
        }
    }
}

/// Writers write until each of their values is acknowledged, while a reader looks.
fn scenario(writers: u32, values: u32, failures: u32, panics: bool) {
    let commits = Arc::new(Commits::new(Values::default()));
    let holds = Arc::new(Mutex::new(Vec::new()));
    let mut disk = Dice { holds: holds.clone(), failures_left: failures, panics };
    let shared = commits.clone();
    let keeper = thread::spawn(move || keep(&shared, &mut disk));
    let writing: Vec<_> = (0..writers)
        .map(|writer| {
            let commits = commits.clone();
            thread::spawn(move || {
                (0..values).map(|value| write(&commits, writer * 1000 + value * 100)).collect()
            })
        })
        .collect();
    for _ in 0..3 {
        // Held while the disk is looked at, so that nothing is rolled back in between.
        let seen = commits.read();
        let durable = holds.lock().unwrap().clone();
        assert!(seen.seen.iter().all(|value| durable.contains(value)), "{:?} of {durable:?}", seen.seen);
    }
    let acknowledged: Vec<Vec<u32>> = writing.into_iter().map(|writer| writer.join().unwrap()).collect();
    let seen = commits.read().seen.clone();
    let mut expected = acknowledged.concat();
    let mut found = seen.clone();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "what was refused is not seen, what was acknowledged is");
    commits.close();
    keeper.join().unwrap();
    assert_eq!(*holds.lock().unwrap(), seen);
    assert!(commits.append(|_| ()).is_err(), "nobody can write once the thread has ended");
    assert!(commits.failure().is_some_and(|(_, is_final)| is_final));
}

/// Writes until it is acknowledged; gives the value of the attempt that was.
fn write(commits: &Commits<Values>, first: u32) -> u32 {
    for attempt in 0.. {
        let (done, outcome) = oneshot::channel();
        let mut progress = commits.progress();
        let queued = commits.append(|log| log.queued.push((first + attempt, done)));
        if queued.is_err() {
            // It is told when it is worth to try again.
            shuttle::future::block_on(progress.changed()).unwrap();
        } else if shuttle::future::block_on(outcome) == Ok(true) {
            return first + attempt;
        }
    }
    unreachable!("there are fewer failures than attempts")
}

#[test]
fn every_write_is_seen_and_durable_or_neither() {
    shuttle::check_random(|| scenario(3, 2, 3, false), 2_000);
}

#[test]
fn unlikely_orders_of_two_writers_are_no_exception() {
    shuttle::check_pct(|| scenario(2, 2, 2, false), 2_000, 3);
}

#[test]
fn a_disk_that_panics_is_one_that_failed() {
    // Few, because each of its panics is printed.
    shuttle::check_random(|| scenario(2, 2, 1, true), 20);
}
