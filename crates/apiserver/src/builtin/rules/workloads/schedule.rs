//! Cron schedules: five fields, or a name such as `@daily`. Only whether they can be read, and if not, why.

use jiff::tz::TimeZone;

struct Bounds {
    low: u64,
    high: u64,
    /// Names for numbers, counted from `low`.
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds { low: 0, high: 59, names: &[] },
    Bounds { low: 0, high: 23, names: &[] },
    Bounds { low: 1, high: 31, names: &[] },
    Bounds {
        low: 1,
        high: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Bounds { low: 0, high: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];
const NAMED: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Reads a schedule; the error is the sentence for the user.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    if schedule.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let mut rest = schedule;
    if let Some(zone) = schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) {
        let Some((zone, after)) = zone.split_once(' ') else {
            return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned());
        };
        check_zone(zone).map_err(|why| format!("provided bad location {zone}: {why}"))?;
        rest = after.trim();
    }
    if rest.starts_with('@') {
        return check_named(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = fields.len();
        return Err(format!("expected exactly 5 fields, found {found}: [{}]", fields.join(" ")));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for range in field.split(',').filter(|range| !range.is_empty()) {
            check_range(range, bounds)?;
        }
    }
    Ok(())
}

/// Whether a time zone of exactly this name is known.
pub(super) fn check_zone(name: &str) -> Result<(), String> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(());
    }
    // Zones are found regardless of case here, but not by the real server.
    match TimeZone::get(name) {
        Ok(zone) if zone.iana_name() == Some(name) => Ok(()),
        _ => Err(format!("unknown time zone {name}")),
    }
}

fn check_named(name: &str) -> Result<(), String> {
    if NAMED.contains(&name) {
        return Ok(());
    }
    let Some(duration) = name.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {name}"));
    };
    check_duration(duration).map_err(|why| format!("failed to parse duration {name}: {why}"))
}

/// A duration as Go writes it: `1h30m`.
fn check_duration(text: &str) -> Result<(), String> {
    let quoted = crate::field::go_quote(text);
    let invalid = || format!("time: invalid duration {quoted}");
    let mut rest = text.trim_start_matches(['-', '+']);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() || text.len() > rest.len() + 1 {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(unit_at);
        if !number.bytes().any(|b| b.is_ascii_digit()) || number.matches('.').count() > 1 {
            return Err(invalid());
        }
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        match unit {
            "" => return Err(format!("time: missing unit in duration {quoted}")),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = after,
            other => {
                let unit = crate::field::go_quote(other);
                return Err(format!("time: unknown unit {unit} in duration {quoted}"));
            }
        }
    }
    Ok(())
}

fn check_range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = if matches!(ends[0], "*" | "?") {
        (bounds.low, bounds.high)
    } else {
        let start = number_or_name(ends[0], bounds)?;
        match ends.as_slice() {
            [_] => (start, start),
            [_, end] => (start, number_or_name(end, bounds)?),
            _ => return Err(format!("too many hyphens: {text}")),
        }
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            // `5/10` goes on to the end.
            if ends.len() == 1 {
                end = bounds.high;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < bounds.low {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.low));
    }
    if end > bounds.high {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.high));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    match bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        Some(index) => Ok(bounds.low + index as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(error) => {
            let why = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            let quoted = crate::field::go_quote(text);
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use expect_test::expect;

    #[test]
    fn schedules_are_read_as_cron_reads_them() {
        let schedules = [
            "*/5 * * * *",
            "0 0 1 JAN MON-FRI",
            "@hourly",
            "@every 1h30m",
            "1,,2 * * * *",
            "x",
            "60 * * * *",
            "5-2 * * * *",
            "*/0 * * * *",
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "@foo",
            "@every x",
            "@every 5",
            "a * * * *",
            "-1 * * * *",
            "* * 0 * *",
            "99999999999999999999 * * * *",
            "TZ=UTC",
            "CRON_TZ=Foo/Bar * * * * *",
        ];
        let read: Vec<String> = schedules
            .iter()
            .map(|s| format!("{s} => {}\n", check(s).err().unwrap_or_else(|| "fine".to_owned())))
            .collect();
        expect![[r#"
            */5 * * * * => fine
            0 0 1 JAN MON-FRI => fine
            @hourly => fine
            @every 1h30m => fine
            1,,2 * * * * => fine
            x => expected exactly 5 fields, found 1: [x]
            60 * * * * => end of range (60) above maximum (59): 60
            5-2 * * * * => beginning of range (5) beyond end of range (2): 5-2
            */0 * * * * => step of range should be a positive number: */0
            1-2-3 * * * * => too many hyphens: 1-2-3
            1/2/3 * * * * => too many slashes: 1/2/3
            @foo => unrecognized descriptor: @foo
            @every x => failed to parse duration @every x: time: invalid duration "x"
            @every 5 => failed to parse duration @every 5: time: missing unit in duration "5"
            a * * * * => failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax
            -1 * * * * => failed to parse int from : strconv.Atoi: parsing "": invalid syntax
            * * 0 * * => beginning of range (0) below minimum (1): 0
            99999999999999999999 * * * * => failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range
            TZ=UTC => invalid schedule format: runtime error: slice bounds out of range [:-1]
            CRON_TZ=Foo/Bar * * * * * => provided bad location Foo/Bar: unknown time zone Foo/Bar
        "#]]
        .assert_eq(&read.concat());
    }
}
