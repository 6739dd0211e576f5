//! Durations and timestamps as Go reads and writes them.

use jiff::Timestamp;
use std::fmt::Write as _;

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
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
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
    let mut nanoseconds: i32 = 0;
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
    let local = date.at(hour, minute, second, 0).to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    let time = Timestamp::new(local.timestamp().as_second().checked_sub(offset)?, nanoseconds).ok()?;
    in_range(time)
}

/// Seconds east of UTC.
fn parse_offset(text: &str) -> Option<i64> {
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
            .then(|| digits.parse::<i64>().ok())?
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// First and last second that a timestamp may have: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// The time if it is within the years 1 to 9999.
pub(crate) fn in_range(time: Timestamp) -> Option<Timestamp> {
    SECONDS.contains(&time.as_second()).then_some(time)
}

/// The time that is so many nanoseconds later.
pub(crate) fn add(time: Timestamp, nanoseconds: i64) -> Option<Timestamp> {
    let total = time.as_nanosecond().checked_add(i128::from(nanoseconds))?;
    in_range(Timestamp::from_nanosecond(total).ok()?)
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

/// A time in RFC 3339 with as many digits of a second as it needs.
pub(crate) fn timestamp_text(time: Timestamp) -> String {
    let utc = time.to_zoned(jiff::tz::TimeZone::UTC);
    let mut text = utc.strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let nanoseconds = time.as_nanosecond().rem_euclid(1_000_000_000);
    if nanoseconds != 0 {
        let digits = format!("{nanoseconds:09}");
        let _ = write!(text, ".{}", digits.trim_end_matches('0'));
    }
    text.push('Z');
    text
}
