//! Decides what is written of what happens. No clock and no network: time is an argument, names come from a seed.
//!
//! - The first time that something happens to an object, an event is created.
//! - The same thing again within the window is counted. The count is written when it has doubled, and once per
//!   refresh if it has grown at all: a thousand repetitions cost about ten writes, and the last count is the true one.
//! - A thing that is new takes a token of its object's bucket. Without one it is suppressed.
//! - Both memories are bounded; what was not seen for longest is forgotten.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::recent::Recent;
use super::{Event, Regarding, cut};

/// How much is written and remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long after its last repetition an event is still the same one.
    pub window: Duration,
    /// How old the written count may get while the true one grows. Less than the window.
    pub refresh: Duration,
    /// New events of one object at once.
    pub burst: u32,
    /// The time after which one object may have one more new event.
    pub refill: Duration,
    /// Events, and objects with events, that are remembered.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            window: Duration::from_mins(10),
            refresh: Duration::from_mins(2),
            burst: 25,
            refill: Duration::from_mins(5),
            memory: 4096,
        }
    }
}

/// What to do about something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Emit {
    /// Create this event.
    Create(Written),
    /// The event is there: write its new count.
    Update(Written),
    /// Write nothing.
    Suppress(Suppressed),
}

/// Why nothing is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suppressed {
    /// It is counted, and the count will be written later.
    Counted,
    /// Its object had too many new events lately.
    RateLimited,
}

/// An event as it is to be in the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The event's own namespace.
    pub namespace: String,
    /// The event's own name.
    pub name: String,
    /// What it is about.
    pub regarding: Regarding,
    /// What happened.
    pub event: Event,
    /// When it happened first.
    pub first: Timestamp,
    /// When it happened last.
    pub last: Timestamp,
    /// How often it happened.
    pub count: u32,
}

type SeriesKey = (Regarding, Event);

#[derive(Debug)]
struct Series {
    name: String,
    first: Timestamp,
    last: Timestamp,
    count: u32,
    written_count: u32,
    written_at: Timestamp,
}

/// Remembers what was written. See the [module](super).
#[derive(Debug)]
pub struct EventBook {
    limits: Limits,
    random: fastrand::Rng,
    series: Recent<SeriesKey, Series>,
    buckets: Recent<Arc<str>, Bucket>,
}

impl EventBook {
    /// An empty book.
    pub fn new(limits: Limits, random: fastrand::Rng) -> Self {
        let (series, buckets) = (Recent::new(limits.memory), Recent::new(limits.memory));
        Self { limits, random, series, buckets }
    }

    /// Decides about one thing that happened.
    pub fn record(&mut self, regarding: &Regarding, event: &Event, now: Timestamp) -> Emit {
        let window = self.limits.window;
        self.series.forget_while(|series| since(series.last, now) > window);
        let key = (regarding.clone(), event.clone());
        if let Some(series) = self.series.touch(&key) {
            return series.repeat(&key, self.limits.refresh, now);
        }
        if !self.may_create(&regarding.uid, now) {
            return Emit::Suppress(Suppressed::RateLimited);
        }
        let name = event_name(regarding.object.key.name(), now, &mut self.random);
        let series = Series { name, first: now, last: now, count: 1, written_count: 1, written_at: now };
        let written = series.written(&key);
        self.series.insert(key, series);
        Emit::Create(written)
    }

    fn may_create(&mut self, uid: &Arc<str>, now: Timestamp) -> bool {
        let Limits { burst, refill, .. } = self.limits;
        if let Some(bucket) = self.buckets.touch(uid) {
            return bucket.take(burst, refill, now);
        }
        let mut bucket = Bucket { tokens: burst, since: now };
        let may = bucket.take(burst, refill, now);
        self.buckets.insert(uid.clone(), bucket);
        may
    }

    /// The series whose written count is too old, each to be updated. After this they count as written.
    pub fn due(&mut self, now: Timestamp) -> Vec<Written> {
        let refresh = self.limits.refresh;
        self.take(now, |series| since(series.written_at, now) >= refresh)
    }

    /// All series whose written count is not the true one: for the end of the program.
    pub fn rest(&mut self, now: Timestamp) -> Vec<Written> {
        self.take(now, |_| true)
    }

    fn take(&mut self, now: Timestamp, is_due: impl Fn(&Series) -> bool) -> Vec<Written> {
        let grown = self.series.iter_mut().filter(|(_, series)| series.has_grown());
        let due = grown.filter(|(_, series)| is_due(series));
        due.map(|(key, series)| series.write(key, now)).collect()
    }

    /// Whether there is a count that is not written yet.
    pub fn has_rest(&self) -> bool {
        self.series.iter().any(Series::has_grown)
    }

    /// The event could not be created: the next time is the first one again.
    pub fn forget(&mut self, written: &Written) {
        self.series.remove(&(written.regarding.clone(), written.event.clone()));
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> (usize, usize) {
        (self.series.len(), self.buckets.len())
    }
}

impl Series {
    fn repeat(&mut self, key: &SeriesKey, refresh: Duration, now: Timestamp) -> Emit {
        self.count = self.count.saturating_add(1);
        self.last = self.last.max(now);
        let doubled = self.count >= self.written_count.saturating_mul(2);
        if doubled || since(self.written_at, now) >= refresh {
            Emit::Update(self.write(key, now))
        } else {
            Emit::Suppress(Suppressed::Counted)
        }
    }

    fn has_grown(&self) -> bool {
        self.count > self.written_count
    }

    fn write(&mut self, key: &SeriesKey, now: Timestamp) -> Written {
        (self.written_count, self.written_at) = (self.count, now);
        self.written(key)
    }

    fn written(&self, (regarding, event): &SeriesKey) -> Written {
        Written {
            // Objects of the whole cluster have their events in the default namespace.
            namespace: regarding.object.key.namespace().unwrap_or("default").to_owned(),
            name: self.name.clone(),
            regarding: regarding.clone(),
            event: event.clone(),
            first: self.first,
            last: self.last,
            count: self.count,
        }
    }
}

/// New events that an object may still have.
#[derive(Debug)]
struct Bucket {
    tokens: u32,
    since: Timestamp,
}

impl Bucket {
    fn take(&mut self, burst: u32, refill: Duration, now: Timestamp) -> bool {
        let passed = since(self.since, now);
        let gained = passed.as_millis().checked_div(refill.as_millis()).unwrap_or(u128::MAX);
        let gained = u32::try_from(gained).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(gained);
        if self.tokens >= burst {
            (self.tokens, self.since) = (burst, now);
        } else if let Ok(since) = self.since.checked_add(refill.saturating_mul(gained)) {
            self.since = since;
        }
        let has = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        has
    }
}

/// The time between two moments; none if the clock was set back.
fn since(then: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(then).try_into().unwrap_or_default()
}

/// A name that no other event has: the object's, the time and some chance. Valid whatever the object is called.
fn event_name(object: &str, now: Timestamp, random: &mut fastrand::Rng) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_edge = |label: &str| label.starts_with(plain) && label.ends_with(plain);
    let is_valid =
        object.split('.').all(|label| is_edge(label) && label.chars().all(|c| plain(c) || c == '-'));
    let cleaned =
        if is_valid { object.to_owned() } else { object.to_ascii_lowercase().replace(|c| !plain(c), "-") };
    let stem = cut(&cleaned, 200).trim_matches(['-', '.']);
    let stem = if stem.is_empty() { "object" } else { stem };
    format!("{stem}.{:x}{:04x}", now.as_microsecond().max(0), random.u16(..))
}
