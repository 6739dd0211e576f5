//! Durations as Go writes them, and in words.

use super::pattern;
use regex::Regex;
use std::sync::LazyLock;

/// Nanoseconds of a duration as Go writes it (`1h30m`, `-1.5s`), or with units in words (`3 days`).
pub(crate) fn parse_duration(text: &str) -> Option<i128> {
    parse_go_duration(text).or_else(|| parse_worded_duration(text))
}

/// Nanoseconds of a duration as `time.ParseDuration` reads it.
fn parse_go_duration(text: &str) -> Option<i128> {
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
    let limit = i128::from(i64::MAX) + i128::from(negative);
    (total <= limit).then_some(if negative { -total } else { total })
}

fn parse_worded_duration(text: &str) -> Option<i128> {
    pattern!(WORDED, r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)");
    const UNITS: [(&[&str], i128); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], 1_000_000_000),
        (&["m", "min"], 60_000_000_000),
        (&["h", "hr", "hour"], 3_600_000_000_000),
        (&["d", "day"], 86_400_000_000_000),
        (&["w", "wk", "week"], 604_800_000_000_000),
    ];
    let mut total = None;
    for found in WORDED.captures_iter(text) {
        let factor: i64 = found[1].parse().ok()?;
        let unit = found[2].to_lowercase();
        for (names, scale) in UNITS {
            let prefixed = names.last().is_some_and(|last| unit.starts_with(last));
            if prefixed || names.contains(&unit.as_str()) {
                total = Some(total.unwrap_or(0) + i128::from(factor) * scale);
            }
        }
    }
    total
}
