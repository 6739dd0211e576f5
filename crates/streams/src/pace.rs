//! How fast the streams of a class are started, and how many are restarted at once.
//!
//! A stream that is restarted for a changed template or Secret has a seat until its new run has been ready for a while. Streams whose new run
//! fails keep theirs, so a roll-out that harms streams ends by itself when all seats are taken by them. Who has a seat is in the streams'
//! statuses: an operator that starts gives none away before it has seen all streams.
//!
//! Both are lines of streams that wait. A stream that asks again keeps its place; one that does not come back loses it a minute after the
//! time that it was told, so that a stream that is deleted or suspended meanwhile holds up nobody for long.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::config::StartRateConfig;
use crate::lifecycle::Permit;

/// Who does not come back for so long after its time has left.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);
/// Who waits for a seat asks again after this.
const SEAT_WAIT: SignedDuration = SignedDuration::from_secs(5);
/// Credit is counted in parts of a start, so that no rate has to be rounded: a start costs as many as a minute has nanoseconds.
const START: i128 = 60_000_000_000;

/// The pace of a class, shared by all of its streams.
#[derive(Debug, Default)]
pub struct Pace {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    starts: Starts,
    /// By the uid of the stream.
    seats: BTreeMap<String, Seated>,
    waiting: Line,
    sight: Sight,
}

/// A stream that has a seat.
#[derive(Debug, Default)]
struct Seated {
    /// Its name, once it has said so.
    name: String,
    /// Its new run fails.
    is_failing: bool,
}

/// Whether all streams have been seen, so that all who have a seat are known.
#[derive(Debug, Default)]
struct Sight {
    is_complete: bool,
    seen: HashSet<String>,
    /// The number of streams that there are.
    expected: Option<usize>,
    /// When somebody asked first. After a minute it is taken for complete: of some streams another instance may take care.
    asked_at: Option<Timestamp>,
}

impl Sight {
    fn look(&mut self) {
        if self.expected.is_some_and(|expected| self.seen.len() >= expected) {
            (self.is_complete, self.seen) = (true, HashSet::new());
        }
    }

    fn is_complete(&mut self, now: Timestamp) -> bool {
        let asked_at = *self.asked_at.get_or_insert(now);
        self.is_complete |= now.duration_since(asked_at) > PATIENCE;
        self.is_complete
    }
}

impl Pace {
    /// Whether a stream may start a Job now.
    ///
    /// In any stretch of time, no more are granted than the burst and what the rate gives for its length. A permit holds until the stream
    /// [has started](Self::started), a minute at most; until then, to ask again costs nothing.
    pub fn start(&self, uid: &str, now: Timestamp, rate: &StartRateConfig) -> Permit {
        self.state().starts.ask(uid, now, rate)
    }

    /// The stream has started what it had a permit for.
    pub fn started(&self, uid: &str) {
        self.state().starts.granted.remove(uid);
    }

    /// A stream was seen, and has [said](Self::hold) if it has a seat.
    pub fn saw(&self, uid: &str) {
        let sight = &mut self.state().sight;
        if !sight.is_complete {
            sight.seen.insert(uid.to_owned());
            sight.look();
        }
    }

    /// There are this many streams.
    pub fn expect(&self, streams: usize) {
        let sight = &mut self.state().sight;
        sight.expected = Some(streams);
        sight.look();
    }

    /// Whether a stream may be stopped now to be made anew: whether it gets one of so many seats. It keeps the seat until it
    /// [has settled](Self::settled) or [is gone](Self::gone).
    pub fn rollout(&self, uid: &str, now: Timestamp, max: u32) -> Permit {
        let mut state = self.state();
        if state.seats.contains_key(uid) {
            return Permit::Granted;
        }
        let again = later(now, SEAT_WAIT);
        let before = state.waiting.enter(uid, now, again);
        let free = usize::try_from(max).unwrap_or(usize::MAX).saturating_sub(state.seats.len());
        if !state.sight.is_complete(now) {
            return Permit::At(again);
        }
        if before >= free {
            let is_halted = free == 0 && state.seats.values().all(|seated| seated.is_failing);
            return if is_halted { Permit::Halted(again) } else { Permit::At(again) };
        }
        state.waiting.leave(uid);
        state.seats.insert(uid.to_owned(), Seated::default());
        Permit::Granted
    }

