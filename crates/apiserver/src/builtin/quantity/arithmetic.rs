//! Comparing, adding and rounding quantities.
//!
//! Amounts count, not how they are written. A sum is written as its first summand that is not zero.

use super::{Quantity, round_up, signed};
use std::cmp::Ordering;
use std::ops::AddAssign;

/// How far apart two summands may be. Beyond this the smaller one plays no part, or texts as short as
/// `1e999999999` would ask for gigabytes.
const GAP_MAX: i64 = 1_000;

impl Quantity {
    /// Whether the amount is below zero.
    pub(crate) fn is_negative(&self) -> bool {
        self.negative && !self.is_zero()
    }

    /// Whether the amount is above zero.
    pub(crate) fn is_positive(&self) -> bool {
        !self.negative && !self.is_zero()
    }

    /// Whether the amount has no fraction.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_multiple_of_power(0)
    }

    /// Whether the amount is a whole number of thousandths.
    pub(crate) fn is_milli(&self) -> bool {
        self.is_multiple_of_power(-3)
    }

    fn is_multiple_of_power(&self, power: i64) -> bool {
        let zeros = self.digits.iter().rev().take_while(|d| **d == 0).count();
        self.is_zero() || self.exponent + signed(zeros) >= power
    }

    /// Rounds away from zero to a whole number of thousandths.
    #[must_use]
    pub(crate) fn round_up_to_milli(mut self) -> Quantity {
        if !self.is_milli() {
            round_up(&mut self, -3);
            self.text = None;
        }
        self
    }

    /// The amount rounded away from zero to a whole number, or the nearest that has 64 bits.
    pub(crate) fn to_whole(&self) -> i64 {
        let mut rounded = self.clone();
        round_up(&mut rounded, 0);
        let limit = if self.negative { i64::MIN } else { i64::MAX };
        let whole = rounded.whole_part().and_then(|whole| i64::try_from(whole).ok());
        whole.map_or(limit, |whole| if self.negative { -whole } else { whole })
    }

    /// The digits with as many zeros behind them as bring the last one to this power of ten, which is not
    /// above its own.
    fn digits_to(&self, power: i64) -> Vec<u8> {
        let mut digits = self.digits.clone();
        digits.resize(digits.len() + usize::try_from(self.exponent - power).unwrap_or(0), 0);
        digits
    }
}

/// Compares amounts without their signs.
fn magnitude(a: &Quantity, b: &Quantity) -> Ordering {
    let length = |q: &Quantity| if q.is_zero() { i64::MIN } else { signed(q.digits.len()) + q.exponent };
    length(a).cmp(&length(b)).then_with(|| {
        let longest = a.digits.len().max(b.digits.len());
        let padded = |q: &Quantity, at: usize| q.digits.get(at).copied().unwrap_or(0);
        let mut digits = (0..longest).map(|at| padded(a, at).cmp(&padded(b, at)));
        digits.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })
}

/// Adds digits, or takes them away from the larger amount; the last ones have the same power.
fn combine(larger: &[u8], smaller: &[u8], subtract: bool) -> Vec<u8> {
    let mut result = Vec::with_capacity(larger.len().max(smaller.len()) + 1);
    let mut carry = 0;
    let (mut larger, mut smaller) = (larger.iter().rev(), smaller.iter().rev());
    loop {
        let (ours, theirs) = match (larger.next(), smaller.next()) {
            (None, None) => break,
            (ours, theirs) => (*ours.unwrap_or(&0), *theirs.unwrap_or(&0) + carry),
        };
        let digit = if subtract { ours + 10 - theirs } else { ours + theirs };
        carry = u8::from((digit < 10) == subtract);
        result.push(digit % 10);
    }
    result.push(if subtract { 0 } else { carry });
    let length = result.iter().rposition(|digit| *digit != 0).map_or(0, |at| at + 1);
    result.truncate(length);
    result.reverse();
    result
}

impl AddAssign<&Quantity> for Quantity {
    fn add_assign(&mut self, other: &Quantity) {
        self.text = None;
        if other.is_zero() {
            return;
        }
        if self.is_zero() {
            *self = Quantity { text: None, ..other.clone() };
            return;
        }
        let less = magnitude(self, other).is_lt();
        if (self.exponent - other.exponent).abs() > GAP_MAX {
            if less {
                *self = Quantity { notation: self.notation, text: None, ..other.clone() };
            }
            return;
        }
        let power = self.exponent.min(other.exponent);
        let (mine, theirs) = (self.digits_to(power), other.digits_to(power));
        let (larger, smaller) = if less { (theirs, mine) } else { (mine, theirs) };
        self.digits = combine(&larger, &smaller, self.negative != other.negative);
        self.exponent = power;
        if less {
            self.negative = other.negative;
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
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
        match (self.is_negative(), other.is_negative()) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (true, true) => magnitude(other, self),
            (false, false) => magnitude(self, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    fn sum(a: &str, b: &str) -> String {
        let mut sum = read(a);
        sum += &read(b);
        sum.to_string()
    }

    #[test]
    fn amounts_are_compared_whatever_their_notation() {
        let compare = |a, b| read(a).cmp(&read(b));
        assert_eq!(compare("1", "1000m"), Ordering::Equal);
        assert_eq!(compare("1Ki", "1k"), Ordering::Greater);
        assert_eq!(compare("-2", "-1"), Ordering::Less);
        assert_eq!(compare("0", "-1"), Ordering::Greater);
        assert_eq!(compare("0", "1n"), Ordering::Less);
        assert_eq!(compare("0.1", "1e-1"), Ordering::Equal);
        assert_eq!(compare("1e99", "9e98"), Ordering::Greater);
        assert_eq!(Quantity::read(&json!(2)), Quantity::read(&json!("2")));
        assert_eq!(Quantity::read(&json!("x")), None);
    }

    #[test]
    fn sums_are_written_like_the_first_summand() {
        assert_eq!(sum("100m", "900m"), "1");
        assert_eq!(sum("1Gi", "1Gi"), "2Gi");
        assert_eq!(sum("1Gi", "1M"), "1074741824");
        assert_eq!(sum("1Gi", "500m"), "1073741824500m");
        assert_eq!(sum("0", "512Mi"), "512Mi");
        assert_eq!(sum("1e3", "1e3"), "2e3");
        assert_eq!(sum("5", "-5"), "0");
        assert_eq!(sum("1e999999999", "1"), "1e999999999");
    }

    #[test]
    fn rounding_is_away_from_zero() {
        let milli = |text| read(text).round_up_to_milli().to_string();
        assert_eq!((milli("1500u"), milli("-1500u"), milli("2")), ("2m".into(), "-2m".into(), "2".into()));
        let whole = |text| read(text).to_whole();
        assert_eq!((whole("1001m"), whole("-1m"), whole("2Ki")), (2, -1, 2048));
        assert_eq!((whole("1e30"), whole("-1e30")), (i64::MAX, i64::MIN));
        assert!(read("1.000").is_whole() && !read("1.5").is_whole() && !read("1u").is_milli());
    }

    proptest! {
        #[test]
        fn sums_and_order_are_those_of_numbers(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
            let (x, y) = (read(&format!("{a}m")), read(&b.to_string()));
            prop_assert_eq!(x.cmp(&y), a.cmp(&(b * 1_000)));
            let mut both = x.clone();
            both += &y;
            prop_assert_eq!(both, read(&format!("{}m", a + b * 1_000)));
        }
    }
}
