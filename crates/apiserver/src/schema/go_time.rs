//! Times as Go's `time.Parse(time.RFC3339, …)` reads them, with its errors.

use crate::field::go_quote;
use jiff::Timestamp;

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// Reads a time and returns it in UTC with whole seconds, the form Kubernetes writes.
pub(super) fn parse_rfc3339(text: &str) -> Result<String, String> {
    let cannot = |rest: &str, element: &str| {
        let (text, rest) = (go_quote(text), go_quote(rest));
        format!("parsing time {text} as {LAYOUT:?}: cannot parse {rest} as {element:?}")
    };
    let out_of_range = |what: &str| format!("parsing time {}: {what} out of range", go_quote(text));
    let parts =
        [("2006", 4, "-"), ("01", 2, "-"), ("02", 2, "T"), ("15", 2, ":"), ("04", 2, ":"), ("05", 2, "")];
    let mut rest = text;
    let mut numbers = [0_u16; 6];
    for (number, (element, width, after)) in numbers.iter_mut().zip(parts) {
        let digits = rest.get(..width).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        *number = digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| cannot(rest, element))?;
        check_part(element, *number).map_err(out_of_range)?;
        rest = &rest[width..];
        rest = rest.strip_prefix(after).ok_or_else(|| cannot(rest, after))?;
    }
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        if end > 0 {
            rest = &fraction[end..];
        }
    }
    let offset = parse_offset(rest).ok_or_else(|| cannot(rest, "Z07:00"))?;
    let [year, month, day, hour, minute, second] = numbers.map(i64::from);
    let narrow = |number: i64| i8::try_from(number).unwrap_or(i8::MAX);
    let year = i16::try_from(year).unwrap_or(i16::MAX);
    let date = jiff::civil::Date::new(year, narrow(month), narrow(day)).map_err(|_| out_of_range("day"))?;
    let local = date.at(narrow(hour), narrow(minute), narrow(second), 0);
    let utc = local.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| out_of_range("day"))?;
    let time =
        Timestamp::from_second(utc.timestamp().as_second() - offset).map_err(|_| out_of_range("day"))?;
    Ok(time.to_string())
}

fn check_part(element: &str, number: u16) -> Result<(), &'static str> {
    let (fine, name) = match element {
        "01" => ((1..=12).contains(&number), "month"),
        "02" => ((1..=31).contains(&number), "day"),
        "15" => (number < 24, "hour"),
        "04" => (number < 60, "minute"),
        "05" => (number < 60, "second"),
        _ => (true, ""),
    };
    if fine { Ok(()) } else { Err(name) }
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

#[cfg(test)]
mod tests {
    use super::parse_rfc3339;

    #[test]
    fn times_are_read_and_refused_as_go_does() {
        assert_eq!(parse_rfc3339("2020-01-02T03:04:05.9+01:00").unwrap(), "2020-01-02T02:04:05Z");
        let cases = [
            ("x", r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#),
            ("2020-13-01T00:00:00Z", r#"parsing time "2020-13-01T00:00:00Z": month out of range"#),
            (
                "2020-01-01 00:00:00Z",
                r#"parsing time "2020-01-01 00:00:00Z" as "2006-01-02T15:04:05Z07:00": cannot parse " 00:00:00Z" as "T""#,
            ),
            (
                "2020-01-01T00:00:00",
                r#"parsing time "2020-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00""#,
            ),
            ("2020-02-30T00:00:00Z", r#"parsing time "2020-02-30T00:00:00Z": day out of range"#),
        ];
        for (text, error) in cases {
            assert_eq!(parse_rfc3339(text).unwrap_err(), error);
        }
    }
}
