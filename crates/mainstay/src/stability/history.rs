//! The passes of one parent, as far as they are remembered: nothing while it is quiet, a few numbers for what was
//! written once, a record for what was written more often.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use tokio::time::Instant;

use super::record::{Evidence, Item, Record};
use super::types::{Fingerprint, LoopSettings, Pass, Spot, Subject, Write, Wrote};
use crate::{Kind, ObjectRef};

/// How much is remembered of one parent. What is written beyond that is not watched.
const MARKS_MAX: usize = 4096;
const SUBJECTS_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct History<P> {
    asked: Fingerprint,
    opened: Instant,
    /// What was written since then, sorted. A fingerprint each: most things are written once.
    marks: Vec<Fingerprint>,
    detail: Option<Box<Detail<P>>>,
}

/// What was written repeatedly, and what changed in between.
#[derive(Debug)]
struct Detail<P> {
    /// Counts the passes.
    tick: u64,
    /// What others have made of objects that have no record with different values, and when that was new.
    outside: Fingerprint,
    outside_moved: u64,
    /// The last pass wrote something for the first time. What follows from that is progress, not repetition.
    progressed: bool,
    records: BTreeMap<Subject, Record<P>>,
}

impl<P: Hash + Clone> History<P> {
    pub(super) fn new(asked: Fingerprint, now: Instant) -> Self {
        Self { asked, opened: now, marks: Vec::new(), detail: None }
    }

    pub(super) fn is_of(&self, asked: Fingerprint) -> bool {
        self.asked == asked
    }

    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.detail.is_none()
    }

    pub(super) fn record(&self, subject: &Subject) -> Option<&Record<P>> {
        self.detail.as_ref()?.records.get(subject)
    }

    pub(super) fn spots(&self) -> impl Iterator<Item = &Spot<P>> {
        self.detail.iter().flat_map(|detail| detail.records.values()).filter_map(Record::spot)
    }

    /// Forgets what is too long ago to matter.
    pub(super) fn expire(&mut self, settings: &LoopSettings, now: Instant) {
        if now.saturating_duration_since(self.opened) > settings.window {
            self.marks = Vec::new();
            self.opened = now;
        }
        if let Some(detail) = &mut self.detail {
            detail.records.retain(|_, record| !record.is_over(settings, now));
        }
        self.detail.take_if(|detail| detail.records.is_empty());
    }

    /// Takes in a pass that wrote something. Returns the loops that it was a round of.
    pub(super) fn note(&mut self, pass: &Pass<'_, P>, settings: &LoopSettings, now: Instant) -> Vec<Spot<P>> {
        self.expire(settings, now);
        let mut written = by_subject(pass.writes);
        for item in written.values_mut().flatten() {
            item.repeated = self.marks.binary_search(&item.mark).is_ok();
        }
        let recorded = |subject: &Subject, items: &[Item<'_, P>]| {
            self.record(subject).is_some() || items.iter().any(|item| item.repeated)
        };
        let (again, first): (Vec<_>, Vec<_>) =
            written.into_iter().partition(|(subject, items)| recorded(subject, items));
        // What can't be remembered would look new each time.
        let remembers = self.marks.len() < MARKS_MAX;
        if remembers && !first.is_empty() {
            self.marks.extend(first.iter().flat_map(|(_, items)| items).map(|item| item.mark));
            self.marks.sort_unstable();
            self.marks.dedup();
            self.marks.truncate(MARKS_MAX);
            self.marks.shrink_to_fit();
        }
        if again.is_empty() && self.detail.is_none() {
            return Vec::new();
        }
        let detail = self.detail.get_or_insert_default();
        let spots = detail.note(&again, pass.seen, settings, now);
        detail.progressed = remembers && makes_progress(&first, &again);
        spots
    }
}

impl<P> Default for Detail<P> {
    fn default() -> Self {
        Self {
            tick: 0,
            outside: Fingerprint::NONE,
            outside_moved: 0,
            progressed: false,
            records: BTreeMap::new(),
        }
    }
}

