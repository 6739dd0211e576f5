//! One of the five fields of a schedule: `*/5`, `MON-FRI`, `1,15`.

use crate::field::go_quote;

/// What numbers a field can have.
pub(super) struct Bounds {
    low: u64,
    high: u64,
    /// Names for numbers, counted from `low`.
    names: &'static [&'static str],
}

pub(super) const MINUTES: Bounds = Bounds { low: 0, high: 59, names: &[] };
pub(super) const HOURS: Bounds = Bounds { low: 0, high: 23, names: &[] };
pub(super) const DAYS: Bounds = Bounds { low: 1, high: 31, names: &[] };
pub(super) const MONTHS: Bounds = Bounds {
    low: 1,
    high: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
pub(super) const WEEKDAYS: Bounds =
    Bounds { low: 0, high: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// The numbers that a field names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// A bit for each.
    numbers: u64,
    /// It is `*` or `?`, which restrict nothing.
    pub(super) is_any: bool,
}

impl Field {
    /// Reads a field; the error is the sentence for the user.
    pub(super) fn read(text: &str, bounds: &Bounds) -> Result<Self, String> {
        let mut field = Self::default();
        for range in text.split(',').filter(|range| !range.is_empty()) {
            field.add(range, bounds)?;
        }
        Ok(field)
    }

    /// Whether it names this number.
    pub(super) fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.numbers >> number & 1 == 1)
    }

    /// The first number that it names, from this one on.
    pub(super) fn first_from(self, number: i8) -> Option<i8> {
        let left = self.numbers.checked_shr(u32::try_from(number).ok()?).filter(|left| *left != 0)?;
        number.checked_add(i8::try_from(left.trailing_zeros()).ok()?)
    }

    fn add(&mut self, text: &str, bounds: &Bounds) -> Result<(), String> {
        let parts: Vec<&str> = text.split('/').collect();
        let ends: Vec<&str> = parts[0].split('-').collect();
        let is_any = matches!(ends[0], "*" | "?");
        let (start, mut end) = if is_any {
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
        let mut number = start;
        // A step may be larger than any number that there is room for.
        while number <= end {
            self.numbers |= 1 << number;
            number = number.saturating_add(step);
        }
        self.is_any |= is_any && step == 1;
        Ok(())
    }
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
            let quoted = go_quote(text);
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: {why}"))
        }
    }
}
