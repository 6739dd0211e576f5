//! Points in time as Kubernetes writes them: RFC 3339 in UTC, to the second or to the microsecond.
//!
//! Reads what Go's `time.Parse` reads with those layouts, and refuses the rest in its words.

use jiff::{SignedDuration, Timestamp, civil, tz::Offset};
use std::fmt::Write as _;

/// How finely a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// `metav1.Time`.
    Second,
    /// `metav1.MicroTime`.
    Microsecond,
}

impl Precision {
    const fn layout(self) -> &'static str {
        match self {
            Precision::Second => "2006-01-02T15:04:05Z07:00",
            Precision::Microsecond => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// What a time reads as.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Normal {
    /// It is written as Kubernetes writes it.
    AsIs,
    /// Kubernetes writes it so.
    Rewritten(String),
    /// Go's zero time, which is written as `null`.
    Zero,
}

/// Brings a time to the form that Kubernetes writes.
pub(crate) fn normalise(text: &str, precision: Precision) -> Result<Normal, String> {
    if is_normal(text, precision) && !text.starts_with("0001-01-01T00:00:00") {
        return Ok(Normal::AsIs);
    }
    let parsed = Parser { text, rest: text, precision }.parse()?;
    let Some(instant) = parsed else { return Ok(Normal::AsIs) };
    // Year 1, which Go counts from.
    if instant.as_second() == -62_135_596_800 && instant.subsec_nanosecond() == 0 {
        return Ok(Normal::Zero);
    }
    let written = render(instant, precision);
    Ok(if written == text { Normal::AsIs } else { Normal::Rewritten(written) })
}

/// A time as Kubernetes writes it; finer parts are cut off.
pub(crate) fn render(instant: Timestamp, precision: Precision) -> String {
    let at = Offset::UTC.to_datetime(instant);
    let mut text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    if precision == Precision::Microsecond {
        // Writing to a String cannot fail.
        let _ = write!(text, ".{:06}", at.subsec_nanosecond() / 1000);
    }
    text.push('Z');
    text
}

/// Whether a text has the normal form to the letter and all numbers are in range for every month.
fn is_normal(text: &str, precision: Precision) -> bool {
    let pattern: &[u8] = match precision {
        Precision::Second => b"dddd-dd-ddTdd:dd:ddZ",
        Precision::Microsecond => b"dddd-dd-ddTdd:dd:dd.ddddddZ",
    };
    let bytes = text.as_bytes();
    let shaped = bytes.len() == pattern.len()
        && bytes.iter().zip(pattern).all(|(b, p)| if *p == b'd' { b.is_ascii_digit() } else { b == p });
    let number = |at: usize| (bytes[at] - b'0') * 10 + bytes[at + 1] - b'0';
    shaped
        && (1..=12).contains(&number(5))
        && (1..=28).contains(&number(8))
        && number(11) < 24
        && number(14) < 60
        && number(17) < 60
}

/// Quotes as Go's time library does, which is not how the rest of Go does.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            0x20..0x80 => out.push(char::from(byte)),
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

/// Reads a text from left to right, so that errors name the first part that does not fit.
struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    precision: Precision,
}

