//! Resource quantities: `500m`, `1.5Gi`, `12e6`.
//!
//! Reads what kube-apiserver reads, with its errors, and writes the form that it writes. Values are exact
//! decimals of any length; precision below a billionth is rounded away from zero, and quantities with a
//! binary suffix stop at 2^63-1. `arithmetic` compares and adds them.

mod arithmetic;

use serde_json::Value;
use std::fmt;

const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";

/// The smallest part kept: 10^-9.
const EXPONENT_MIN: i64 = -9;

/// An amount and the notation it was written in.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    negative: bool,
    /// Decimal digits, most significant first, no leading zeros; none for zero.
    digits: Vec<u8>,
    /// The power of ten of the last digit.
    exponent: i64,
    notation: Notation,
    /// The text it was read from, where Kubernetes keeps that as canonical.
    text: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Decimal,
    Binary,
    Exponent,
}

/// The parts of a quantity's text.
struct Parts<'a> {
    negative: bool,
    /// Digits before the point without leading zeros; `0` if there are none.
    whole: &'a str,
    /// Digits behind the point.
    fraction: &'a str,
    suffix: &'a str,
}

impl Quantity {
    /// Nothing.
    pub(crate) const ZERO: Quantity = Quantity {
        negative: false,
        digits: Vec::new(),
        exponent: 0,
        notation: Notation::Decimal,
        text: None,
    };

    /// Reads a quantity of a JSON object; none if the value is not one.
    pub(crate) fn read(value: &Value) -> Option<Quantity> {
        match value {
            Value::String(text) => Self::parse(text).ok(),
            Value::Number(number) => Self::parse(&number.to_string()).ok(),
            _ => None,
        }
    }

    /// Reads a quantity.
    pub(crate) fn parse(text: &str) -> Result<Quantity, &'static str> {
        let parts = split(text)?;
        let (notation, power) = read_suffix(parts.suffix).ok_or(WRONG_SUFFIX)?;
        if keeps_text(&parts, notation, power) {
            return Ok(Quantity { text: Some(text.to_owned()), ..exact(&parts, notation, power)? });
        }
        exact(&parts, notation, power)
    }

    /// Whether the amount is zero.
    pub(crate) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The whole part of the magnitude, if it is below 2^64.
    fn whole_part(&self) -> Option<u64> {
        let kept = usize::try_from(signed(self.digits.len()) + self.exponent.min(0)).unwrap_or(0);
        let mut value = 0u64;
        for digit in &self.digits[..kept] {
            value = value.checked_mul(10)?.checked_add(u64::from(*digit))?;
        }
        for _ in 0..if value == 0 { 0 } else { self.exponent.max(0) } {
            value = value.checked_mul(10)?;
        }
        Some(value)
    }
}

/// The length of something in memory, which is far below 2^63.
fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// The canonical form of a quantity's text, or none if it has that form already.
pub(crate) fn canonical(text: &str) -> Result<Option<String>, &'static str> {
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() && !c.is_ascii_control());
    let parts = split(trimmed)?;
    let (notation, power) = read_suffix(parts.suffix).ok_or(WRONG_SUFFIX)?;
    if keeps_text(&parts, notation, power) || is_plain_binary(trimmed, &parts, notation) || trimmed == "0" {
        return Ok((trimmed.len() != text.len()).then(|| trimmed.to_owned()));
    }
    let written = exact(&parts, notation, power)?.to_string();
    Ok((written != text).then_some(written))
}

/// `512Mi`: canonical, and too common to be worked out each time.
fn is_plain_binary(text: &str, parts: &Parts<'_>, notation: Notation) -> bool {
    notation == Notation::Binary
        && parts.suffix != "Ei"
        && parts.whole.len() <= 3
        && parts.whole != "0"
        && text.len() == parts.whole.len() + parts.suffix.len()
}

fn split(text: &str) -> Result<Parts<'_>, &'static str> {
    if text.is_empty() {
        return Err(WRONG_FORMAT);
    }
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text).trim_start_matches('0');
    let (mut whole, mut rest) = split_digits(unsigned);
    if whole.is_empty() {
        whole = "0";
    }
    let mut fraction = "";
    if let Some(behind) = rest.strip_prefix('.') {
        (fraction, rest) = split_digits(behind);
    }
    let power = rest.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let (_, beyond) = split_digits(power.strip_prefix(['-', '+']).unwrap_or(power));
    if !beyond.is_empty() {
        return Err(WRONG_FORMAT);
    }
    Ok(Parts { negative, whole, fraction, suffix: rest })
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn read_suffix(suffix: &str) -> Option<(Notation, i64)> {
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    if let Some(at) = decimal.iter().position(|s| *s == suffix) {
        return Some((Notation::Decimal, signed(at) * 3 - 9));
    }
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(at) = binary.iter().position(|s| *s == suffix) {
        return Some((Notation::Binary, signed(at) * 10 + 10));
    }
    let power: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "Kubernetes keeps the low 32 bits")]
    Some((Notation::Exponent, i64::from(power as i32)))
}

