//! Whether a parent comes to rest: finds syncs that write the same again and again.
//!
//! A handler that puts the time or a random value into a child differs from itself in every sync. Another controller
//! that wants a field otherwise changes it back each time. Either would go on for ever; here it is found, named with
//! its field paths, and slowed down.
//!
//! After every pass over a parent, [`Loops::observe`] is told what was written and what had been seen. Before the
//! next one writes, [`Loops::held`] says which objects to leave alone for now. The rest of the parent is reconciled
//! as ever.
//!
//! # What counts
//!
//! The same field written [five times](LoopSettings) within an hour is a loop, unless there is a reason for it:
//!
//! - **The parent asks for something else.** All is forgotten, a hold included.
//! - **The value differs, and something changed that it may follow**: a related object, the status of a child, or an
//!   object that was written for the first time. Such a write doesn't count. So a status that counts the pods as they
//!   come up or are rolled over, or follows one that crashes every minute, is no loop, nor is a child that follows
//!   another one.
//! - **The value differs, and only objects changed that are written again and again themselves.** This may be our own
//!   echo: a new time in a pod template changes the status of the Deployment, which leads to the next sync. It may also
//!   be a roll-out in steps. It counts half, so there is room for eight steps. If it returns to an earlier value, it
//!   goes in circles and counts in full.
//! - **The value is the same as before.** Then somebody else had changed it, and no change elsewhere explains that:
//!   it counts in full. An object that is created again because it was deleted counts half.
//!
//! Two things are written without any field being written often: fields whose names differ each time, which are found
//! after twice as many writes of the object; and objects whose names do, found as a loop of
//! [the kind's names](Subject::Names).
//!
//! # What it costs
//!
//! Nothing for a parent that writes nothing. Eight bytes for a field that was written, for an hour. Some hundred
//! bytes for an object that is written repeatedly, and no more than a thousand of those for one parent.
//!
//! ```
//! use mainstay::stability::{Fingerprint, LoopSettings, Loops, Pass, Stability, Write, Wrote};
//! use mainstay::{Key, Kind, ObjectRef, Scope};
//! use tokio::time::Instant;
//!
//! let shop = Kind::new("example.com/v1", "Shop", "shops", Scope::Namespaced);
//! let parent = ObjectRef { kind: shop, key: Key::namespaced("default", "web") };
//! let mut loops = Loops::new(LoopSettings::default());
//! let mut verdict = Stability::Quiet;
//! for sync in 1..=5 {
//!     let what = Wrote::Field { path: "status.syncs", to: Fingerprint::of(&sync) };
//!     let writes = [Write { object: parent.clone(), what }];
//!     let pass = Pass { asked: Fingerprint::of(&"generation 1"), seen: &[], writes: &writes };
//!     verdict = loops.observe(&parent, &pass, Instant::now());
//! }
//! let Stability::Loop(spots) = verdict else { panic!("it should be a loop") };
//! assert_eq!(spots[0].paths, ["status.syncs"]);
//! ```

mod history;
mod record;
#[cfg(test)]
mod tests;
mod types;

use std::collections::BTreeMap;
use std::hash::Hash;

use tokio::time::Instant;

use self::history::History;
pub use self::types::{Cause, Fingerprint, LoopSettings, Pass, Spot, Stability, Subject, Write, Wrote};
use crate::ObjectRef;

/// The memory of what parents have written lately. `P` is a field path.
#[derive(Debug)]
pub struct Loops<P> {
    settings: LoopSettings,
    parents: BTreeMap<ObjectRef, History<P>>,
    swept: Option<Instant>,
}

impl<P: Hash + Clone> Loops<P> {
    /// No memory yet.
    pub fn new(settings: LoopSettings) -> Self {
        Self { settings, parents: BTreeMap::new(), swept: None }
    }

    /// Takes in a pass over a parent and judges it.
    pub fn observe(&mut self, parent: &ObjectRef, pass: &Pass<'_, P>, now: Instant) -> Stability<P> {
        self.sweep(now);
        if self.parents.get(parent).is_some_and(|history| !history.is_of(pass.asked)) {
            self.parents.remove(parent);
        }
        if pass.writes.is_empty() {
            return Stability::Quiet;
        }
        let history = self.parents.entry(parent.clone()).or_insert_with(|| History::new(pass.asked, now));
        let spots = history.note(pass, &self.settings, now);
        if spots.is_empty() { Stability::Changing } else { Stability::Loop(spots) }
    }

    /// The loop for which something must not be written now, if there is one: it waits until [`Spot::until`].
    ///
    /// `asked` is what the parent asks for now, as in [`Pass::asked`].
    pub fn held(
        &self,
        parent: &ObjectRef,
        asked: Fingerprint,
        subject: &Subject,
        now: Instant,
    ) -> Option<&Spot<P>> {
        let history = self.parents.get(parent).filter(|history| history.is_of(asked))?;
        history.record(subject)?.spot().filter(|spot| now < spot.until)
    }

    /// The loops of a parent that are not over, held at present or not.
    pub fn spots(&self, parent: &ObjectRef) -> impl Iterator<Item = &Spot<P>> {
        self.parents.get(parent).into_iter().flat_map(History::spots)
    }

    /// Forgets a parent that is gone.
    pub fn forget(&mut self, parent: &ObjectRef) {
        self.parents.remove(parent);
    }

    /// How many parents are remembered.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Forgets parents that have been quiet, a few times in every window: cheaper than a timer for each.
    fn sweep(&mut self, now: Instant) {
        let swept = *self.swept.get_or_insert(now);
        if now.saturating_duration_since(swept) < self.settings.window / 4 {
            return;
        }
        self.swept = Some(now);
        self.parents.retain(|_, history| {
            history.expire(&self.settings, now);
            !history.is_empty()
        });
    }
}
