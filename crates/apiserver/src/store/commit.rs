//! How a change becomes durable, and only then visible.
//!
//! ```text
//! writers ─append─▶ queue ─take─▶ the disk's thread ─▶ written: confirm, readers see it, writers are answered
//!                                                   ╰▶ failed:  roll back the group and all that was queued since
//! ```
//!
//! Every step is one critical section of one lock. A writer finds the store either healthy, and then its change is in the queue
//! that the disk's thread takes or rolls back, or failed, and then nothing is queued. So no change can be in memory alone.
//! After a failure the thread tries to recover until it succeeds or the store is closed.

use super::panic_text;
use super::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, wait};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How often an idle disk is looked at.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Between two attempts to recover, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(10);
const ENDED: &str = "the thread that writes the store has ended; restart the server";

/// What is committed to.
pub(super) trait Log {
    /// Changes that are written together.
    type Group;
    /// Everything that is durable.
    type Snapshot;

    /// Whether anything waits to be taken.
    fn is_queued(&self) -> bool;
    /// All that was queued since the last call; none if that is nothing.
    fn take(&mut self) -> Option<Self::Group>;
    /// The group taken last is durable: from here on it is seen.
    fn confirm(&mut self, group: &Self::Group);
    /// Neither the group taken last nor what was queued since will be durable. Gives the latter.
    fn roll_back(&mut self) -> Option<Self::Group>;
    /// What a disk must hold.
    fn snapshot(&self) -> Self::Snapshot;
}

/// Where changes become durable.
pub(super) trait Disk<L: Log> {
    /// Returns when the group is durable. After an error, the group may be durable in part, until [`Disk::recover`].
    fn write(&mut self, group: &L::Group) -> Result<(), String>;
    /// Called now and then while there is nothing to write.
    fn check(&mut self) -> Result<(), String>;
    /// Makes the disk hold this and nothing else.
    fn recover(&mut self, state: L::Snapshot) -> Result<(), String>;
    /// Tells the writers of a group what became of it.
    fn answer(&mut self, group: L::Group, outcome: Result<(), &str>);
}

/// A log, its health, and the way to the thread that writes it.
pub(super) struct Commits<L> {
    state: RwLock<Guarded<L>>,
    bell: Mutex<Bell>,
    ringing: Condvar,
    /// Changes whenever something became durable, was rolled back, or can be written again.
    progress: watch::Sender<u64>,
}

/// The log, together with whether it takes changes: one lock guards both.
pub(super) struct Guarded<L> {
    log: L,
    failure: Option<Failure>,
}

#[derive(Clone)]
struct Failure {
    why: Arc<str>,
    /// Nothing will repair it in this process.
    is_final: bool,
}

#[derive(Default)]
struct Bell {
    rung: bool,
    closed: bool,
}

impl<L> Deref for Guarded<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.log
    }
}

impl<L> DerefMut for Guarded<L> {
    fn deref_mut(&mut self) -> &mut L {
        &mut self.log
    }
}

impl<L> Commits<L> {
    pub(super) fn new(log: L) -> Self {
        Commits {
            state: RwLock::new(Guarded { log, failure: None }),
            bell: Mutex::default(),
            ringing: Condvar::new(),
            progress: watch::Sender::new(0),
        }
    }

    // A panic while the lock is held cannot leave a half-made change: every change to the log is made after all that could
    // panic. So a poisoned lock is taken over.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Guarded<L>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Guarded<L>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing can be written at present, and whether that is final.
    pub(super) fn failure(&self) -> Option<(Arc<str>, bool)> {
        self.read().failure.clone().map(|failure| (failure.why, failure.is_final))
    }

    /// Woken by the next change of what is durable, of health, or of what is queued.
    pub(super) fn progress(&self) -> watch::Receiver<u64> {
        self.progress.subscribe()
    }

    /// Ends the thread once it has written what is queued.
    pub(super) fn close(&self) {
        self.ring(|bell| bell.closed = true);
    }