/// Whether Kubernetes takes the text itself for canonical, which it does rather generously (`1.500`).
fn keeps_text(parts: &Parts<'_>, notation: Notation, power: i64) -> bool {
    let digits = signed(parts.whole.len() + parts.fraction.len());
    if notation == Notation::Binary {
        let room = 15 - digits - power * 3 / 10 - 1;
        let odd = parts.whole.parse::<u64>().is_ok_and(|value| value & 7 != 0);
        return parts.fraction.is_empty() && room >= 0 && odd;
    }
    let scale = power - signed(parts.fraction.len());
    let zeros = parts.whole.bytes().chain(parts.fraction.bytes()).rev().take_while(|b| *b == b'0').count();
    digits <= 18 && scale >= EXPONENT_MIN && scale % 3 == 0 && zeros < 3 && !parts.whole.starts_with('0')
}

fn exact(parts: &Parts<'_>, notation: Notation, power: i64) -> Result<Quantity, &'static str> {
    if parts.fraction.len() > i32::MAX as usize {
        return Err(WRONG_NUMBER);
    }
    let digits = parts.whole.bytes().chain(parts.fraction.bytes()).map(|b| b - b'0');
    let mut amount = Quantity {
        negative: parts.negative,
        digits: digits.skip_while(|d| *d == 0).collect(),
        exponent: -signed(parts.fraction.len()),
        notation,
        text: None,
    };
    if notation == Notation::Binary {
        multiply(&mut amount.digits, 1 << power);
    } else {
        amount.exponent += power;
    }
    round_up(&mut amount, EXPONENT_MIN);
    if notation == Notation::Binary {
        let limit = i64::MAX.unsigned_abs();
        if amount.whole_part().is_none_or(|whole| whole > limit || whole == limit && !amount.is_whole()) {
            amount.digits = limit.to_string().bytes().map(|b| b - b'0').collect();
            amount.exponent = 0;
        }
    }
    Ok(amount)
}

fn multiply(digits: &mut Vec<u8>, factor: u64) {
    let mut carry = 0u128;
    let mut product = Vec::with_capacity(digits.len() + 20);
    for digit in digits.iter().rev() {
        carry += u128::from(*digit) * u128::from(factor);
        product.push((carry % 10) as u8);
        carry /= 10;
    }
    while carry > 0 {
        product.push((carry % 10) as u8);
        carry /= 10;
    }
    product.reverse();
    *digits = product;
}

/// Rounds away from zero to a multiple of this power of ten.
fn round_up(amount: &mut Quantity, power: i64) {
    if amount.is_zero() || amount.exponent >= power {
        return;
    }
    let excess = usize::try_from(power - amount.exponent).unwrap_or(usize::MAX);
    let kept = amount.digits.len().saturating_sub(excess);
    let inexact = kept == 0 || amount.digits[kept..].iter().any(|d| *d != 0);
    amount.digits.truncate(kept);
    amount.exponent = power;
    if inexact {
        add_one(&mut amount.digits);
    }
}

fn add_one(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return;
        }
        *digit = 0;
    }
    digits.insert(0, 1);
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.negative {
            f.write_str("-")?;
        }
        if self.notation == Notation::Binary
            && self.is_whole()
            && let Some(mut value) = self.whole_part().filter(|value| *value >= 1024)
        {
            let mut power = 0;
            while value % 1024 == 0 {
                value /= 1024;
                power += 1;
            }
            return write!(f, "{value}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
        }
        self.write_decimal(f)
    }
}

impl Quantity {
    fn write_decimal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zeros = self.digits.iter().rev().take_while(|d| **d == 0).count();
        let exponent = self.exponent + signed(zeros);
        for digit in &self.digits[..self.digits.len() - zeros] {
            write!(f, "{digit}")?;
        }
        // The exponent is brought down to a multiple of three.
        let padding = exponent.rem_euclid(3);
        for _ in 0..padding {
            f.write_str("0")?;
        }
        match (self.notation, exponent - padding) {
            (_, 0) => Ok(()),
            (Notation::Exponent, power) => write!(f, "e{power}"),
            // Powers that have no suffix are written without one, as Kubernetes does.
            (_, power) => f.write_str(match power {
                -9 => "n",
                -6 => "u",
                -3 => "m",
                3 => "k",
                6 => "M",
                9 => "G",
                12 => "T",
                15 => "P",
                18 => "E",
                _ => "",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lines of text, whether it parses, and the canonical form or the error; made with the Go library.
    #[test]
    fn quantities_are_read_and_written_as_go_does() {
        for line in include_str!("../../../testdata/quantities.tsv").lines() {
            let mut columns = line.split('\t');
            let (text, outcome, expected) =
                (columns.next().unwrap(), columns.next().unwrap(), columns.next().unwrap());
            let actual = Quantity::parse(text).map(|q| q.to_string());
            let through = canonical(text).map(|changed| changed.unwrap_or_else(|| text.to_owned()));
            if text.trim() != text {
                assert_eq!(
                    (through.as_deref(), actual),
                    (Ok("1"), Err(expected)),
                    "only JSON may have spaces"
                );
                continue;
            }
            let expected = if outcome == "ok" { Ok(expected) } else { Err(expected) };
            assert_eq!(actual.as_deref().map_err(|e| *e), expected, "{text:?}");
            assert_eq!(through.as_deref().map_err(|e| *e), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
            let _ = canonical(&text);
        }

        #[test]
        fn the_canonical_form_is_stable(text in "[+-]?[0-9]{0,22}[.]?[0-9]{0,14}(e[0-9]|Ki|Gi|Ei|m|n|k|E)?") {
            if let Ok(Some(changed)) = canonical(&text) {
                prop_assert_eq!(canonical(&changed), Ok(None));
            }
        }
    }
}