impl<P: Clone> Detail<P> {
    fn note(
        &mut self,
        written: &[(Subject, Vec<Item<'_, P>>)],
        seen: &[(ObjectRef, Fingerprint)],
        settings: &LoopSettings,
        now: Instant,
    ) -> Vec<Spot<P>> {
        self.tick += 1;
        self.look(seen);
        for (subject, items) in written {
            if let Some(record) = self.records.get_mut(subject)
                && record.differs_by(items)
            {
                record.restless = self.outside_moved <= record.tick;
            }
        }
        let moved = |restless: bool| {
            let records = self.records.values().filter(|record| record.differed());
            records.filter(|record| record.restless == restless).map(|record| record.moved).max().unwrap_or(0)
        };
        let (explained, answered) = (self.outside_moved.max(moved(false)), moved(true));
        let mut spots = Vec::new();
        for (subject, items) in written {
            let full = self.records.len() >= SUBJECTS_MAX;
            let record = match self.records.get_mut(subject) {
                Some(record) => record,
                None if full => continue,
                None => self.records.entry(subject.clone()).or_insert(Record::new(self.tick, now)),
            };
            let evidence = match record.tick {
                since if explained > since => Evidence::Explained,
                since if answered > since => Evidence::Answered,
                _ => Evidence::Unprovoked,
            };
            record.tick = self.tick;
            spots.extend(record.note(subject, items, evidence, settings, now).cloned());
        }
        self.remember(seen);
        spots
    }

    /// Finds out what is new since the last pass.
    fn look(&mut self, seen: &[(ObjectRef, Fingerprint)]) {
        let (outside, states) = self.sums(seen);
        if outside != self.outside || self.progressed {
            self.outside_moved = self.tick;
        }
        for (subject, record) in &mut self.records {
            let state = states.get(subject).copied().unwrap_or(Fingerprint::NONE);
            if record.differed() && state != record.state {
                (record.state, record.moved) = (state, self.tick);
            }
        }
    }

    /// Keeps what was seen, for those that are told apart from now on.
    fn remember(&mut self, seen: &[(ObjectRef, Fingerprint)]) {
        let (outside, states) = self.sums(seen);
        self.outside = outside;
        for (subject, record) in &mut self.records {
            record.state = states.get(subject).copied().unwrap_or(Fingerprint::NONE);
        }
    }

    /// What was seen: of everything outside, and of each that was written with different values.
    fn sums(&self, seen: &[(ObjectRef, Fingerprint)]) -> (Fingerprint, BTreeMap<Subject, Fingerprint>) {
        let (mut objects, mut kinds) = (BTreeSet::<&ObjectRef>::new(), BTreeSet::<&Kind>::new());
        for (subject, _) in self.records.iter().filter(|(_, record)| record.differed()) {
            match subject {
                Subject::Object(object) => _ = objects.insert(object),
                Subject::Names(kind) => _ = kinds.insert(kind),
            }
        }
        let mut outside = Fingerprint::NONE;
        let mut states = BTreeMap::new();
        for (object, state) in seen.iter().filter(|(_, state)| *state != Fingerprint::NONE) {
            let subject = if objects.contains(object) {
                Subject::Object(object.clone())
            } else if kinds.contains(&object.kind) {
                Subject::Names(object.kind.clone())
            } else {
                outside = outside.plus(Fingerprint::of(&(object, state)));
                continue;
            };
            let sum = states.entry(subject).or_insert(Fingerprint::NONE);
            *sum = sum.plus(Fingerprint::of(&(object, state)));
        }
        (outside, states)
    }
}

/// Whether something was written for the first time, other than objects that are new only because the names of their
/// kind differ each time.
fn makes_progress<I>(first: &[(Subject, I)], again: &[(Subject, I)]) -> bool {
    let names = again.iter().filter_map(|(subject, _)| match subject {
        Subject::Names(kind) => Some(kind),
        Subject::Object(_) => None,
    });
    let replaced: BTreeSet<&Kind> = names.collect();
    first.iter().any(|(subject, _)| match subject {
        Subject::Object(object) => !replaced.contains(&object.kind),
        Subject::Names(_) => false,
    })
}

/// What a pass wrote, for each subject.
fn by_subject<P: Hash>(writes: &[Write<P>]) -> BTreeMap<Subject, Vec<Item<'_, P>>> {
    let mut subjects = BTreeMap::<Subject, Vec<Item<'_, P>>>::new();
    let mut existence = BTreeMap::new();
    for Write { object, what } in writes {
        match what {
            Wrote::Field { path, to } => {
                let mark = Fingerprint::of(&(object, path));
                let item = Item { mark, path: Some(path), to: *to, repeated: false };
                subjects.entry(Subject::Object(object.clone())).or_default().push(item);
            }
            Wrote::Created => _ = existence.insert(object, true),
            Wrote::Deleted => _ = existence.insert(object, false),
        }
    }
    for (object, exists) in &existence {
        let to = Fingerprint::of(exists);
        let item = Item { mark: Fingerprint::of(*object), path: None, to, repeated: false };
        subjects.entry(Subject::Object((*object).clone())).or_default().push(item);
    }
    let kinds: BTreeSet<&Kind> = existence.keys().map(|object| &object.kind).collect();
    for kind in kinds {
        let of_kind = || existence.iter().filter(|(object, _)| object.kind == *kind);
        let created = of_kind().filter(|(_, exists)| **exists).map(|(object, _)| Fingerprint::of(*object));
        let to = created.reduce(Fingerprint::plus);
        if let Some(to) = to.filter(|_| of_kind().any(|(_, exists)| !exists)) {
            let item = Item { mark: Fingerprint::of(kind), path: None, to, repeated: false };
            subjects.entry(Subject::Names(kind.clone())).or_default().push(item);
        }
    }
    subjects
}
