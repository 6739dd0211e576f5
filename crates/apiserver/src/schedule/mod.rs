//! Cron schedules as Kubernetes reads them: five fields, a name such as `@daily`, or `@every 1h30m`.
//!
//! ```text
//! text ─▶ Schedule (field: sets of numbers; duration: a period) ─▶ next_after: the first time that fits
//! ```
//!
//! - A time fits whose fields on the clock on the wall are all named, in whole minutes. Where the clock is set forward, times that it
//!   skips never come; where it is set back, those that it shows twice come twice.
//! - If both day of month and day of week are restricted, a day that fits either fits.
//! - The same text in the same zone has the same times on every machine: the time zone database is compiled in.

mod duration;
mod field;
#[cfg(test)]
mod tests;

use jiff::civil::{DateTime, time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

pub(crate) use duration::read as read_duration;
use field::Field;

/// A schedule that has no time in so many years has none.
const YEARS_MAX: i16 = 5;

/// When something is to happen again and again.
///
/// ```
/// use mainstay_apiserver::Schedule;
///
/// let schedule = Schedule::parse("30 9 * * MON-FRI")?.within(Schedule::zone("Europe/Berlin")?);
/// let friday: jiff::Timestamp = "2026-03-27T12:00:00Z".parse()?;
/// assert_eq!(schedule.next_after(friday), Some("2026-03-30T07:30:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// The zone whose clock is looked at.
    zone: TimeZone,
    times: Times,
}

/// The text is no schedule, or names no time zone; it says why, in the words of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoSchedule(String);

#[derive(Debug, Clone, PartialEq)]
enum Times {
    /// Whenever all fields fit.
    Fields { minute: Field, hour: Field, day: Field, month: Field, weekday: Field },
    /// So long after the last one.
    Every(SignedDuration),
}

impl Schedule {
    /// Reads a schedule. Without `TZ=` or `CRON_TZ=` before it, its times are in UTC.
    pub fn parse(text: &str) -> Result<Self, NoSchedule> {
        Self::read(text).map_err(NoSchedule)
    }

    /// A time zone by its exact name.
    pub fn zone(name: &str) -> Result<TimeZone, NoSchedule> {
        zone(name).map_err(NoSchedule)
    }

    /// The same on the clocks of a time zone.
    #[must_use]
    pub fn within(self, zone: TimeZone) -> Self {
        Self { zone, ..self }
    }

    /// The first time after this one; none if there is none within five years, as for the 30th of February.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.times {
            Times::Every(period) => whole_seconds(after).checked_add(*period).ok(),
            Times::Fields { .. } => self.next_on_the_wall(after),
        }
    }

    /// The last of the times that come after one time and not after another.
    pub fn last_between(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        if let Times::Every(period) = &self.times {
            let first = whole_seconds(after);
            let count = until.duration_since(first).as_secs().div_euclid(period.as_secs());
            let passed = SignedDuration::from_secs(count.checked_mul(period.as_secs())?);
            return (count > 0).then(|| first.checked_add(passed).ok()).flatten();
        }
        // The last time is looked for in the last minute, then in the last two, four and so on.
        let mut back = SignedDuration::from_mins(1);
        let mut found = loop {
            let from = until.checked_sub(back).unwrap_or(Timestamp::MIN).max(after);
            match self.next_after(from).filter(|time| *time <= until) {
                Some(time) => break time,
                None if from == after => return None,
                None => back = back.checked_mul(2).unwrap_or(SignedDuration::MAX),
            }
        };
        while let Some(later) = self.next_after(found).filter(|time| *time <= until) {
            found = later;
        }
        Some(found)
    }

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("empty spec string".to_owned());
        }
        let (mut rest, mut place) = (text, TimeZone::UTC);
        if let Some(named) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
            let Some((name, after)) = named.split_once(' ') else {
                return Err(
                    "invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned()
                );
            };
            place = zone(name).map_err(|why| format!("provided bad location {name}: {why}"))?;
            rest = after.trim();
        }
        let times = if rest.starts_with('@') { Times::named(rest)? } else { Times::of_fields(rest)? };
        Ok(Self { zone: place, times })
    }

    /// Goes from each time that does not fit to the next that might, but never past a moment at which the clocks are changed.
    fn next_on_the_wall(&self, after: Timestamp) -> Option<Timestamp> {
        let mut time = whole_seconds(after).checked_add(SignedDuration::from_secs(1)).ok()?;
        let last_year = self.zone.to_datetime(time).year().saturating_add(YEARS_MAX);
        let following = |time| self.zone.following(time).next().map(|change| change.timestamp());
        let mut change = following(time);
        loop {
            if change.is_some_and(|change| change <= time) {
                change = following(time);
            }
            let offset = self.zone.to_offset(time);
            let wall = offset.to_datetime(time);
            if wall.year() > last_year {
                return None;
            }
            let Some(next) = self.times.not_before(wall) else { return Some(time) };
            let next = offset.to_timestamp(next.ok()?).ok()?;
            time = change.map_or(next, |change| change.min(next));
        }
    }
}

