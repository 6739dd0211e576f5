//! Arithmetic on quantities such as `100m` and `1Gi`: comparing, adding, rounding up.

use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;

/// A quantity, exact to a billionth, with the family of suffixes it was written in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    nanos: i128,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Exponent,
    Binary,
}

const NANO: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;
const DECIMAL: [(&str, i128); 10] = [
    ("E", 1_000_000_000_000_000_000 * NANO),
    ("P", 1_000_000_000_000_000 * NANO),
    ("T", 1_000_000_000_000 * NANO),
    ("G", 1_000_000_000 * NANO),
    ("M", 1_000_000 * NANO),
    ("k", 1_000 * NANO),
    ("", NANO),
    ("m", MILLI),
    ("u", 1_000),
    ("n", 1),
];
const BINARY: [(&str, i128); 6] = [
    ("Ei", (1 << 60) * NANO),
    ("Pi", (1 << 50) * NANO),
    ("Ti", (1 << 40) * NANO),
    ("Gi", (1 << 30) * NANO),
    ("Mi", (1 << 20) * NANO),
    ("Ki", (1 << 10) * NANO),
];

impl Quantity {
    /// Nothing.
    pub(crate) const ZERO: Quantity = Quantity { nanos: 0, form: Form::Decimal };

    /// Reads a quantity; none if the value is not one.
    pub(crate) fn read(value: &Value) -> Option<Quantity> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Quantity> {
        let digits = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+')).unwrap_or(text.len());
        let (number, suffix) = text.split_at(digits);
        let (scale, form) = if let Some((_, scale)) = BINARY.iter().find(|(s, _)| *s == suffix) {
            (*scale, Form::Binary)
        } else if let Some((_, scale)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
            (*scale, Form::Decimal)
        } else {
            let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (10_i128.checked_pow(u32::try_from(power.checked_add(9)?).ok()?)?, Form::Exponent)
        };
        let negative = number.starts_with('-');
        let number = number.trim_start_matches(['-', '+']);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut nanos = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()?.checked_mul(scale)? };
        if !fraction.is_empty() {
            let unit = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
            let part = fraction.parse::<i128>().ok()?.checked_mul(scale)?;
            // What is finer than a billionth rounds up, as Kubernetes does when it reads a quantity.
            nanos = nanos.checked_add(part.div_euclid(unit) + i128::from(part.rem_euclid(unit) != 0))?;
        }
        Some(Quantity { nanos: if negative { -nanos } else { nanos }, form })
    }

    /// Below, at or above zero.
    pub(crate) fn sign(self) -> i32 {
        match self.nanos.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Whether it is a whole number.
    pub(crate) fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// Whether it is a whole number of thousandths.
    pub(crate) fn is_milli(self) -> bool {
        self.nanos % MILLI == 0
    }

    /// Whether it is a whole number of `unit`s.
    pub(crate) fn is_multiple_of(self, unit: Quantity) -> bool {
        unit.nanos != 0 && self.nanos % unit.nanos == 0
    }

    /// The next whole thousandth, if it is not one already.
    pub(crate) fn round_up_to_milli(self) -> Quantity {
        let rest = self.nanos.rem_euclid(MILLI);
        if rest == 0 { self } else { Quantity { nanos: self.nanos - rest + MILLI, ..self } }
    }
}

impl std::ops::Add for Quantity {
    type Output = Quantity;

    fn add(self, other: Quantity) -> Quantity {
        // The sum is written like its first summand that is not zero.
        let form = if self.nanos == 0 { other.form } else { self.form };
        Quantity { nanos: self.nanos.saturating_add(other.nanos), form }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        if self.form == Form::Binary && self.nanos.abs() >= 1024 * NANO {
            for (suffix, scale) in BINARY {
                if self.nanos % scale == 0 {
                    return write!(f, "{}{suffix}", self.nanos / scale);
                }
            }
            let rest = self.nanos.rem_euclid(NANO);
            return write!(f, "{}", (self.nanos - rest) / NANO + i128::from(rest != 0));
        }
        let (suffix, scale) =
            DECIMAL.iter().find(|(_, scale)| self.nanos % scale == 0).copied().unwrap_or(("n", 1));
        let mantissa = self.nanos / scale;
        if self.form != Form::Exponent || suffix.is_empty() {
            return write!(f, "{mantissa}{suffix}");
        }
        let place = DECIMAL.iter().position(|(s, _)| *s == suffix).unwrap_or(6);
        let power = 3 * (6 - i32::try_from(place).unwrap_or(6));
        write!(f, "{mantissa}e{power}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sum(a: &str, b: &str) -> String {
        (Quantity::parse(a).unwrap() + Quantity::parse(b).unwrap()).to_string()
    }

    #[test]
    fn sums_are_written_like_the_first_summand() {
        assert_eq!(sum("100m", "900m"), "1");
        assert_eq!(sum("1Gi", "1Gi"), "2Gi");
        assert_eq!(sum("1Gi", "1M"), "1074741824");
        assert_eq!(sum("0", "512Mi"), "512Mi");
        assert_eq!(sum("1e3", "1e3"), "2e3");
    }

    #[test]
    fn quantities_compare_by_value() {
        let read = |v| Quantity::read(&v).unwrap();
        assert!(read(json!("1Gi")) > read(json!("1G")));
        assert_eq!(read(json!("0.5")), read(json!("500m")));
        assert_eq!(read(json!(2)), read(json!("2")));
        assert_eq!(read(json!("1500u")).round_up_to_milli().to_string(), "2m");
        assert_eq!(Quantity::read(&json!("x")), None);
        assert_eq!(Quantity::read(&json!("")), None);
    }
}