    fn bell(&self) -> MutexGuard<'_, Bell> {
        self.bell.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, how: impl FnOnce(&mut Bell)) {
        how(&mut self.bell());
        self.ringing.notify_all();
    }

    /// Waits until something is queued, or for a time; tells whether the store is closed.
    fn wait(&self, time_max: Duration) -> bool {
        let mut bell = self.bell();
        if !bell.rung && !bell.closed {
            bell = wait(&self.ringing, &self.bell, bell, time_max);
        }
        bell.rung = false;
        bell.closed
    }

    fn announce(&self) {
        self.progress.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn recovered(&self) {
        self.write().failure = None;
        tracing::warn!("the store's disk is well again: the store takes writes");
        self.announce();
    }
}

impl<L: Log> Commits<L> {
    /// Runs `change` on the log, or gives the reason why nothing is taken at present.
    pub(super) fn append<R>(&self, change: impl FnOnce(&mut L) -> R) -> Result<R, Arc<str>> {
        let mut state = self.write();
        if let Some(failure) = &state.failure {
            return Err(failure.why.clone());
        }
        let changed = change(&mut state.log);
        let queued = state.log.is_queued();
        drop(state);
        if queued {
            self.ring(|bell| bell.rung = true);
        }
        Ok(changed)
    }

    /// Refuses changes from here on, and rolls back what is not durable. Gives what was queued.
    fn refuse(&self, why: &str, is_final: bool) -> Option<L::Group> {
        let mut state = self.write();
        state.failure = Some(Failure { why: why.into(), is_final });
        state.log.roll_back()
    }

    /// The disk has failed. As [`Commits::refuse`], and logged.
    fn fail(&self, why: &str) -> Option<L::Group> {
        tracing::error!(error = why, "the store takes no writes until its disk is well again");
        self.refuse(why, false)
    }
}

/// What the disk's thread does until the store is closed.
pub(super) fn keep<L: Log>(commits: &Commits<L>, disk: &mut impl Disk<L>) {
    let _ended = Ended(commits);
    loop {
        let closed = commits.wait(CHECK_EVERY);
        let healthy = write_all(commits, disk);
        if closed || (!healthy && !recover(commits, disk)) {
            return;
        }
    }
}

/// Writes what is queued, group by group. False if the disk failed.
fn write_all<L: Log>(commits: &Commits<L>, disk: &mut impl Disk<L>) -> bool {
    let mut idle = true;
    loop {
        let taken = commits.write().log.take();
        let Some(group) = taken else { break };
        idle = false;
        if let Err(why) = guarded(|| disk.write(&group)) {
            let queued = commits.fail(&why);
            for group in [Some(group), queued].into_iter().flatten() {
                disk.answer(group, Err(&why));
            }
            commits.announce();
            return false;
        }
        commits.write().log.confirm(&group);
        disk.answer(group, Ok(()));
        commits.announce();
    }
    let checked = if idle { guarded(|| disk.check()) } else { Ok(()) };
    if let Err(why) = checked {
        if let Some(queued) = commits.fail(&why) {
            disk.answer(queued, Err(&why));
        }
        commits.announce();
        return false;
    }
    true
}

/// Tries until the disk holds what is durable again. False if the store was closed before.
fn recover<L: Log>(commits: &Commits<L>, disk: &mut impl Disk<L>) -> bool {
    let mut pause = RETRY_FIRST;
    loop {
        // While changes are refused, this is what the log stays.
        let state = commits.read().log.snapshot();
        match guarded(|| disk.recover(state)) {
            Ok(()) => break,
            Err(why) => drop(commits.refuse(&why, false)),
        }
        if commits.wait(pause) {
            return false;
        }
        pause = (pause * 2).min(RETRY_MAX);
    }
    commits.recovered();
    true
}

/// Turns a panic into an error.
fn guarded<R>(run: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(panic_text(&*panic)))
}

/// However the thread ends, nobody waits for it afterwards.
struct Ended<'a, L: Log>(&'a Commits<L>);

impl<L: Log> Drop for Ended<'_, L> {
    fn drop(&mut self) {
        if !self.0.bell().closed {
            tracing::error!("{ENDED}");
        }
        // Whoever waits for a change in the queue learns by its end that there is no answer.
        drop(self.0.refuse(ENDED, true));
        self.0.announce();
    }
}
