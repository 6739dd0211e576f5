//! The evidence about one object that is written repeatedly.

use tokio::time::Instant;

use super::types::{Cause, Fingerprint, LoopSettings, Spot, Subject};
use crate::clock::later;

/// How many fields of an object are told apart. More are counted for the object as a whole.
const SLOTS_MAX: usize = 16;

/// A write is counted in halves, because not every repetition is equally suspicious.
pub(super) const WRITE: u32 = 2;
const HALF_A_WRITE: u32 = 1;

/// What could have led to a different value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Something changed that it may follow.
    Explained,
    /// Only objects changed that are themselves written again and again: it may be our own echo.
    Answered,
    /// Nothing changed at all.
    Unprovoked,
}

/// One thing that a pass wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a, P> {
    /// The field, as a number. Objects that come and go have one as well.
    pub(super) mark: Fingerprint,
    pub(super) path: Option<&'a P>,
    pub(super) to: Fingerprint,
    /// It was written once before there was a record.
    pub(super) repeated: bool,
}

#[derive(Debug)]
pub(super) struct Record<P> {
    pub(super) opened: Instant,
    pub(super) written: Instant,
    /// The tick of its latest write.
    pub(super) tick: u64,
    /// What others made of it when last seen, and the tick at which that was new.
    pub(super) state: Fingerprint,
    pub(super) moved: u64,
    /// Its latest write had nothing to follow but objects that are written repeatedly.
    pub(super) restless: bool,
    slots: Vec<Slot>,
    /// Writes of whatever field that nothing explained, in halves.
    unexplained: u32,
    looping: Option<(u32, Spot<P>)>,
}

#[derive(Debug)]
struct Slot {
    mark: Fingerprint,
    /// The latest values, the last one first.
    recent: [Fingerprint; 3],
    differed: bool,
    unstable: u32,
    fought: u32,
}

impl<P: Clone> Record<P> {
    pub(super) fn new(tick: u64, now: Instant) -> Self {
        Self {
            opened: now,
            written: now,
            tick,
            state: Fingerprint::NONE,
            moved: tick,
            restless: false,
            slots: Vec::new(),
            unexplained: WRITE,
            looping: None,
        }
    }

    /// Whether it was written with different values: what others make of it may be an echo of that.
    pub(super) fn differed(&self) -> bool {
        self.slots.iter().any(|slot| slot.differed)
    }

    /// Whether this pass has something other for it than the one before.
    pub(super) fn differs_by(&self, items: &[Item<'_, P>]) -> bool {
        items.iter().any(|item| self.slot(item.mark).is_none_or(|slot| slot.recent[0] != item.to))
    }

    pub(super) fn spot(&self) -> Option<&Spot<P>> {
        self.looping.as_ref().map(|(_, spot)| spot)
    }

    pub(super) fn is_over(&self, settings: &LoopSettings, now: Instant) -> bool {
        let since = if self.looping.is_some() { self.written } else { self.opened };
        now.saturating_duration_since(since) > settings.window
    }

    /// Takes in what a pass wrote. Returns the loop if it is one.
    pub(super) fn note(
        &mut self,
        subject: &Subject,
        items: &[Item<'_, P>],
        evidence: Evidence,
        settings: &LoopSettings,
        now: Instant,
    ) -> Option<&Spot<P>> {
        self.written = now;
        let limit = WRITE.saturating_mul(settings.writes_max.max(2));
        let mut gained = 0;
        let mut guilty: Vec<(Cause, &P)> = Vec::new();
        let mut causes = Vec::new();
        for item in items {
            let Some(slot) = self.slots.iter_mut().find(|slot| slot.mark == item.mark) else {
                gained = gained.max(evidence.halves(false));
                if self.slots.len() < SLOTS_MAX {
                    self.slots.push(Slot::new(item));
                }
                continue;
            };
            let (cause, halves) = slot.note(item, evidence);
            if cause == Cause::Unstable {
                gained = gained.max(halves);
            }
            if halves > 0 && slot.count(cause) >= limit {
                causes.push(cause);
                guilty.extend(item.path.map(|path| (cause, path)));
            }
        }
        self.unexplained += gained;
        // Fields of other names each time: none of them is written often, but the object is.
        if causes.is_empty() && gained > 0 && self.unexplained >= limit.saturating_mul(2) {
            causes.push(Cause::Unstable);
            guilty.extend(items.iter().filter_map(|item| Some((Cause::Unstable, item.path?))));
        }
        // Its author can mend an unstable value; report that first.
        let cause = causes.iter().find(|cause| **cause == Cause::Unstable).or(causes.first()).copied();
        if let Some(cause) = cause {
            let of_cause = guilty.into_iter().filter(|(of, _)| *of == cause);
            let paths = of_cause.map(|(_, path)| path.clone()).collect();
            let rounds = self.looping.as_ref().map_or(1, |(rounds, _)| rounds.saturating_add(1));
            self.looping = Some((rounds, Spot { subject: subject.clone(), paths, cause, until: now }));
        }
        let (rounds, spot) = self.looping.as_mut()?;
        let wait = settings.backoff.longest_wait(*rounds);
        spot.until = later(now, wait);
        Some(spot)
    }

    fn slot(&self, mark: Fingerprint) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.mark == mark)
    }
}

impl Slot {
    fn new<P>(item: &Item<'_, P>) -> Self {
        let written = if item.repeated { 2 * WRITE } else { WRITE };
        let recent = [item.to, Fingerprint::NONE, Fingerprint::NONE];
        Self { mark: item.mark, recent, differed: false, unstable: written, fought: written }
    }

    fn count(&self, cause: Cause) -> u32 {
        match cause {
            Cause::Unstable => self.unstable,
            Cause::Fought => self.fought,
        }
    }

    /// Takes in a further write: what it looks like, and how much it counts.
    fn note<P>(&mut self, item: &Item<'_, P>, evidence: Evidence) -> (Cause, u32) {
        let [last, before, before_that] = self.recent;
        if item.to == last {
            // It was written so before and yet had to be written again. To make what others delete is an
            // operator's daily work, and not as soon a loop as a field that won't stay.
            let halves = if item.path.is_some() { WRITE } else { HALF_A_WRITE };
            self.fought = self.fought.saturating_add(halves);
            return (Cause::Fought, halves);
        }
        let halves = evidence.halves(item.to == before || item.to == before_that);
        self.recent = [item.to, last, before];
        self.differed = true;
        self.unstable = self.unstable.saturating_add(halves);
        (Cause::Unstable, halves)
    }
}

impl Evidence {
    /// How much a different value counts. A value that had been there before, with nothing but our own echo in
    /// between, goes in circles; a new one may be a step of something that comes to an end.
    fn halves(self, back_again: bool) -> u32 {
        match self {
            Self::Explained => 0,
            Self::Answered if back_again => WRITE,
            Self::Answered => HALF_A_WRITE,
            Self::Unprovoked => WRITE,
        }
    }
}