impl Times {
    fn named(name: &str) -> Result<Self, String> {
        let fields = match name {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            _ => return Self::every(name),
        };
        Self::of_fields(fields)
    }

    fn every(name: &str) -> Result<Self, String> {
        let Some(text) = name.strip_prefix("@every ") else {
            return Err(format!("unrecognized descriptor: {name}"));
        };
        let period = duration::read(text).map_err(|why| format!("failed to parse duration {name}: {why}"))?;
        Ok(Self::Every(SignedDuration::from_secs(period.as_secs().max(1))))
    }

    fn of_fields(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let &[minute, hour, day, month, weekday] = fields.as_slice() else {
            let found = fields.len();
            return Err(format!("expected exactly 5 fields, found {found}: [{}]", fields.join(" ")));
        };
        Ok(Self::Fields {
            minute: Field::read(minute, &field::MINUTES)?,
            hour: Field::read(hour, &field::HOURS)?,
            day: Field::read(day, &field::DAYS)?,
            month: Field::read(month, &field::MONTHS)?,
            weekday: Field::read(weekday, &field::WEEKDAYS)?,
        })
    }

    /// The time on the same clock before which nothing fits, if this one does not fit.
    fn not_before(&self, wall: DateTime) -> Option<Result<DateTime, jiff::Error>> {
        let Self::Fields { minute, hour, day, month, weekday } = self else { return None };
        let midnight = |date: Result<jiff::civil::Date, jiff::Error>| {
            date.map(|date| date.to_datetime(time(0, 0, 0, 0)))
        };
        let o_clock = |hour: i8, minute: i8| Ok(wall.date().to_datetime(time(hour, minute, 0, 0)));
        let next_hour =
            || o_clock(wall.hour(), 0).and_then(|hour| hour.checked_add(SignedDuration::from_hours(1)));
        if !month.has(wall.month()) {
            return Some(midnight(wall.date().last_of_month().tomorrow()));
        }
        let (by_month, by_week) = (day.has(wall.day()), weekday.has(wall.weekday().to_sunday_zero_offset()));
        let either = !day.is_any && !weekday.is_any;
        if !(by_month && by_week || either && (by_month || by_week)) {
            return Some(midnight(wall.date().tomorrow()));
        }
        match hour.first_from(wall.hour()) {
            Some(hour) if hour == wall.hour() => {}
            Some(hour) => return Some(o_clock(hour, 0)),
            None => return Some(midnight(wall.date().tomorrow())),
        }
        match minute.first_from(wall.minute() + i8::from(wall.second() > 0)) {
            Some(minute) if minute == wall.minute() => {}
            Some(minute) => return Some(o_clock(wall.hour(), minute)),
            None => return Some(next_hour()),
        }
        None
    }
}

/// A time zone of exactly this name. `Local` is that of the machine on which controllers run, which is UTC.
fn zone(name: &str) -> Result<TimeZone, String> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(TimeZone::UTC);
    }
    // Zones are found regardless of case here, but not by Kubernetes.
    match TimeZone::get(name) {
        Ok(zone) if zone.iana_name() == Some(name) => Ok(zone),
        _ => Err(format!("unknown time zone {name}")),
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    let seconds = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
    Timestamp::from_second(seconds).unwrap_or(time)
}
