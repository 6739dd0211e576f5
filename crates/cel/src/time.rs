//! Durations and timestamps as Go reads and writes them.

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use std::cmp::Ordering;
use std::fmt::Write as _;

/// First and last second that a timestamp may have: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
const NANOSECONDS: i128 = 1_000_000_000;

/// A point in time of the years 1 to 9999. Times with different offsets can be equal.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Nanoseconds since 1970.
    nanoseconds: i128,
    /// The offset that it was written with, in seconds east of UTC. It is only seen when the time is written again.
    offset: i32,
}

impl PartialEq for Time {
    fn eq(&self, other: &Self) -> bool {
        self.nanoseconds == other.nanoseconds
    }
}

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanoseconds.cmp(&other.nanoseconds)
    }
}

impl Time {
    /// The time at a number of seconds since 1970; none outside of the years 1 to 9999.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        Self::new(i128::from(seconds) * NANOSECONDS, 0)
    }

    fn new(nanoseconds: i128, offset: i32) -> Option<Self> {
        let time = Time { nanoseconds, offset };
        SECONDS.contains(&time.seconds()).then_some(time)
    }

    /// Whole seconds since 1970.
    pub fn seconds(self) -> i64 {
        i64::try_from(self.nanoseconds.div_euclid(NANOSECONDS)).unwrap_or(i64::MAX)
    }

    /// The part of a second.
    pub(crate) fn subsecond(self) -> i128 {
        self.nanoseconds.rem_euclid(NANOSECONDS)
    }

    /// The time after a number of nanoseconds.
    pub(crate) fn plus(self, nanoseconds: i64) -> Option<Self> {
        Self::new(self.nanoseconds.checked_add(i128::from(nanoseconds))?, self.offset)
    }

    /// The nanoseconds from another time to this.
    pub(crate) fn since(self, other: Self) -> Option<i64> {
        i64::try_from(self.nanoseconds - other.nanoseconds).ok()
    }

    /// Date and time of day in a zone.
    pub(crate) fn local(self, zone: &TimeZone) -> DateTime {
        let (first, last) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
        let near = jiff::Timestamp::from_second(self.seconds().clamp(first, last)).unwrap_or_default();
        self.with_offset(zone.to_offset(near).seconds())
    }

    fn with_offset(self, offset: i32) -> DateTime {
        let seconds = self.seconds().saturating_add(i64::from(offset));
        date(1970, 1, 1).at(0, 0, 0, 0).saturating_add(SignedDuration::from_secs(seconds))
    }

    /// The time in UTC, in RFC 3339.
    pub fn utc_text(self) -> String {
        Time { offset: 0, ..self }.text()
    }

    /// The time in RFC 3339 with as many digits of a second as it needs, and the offset it was read with.
    pub(crate) fn text(self) -> String {
        let mut text = self.with_offset(self.offset).strftime("%Y-%m-%dT%H:%M:%S").to_string();
        let subsecond = self.subsecond();
        if subsecond != 0 {
            let digits = format!("{subsecond:09}");
            let _ = write!(text, ".{}", digits.trim_end_matches('0'));
        }
        let minutes = self.offset.abs() / 60;
        let sign = if self.offset < 0 { '-' } else { '+' };
        match self.offset {
            0 => text.push('Z'),
            _ => drop(write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)),
        }
        text
    }
}

/// Nanoseconds of a duration like `1h30m`, as Go's `time.ParseDuration` reads it.
pub fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let unit_len = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_len);
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(scale)?)?;
        let mut unit_value = scale;
        for digit in fraction.bytes() {
            unit_value /= 10;
            total = total.checked_add(unit_value * i128::from(digit - b'0'))?;
        }
        rest = next;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// A time like `2024-01-02T03:04:05.6+01:00`, as Go reads RFC 3339, within the years 1 to 9999.
pub fn parse_timestamp(text: &str) -> Option<Time> {
    // Go reads an hour of one digit, too.
    if text.as_bytes().get(12) == Some(&b':') && text.is_char_boundary(11) {
        let (date, time) = text.split_at(11);
        return parse_timestamp(&format!("{date}0{time}"));
    }
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
        digits.parse::<i16>().ok()
    };
    let is = |at: usize, byte: u8| text.as_bytes().get(at) == Some(&byte);
    if !(is(4, b'-') && is(7, b'-') && is(10, b'T') && is(13, b':') && is(16, b':')) {
        return None;
    }
    let two = |at: usize| number(at, at + 2).and_then(|number| i8::try_from(number).ok());
    let date = jiff::civil::Date::new(number(0, 4)?, two(5)?, two(8)?).ok()?;
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut nanoseconds: i128 = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        if end == 0 {
            return None;
        }
        let digits: String = fraction.chars().take(end.min(9)).collect();
        nanoseconds = format!("{digits:0<9}").parse().ok()?;
        rest = &fraction[end..];
    }
    let offset = parse_offset(rest)?;
    let days = date.duration_since(jiff::civil::date(1970, 1, 1)).as_hours() / 24;
    let seconds = ((days * 24 + i64::from(hour)) * 60 + i64::from(minute)) * 60 + i64::from(second);
    Time::new(i128::from(seconds - i64::from(offset)) * NANOSECONDS + nanoseconds, offset)
}

/// Seconds east of UTC.
fn parse_offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let two = |digits: &str| {
        (digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit()))
            .then(|| digits.parse::<i32>().ok())?
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// A duration in seconds, as `string(duration)` writes it.
pub(crate) fn duration_text(nanoseconds: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "as Go does it")]
    let seconds = nanoseconds as f64 / 1e9;
    format!("{}s", plain_float(seconds))
}

/// A float in decimal notation without an exponent.
pub(crate) fn plain_float(float: f64) -> String {
    // The standard library never writes exponents with `{}`.
    format!("{float}")
}
