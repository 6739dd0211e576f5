//! Bounds and ranges of numbers.

use super::{Checks, Type};
use crate::gotext::{GoNumber, go_float};

/// What is wrong with a number: with the value, said of its place; without, said of the whole object.
pub(super) struct Complaint {
    pub value: Option<GoNumber>,
    pub text: String,
}

/// Tells `complain` everything that is wrong with `number`.
pub(super) fn check(
    number: GoNumber,
    kind: Option<Type>,
    checks: Option<&Checks>,
    complain: &mut dyn FnMut(Complaint),
) {
    let range = Range { kind, format: checks.and_then(|c| c.format.as_deref()).unwrap_or_default() };
    if !range.holds(number) {
        complain(range.complaint("Checked"));
    }
    let Some(checks) = checks else { return };
    let bound = |limit: f64, name: &str, complain: &mut dyn FnMut(Complaint)| {
        let typed = range.holds(GoNumber::Float(limit));
        if !typed {
            complain(range.complaint(name));
        }
        typed
    };
    if let Some(factor) = checks.multiple_of {
        let typed = bound(factor, "MultipleOf", complain);
        check_multiple(number, factor, typed, complain);
    }
    if let Some(min) = checks.minimum {
        let typed = bound(min, "Minimum boundary", complain);
        let (limit, order) = compare(number, min, typed);
        if order.is_lt() || (checks.exclusive_minimum && order.is_eq()) {
            let or_equal = if checks.exclusive_minimum { "" } else { " or equal to" };
            complain(Complaint {
                value: Some(number),
                text: format!("should be greater than{or_equal} {limit}"),
            });
        }
    }
    if let Some(max) = checks.maximum {
        let typed = bound(max, "Maximum boundary", complain);
        let (limit, order) = compare(number, max, typed);
        if order.is_gt() || (checks.exclusive_maximum && order.is_eq()) {
            let or_equal = if checks.exclusive_maximum { "" } else { " or equal to" };
            complain(Complaint {
                value: Some(number),
                text: format!("should be less than{or_equal} {limit}"),
            });
        }
    }
}

/// Compares as Kubernetes does: integers as such if the limit is one, else as floats.
#[expect(clippy::cast_possible_truncation, reason = "a typed limit is a whole number in range")]
fn compare(number: GoNumber, limit: f64, typed: bool) -> (String, std::cmp::Ordering) {
    match number {
        GoNumber::Int(int) if typed => {
            let limit = limit as i64;
            (limit.to_string(), int.cmp(&limit))
        }
        other => (go_float(limit), other.as_f64().total_cmp(&(limit + 0.0))),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a typed limit is a whole number in range")]
fn check_multiple(number: GoNumber, factor: f64, typed: bool, complain: &mut dyn FnMut(Complaint)) {
    let (multiple, shown) = match number {
        GoNumber::Int(int) if typed => {
            let factor = factor as i64;
            (factor > 0 && int % factor == 0, factor.to_string())
        }
        other => {
            let ratio = if factor < 1.0 { 1.0 / factor * other.as_f64() } else { other.as_f64() / factor };
            (factor > 0.0 && is_json_integer(ratio), go_float(factor))
        }
    };
    if !multiple {
        complain(Complaint { value: Some(number), text: format!("should be a multiple of {shown}") });
    }
}

/// Whole up to the rounding that division brings, within the integers a float holds exactly.
pub(super) fn is_json_integer(float: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    if !(-LARGEST..=LARGEST).contains(&float) {
        return false;
    }
    let difference = (float - float.trunc()).abs();
    let size = float.abs() + float.trunc().abs();
    difference == 0.0 || difference < 1e-9 * size
}

/// The range of a number's type and format.
struct Range<'a> {
    kind: Option<Type>,
    format: &'a str,
}

impl Range<'_> {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as Go converts")]
    fn holds(&self, number: GoNumber) -> bool {
        match (self.kind, number) {
            (Some(Type::Integer), GoNumber::Int(int)) => self.format != "int32" || i32::try_from(int).is_ok(),
            (Some(Type::Integer), GoNumber::Float(float)) => {
                let (low, high) = if self.format == "int32" {
                    (f64::from(i32::MIN), f64::from(i32::MAX) + 1.0)
                } else {
                    (i64::MIN as f64, i64::MAX as f64)
                };
                float.fract() == 0.0 && float >= low && float < high
            }
            (_, number) if self.format == "float" => (number.as_f64() as f32).is_finite(),
            _ => true,
        }
    }

    fn complaint(&self, what: &str) -> Complaint {
        let kind = self.kind.map_or("", Type::name);
        let text = if self.format.is_empty() {
            format!("{what} value must be of type {kind} (default format)")
        } else {
            format!("{what} value must be of type {kind} with format {}", self.format)
        };
        Complaint { value: None, text }
    }
}