    /// A stream says that it has a seat, be it from before this process.
    pub fn hold(&self, uid: &str, name: &str, is_failing: bool) {
        let mut state = self.state();
        state.waiting.leave(uid);
        state.seats.insert(uid.to_owned(), Seated { name: name.to_owned(), is_failing });
    }

    /// The names of the streams whose new runs fail, if these have all of so many seats while others wait.
    pub fn halted_by(&self, max: u32) -> Option<Vec<String>> {
        let state = self.state();
        let is_full = state.seats.len() >= usize::try_from(max).unwrap_or(usize::MAX);
        let is_halted =
            is_full && !state.waiting.is_empty() && state.seats.values().all(|seated| seated.is_failing);
        let mut names: Vec<String> = state.seats.values().map(|seated| seated.name.clone()).collect();
        names.sort_unstable();
        is_halted.then_some(names)
    }

    /// The stream runs as it shall, or cannot, or shall not: its seat is free.
    pub fn settled(&self, uid: &str) {
        let mut state = self.state();
        state.seats.remove(uid);
        state.waiting.leave(uid);
    }

    /// The stream does not start anything for now.
    pub fn rests(&self, uid: &str) {
        let mut state = self.state();
        state.starts.granted.remove(uid);
        state.starts.waiting.leave(uid);
    }

    /// The stream is gone, with all that it has and waits for.
    pub fn gone(&self, uid: &str) {
        self.settled(uid);
        self.rests(uid);
        self.state().sight.seen.remove(uid);
    }

    /// Each change below is whole before anything could panic, so what a thread left that did is as good as ever.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Starts {
    /// What is left of the burst, and when that was so. None: nobody has asked yet, and all of it is.
    credit: Option<(i128, Timestamp)>,
    /// Who may start and has not said that it did, and since when.
    granted: HashMap<String, Timestamp>,
    waiting: Line,
}

impl Starts {
    fn ask(&mut self, uid: &str, now: Timestamp, rate: &StartRateConfig) -> Permit {
        let credit = self.refill(now, rate);
        self.granted.retain(|_, since| now.duration_since(*since) <= PATIENCE);
        if self.granted.contains_key(uid) {
            return Permit::Granted;
        }
        let before = self.waiting.enter(uid, now, now);
        let needed = (i128::try_from(before).unwrap_or(i128::MAX / START - 1) + 1) * START;
        if needed <= credit {
            self.waiting.leave(uid);
            self.granted.insert(uid.to_owned(), now);
            self.credit = self.credit.map(|(credit, at)| (credit - START, at));
            return Permit::Granted;
        }
        let per_nanosecond = i128::from(rate.per_minute.max(1));
        let wait = (needed - credit + per_nanosecond - 1) / per_nanosecond;
        let due = later(now, SignedDuration::from_nanos(i64::try_from(wait).unwrap_or(i64::MAX)));
        self.waiting.enter(uid, now, due);
        Permit::At(due)
    }

    fn refill(&mut self, now: Timestamp, rate: &StartRateConfig) -> i128 {
        let most = i128::from(rate.burst.max(1)) * START;
        let (credit, at) = self.credit.unwrap_or((most, now));
        // A clock that goes back gives nothing, and gives nothing twice when it goes on.
        let passed = now.duration_since(at).as_nanos().max(0);
        let credit = (credit + passed * i128::from(rate.per_minute.max(1))).min(most);
        self.credit = Some((credit, at.max(now)));
        credit
    }
}

/// Those who wait, in the order in which they came.
#[derive(Debug, Default)]
struct Line {
    next: u64,
    places: HashMap<String, u64>,
    /// With the time at which each is to come back.
    due: BTreeMap<u64, (String, Timestamp)>,
}

impl Line {
    /// Takes or keeps a place, to come back at this time. Returns how many are before it.
    fn enter(&mut self, uid: &str, now: Timestamp, due: Timestamp) -> usize {
        let left = self.due.extract_if(.., |_, (who, due)| who != uid && now.duration_since(*due) > PATIENCE);
        for (_, (who, _)) in left {
            self.places.remove(&who);
        }
        let place = *self.places.entry(uid.to_owned()).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        self.due.insert(place, (uid.to_owned(), due));
        self.due.range(..place).count()
    }

    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn leave(&mut self, uid: &str) {
        if let Some(place) = self.places.remove(uid) {
            self.due.remove(&place);
        }
    }
}

fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}