impl Parser<'_> {
    /// The instant, or none if it lies outside the years that can be counted here.
    fn parse(mut self) -> Result<Option<Timestamp>, String> {
        let year = self.number("2006", 4, 4)?;
        self.literal("-")?;
        let month = self.ranged("01", 2, 1..=12, "month")?;
        self.literal("-")?;
        let day = self.number("02", 2, 2)?;
        self.literal("T")?;
        // Go takes an hour of one digit, too.
        let hour = self.ranged("15", 1, 0..=23, "hour")?;
        self.literal(":")?;
        let minute = self.ranged("04", 2, 0..=59, "minute")?;
        self.literal(":")?;
        let second = self.ranged("05", 2, 0..=59, "second")?;
        let nanosecond = self.fraction()?;
        let offset_s = self.offset()?;
        if !self.rest.is_empty() {
            let extra = quote(self.rest);
            return Err(self.message(&format!("extra text: {extra}")));
        }
        #[expect(clippy::cast_possible_truncation, reason = "each has at most four digits")]
        let date = civil::Date::new(year as i16, month as i8, day as i8);
        let Ok(date) = date else { return Err(self.message("day out of range")) };
        #[expect(clippy::cast_possible_truncation, reason = "each has two digits")]
        let at = date.at(hour as i8, minute as i8, second as i8, nanosecond);
        let local = Offset::UTC.to_timestamp(at).ok();
        Ok(local.and_then(|local| local.checked_sub(SignedDuration::from_secs(offset_s)).ok()))
    }

    fn message(&self, what: &str) -> String {
        format!("parsing time {}: {what}", quote(self.text))
    }

    fn cannot(&self, element: &str) -> String {
        let (text, rest) = (quote(self.text), quote(self.rest));
        let layout = self.precision.layout();
        format!("parsing time {text} as \"{layout}\": cannot parse {rest} as \"{element}\"")
    }

    fn literal(&mut self, literal: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(literal).ok_or_else(|| self.cannot(literal))?;
        Ok(())
    }

    /// A number of `least` to `most` digits.
    fn number(&mut self, element: &str, least: usize, most: usize) -> Result<i64, String> {
        let digits = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if digits < least {
            return Err(self.cannot(element));
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        Ok(number.bytes().fold(0, |value, b| value * 10 + i64::from(b - b'0')))
    }

    fn ranged(
        &mut self,
        element: &str,
        least: usize,
        range: std::ops::RangeInclusive<i64>,
        name: &str,
    ) -> Result<i64, String> {
        let value = self.number(element, least, 2)?;
        if range.contains(&value) { Ok(value) } else { Err(self.message(&format!("{name} out of range"))) }
    }

    fn fraction(&mut self) -> Result<i32, String> {
        let digits = match self.rest.strip_prefix(['.', ',']) {
            Some(behind) => behind.bytes().take_while(u8::is_ascii_digit).count(),
            None => 0,
        };
        let taken = match self.precision {
            Precision::Second if digits == 0 => return Ok(0),
            Precision::Second => digits,
            Precision::Microsecond if digits < 6 => return Err(self.cannot(".000000")),
            Precision::Microsecond => 6,
        };
        let (fraction, rest) = self.rest.split_at(taken + 1);
        self.rest = rest;
        let padded = fraction.bytes().skip(1).chain(std::iter::repeat(b'0')).take(9);
        Ok(padded.fold(0, |value, b| value * 10 + i32::from(b - b'0')))
    }

    /// Seconds east of Greenwich.
    fn offset(&mut self) -> Result<i64, String> {
        const ELEMENT: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bytes = self.rest.as_bytes();
        let digits = |at: usize| bytes[at].is_ascii_digit() && bytes[at + 1].is_ascii_digit();
        if bytes.len() < 6 || bytes[3] != b':' || !digits(1) || !digits(4) || !matches!(bytes[0], b'+' | b'-')
        {
            return Err(self.cannot(ELEMENT));
        }
        let number = |at: usize| i64::from((bytes[at] - b'0') * 10 + bytes[at + 1] - b'0');
        let (hours, minutes) = (number(1), number(4));
        if hours > 24 {
            return Err(self.message("time zone offset hour out of range"));
        }
        if minutes > 60 {
            return Err(self.message("time zone offset minute out of range"));
        }
        let east = bytes[0] == b'+';
        self.rest = &self.rest[6..];
        Ok((hours * 3600 + minutes * 60) * if east { 1 } else { -1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lines of layout, text, `ok` or `error`, and what Go's library makes of it.
    #[test]
    fn times_are_read_and_written_as_go_does() {
        for line in include_str!("../../testdata/times.tsv").lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let [layout, text, outcome, expected] = columns[..] else { panic!("{line:?}") };
            let precision = if layout == "micro" { Precision::Microsecond } else { Precision::Second };
            let actual = match normalise(text, precision) {
                Ok(Normal::AsIs) => ("ok", text.to_owned()),
                Ok(Normal::Rewritten(written)) => ("ok", written),
                Ok(Normal::Zero) => ("ok", "null".to_owned()),
                Err(message) => ("error", message),
            };
            assert_eq!((actual.0, actual.1.as_str()), (outcome, expected), "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9]{0,4}-?[0-9]{0,2}-?[0-9]{0,2}T?\\PC{0,20}") {
            let _ = normalise(&text, Precision::Second);
            let _ = normalise(&text, Precision::Microsecond);
        }
    }
}
