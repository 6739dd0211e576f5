//! Quantities by value: `1000m` is `1`, and `1Gi` is `1073741824`.

use serde_json::Value;

/// Whether two values are the same quantity. What isn't a quantity is the same as nothing.
pub(super) fn same_quantity(a: &Value, b: &Value) -> bool {
    match (nanos(a), nanos(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

fn nanos(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => quantity_in_billionths(text),
        Value::Number(number) => quantity_in_billionths(&number.to_string()),
        _ => None,
    }
}

/// A quantity (`500m`, `1.5Gi`, `1e3`) in billionths, which is as fine as Kubernetes counts; what is finer is rounded away from zero.
/// `None` if the text is no quantity, or one beyond all that is ever counted.
pub fn quantity_in_billionths(text: &str) -> Option<i128> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let number_end =
        text.bytes().position(|byte| !byte.is_ascii_digit() && byte != b'.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || whole.len() + fraction.len() == 0 {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let mut amount: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        amount = amount.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    let (binary, decimal) = scale(suffix)?;
    let amount = amount.checked_mul(1_i128.checked_shl(binary)?)?;
    let decimal = decimal.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = 10_i128.checked_pow(decimal.unsigned_abs());
    let amount = match (amount, decimal < 0, power) {
        (0, _, _) => 0,
        (_, false, power) => amount.checked_mul(power?)?,
        (_, true, Some(power)) => amount / power + i128::from(amount % power != 0),
        // Less than a billionth by far.
        (_, true, None) => 1,
    };
    Some(if negative { -amount } else { amount })
}

/// The power of two and the power of ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "" => (0, 0),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        exponent => (0, exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_equal_by_value() {
        for (a, b) in [
            (json!("1000m"), json!("1")),
            (json!("1"), json!(1)),
            (json!("1Gi"), json!(1_073_741_824)),
            (json!("0.5"), json!("500m")),
            (json!(0.5), json!("500m")),
            (json!("1.5Gi"), json!("1536Mi")),
            (json!("1e3"), json!("1k")),
            (json!("1E3"), json!("1000")),
            (json!("12e-1"), json!("1200m")),
            (json!("+1."), json!("1.000")),
            (json!(".5"), json!("0.5")),
            (json!("-1"), json!("-1000m")),
            (json!("0"), json!("0Gi")),
            (json!("0.1n"), json!("1n")),
            (json!("1u"), json!("1000n")),
            (json!("1Ei"), json!("1024Pi")),
        ] {
            assert!(same_quantity(&a, &b), "{a} is not {b}");
        }
    }

    #[test]
    fn other_values_are_not_equal() {
        for (a, b) in [
            (json!("1"), json!("1m")),
            (json!("1G"), json!("1Gi")),
            (json!("1"), json!("-1")),
            (json!("x"), json!("x")),
            (json!(""), json!("")),
            (json!("."), json!("0")),
            (json!("1.2.3"), json!("1.2.3")),
            (json!("1e"), json!("1")),
            (json!(true), json!(1)),
            (json!("9999999999999999999999999999999999999999"), json!("1")),
            (json!("1e99999999999"), json!("1")),
            (json!("1é"), json!("1")),
        ] {
            assert!(!same_quantity(&a, &b), "{a} is {b}");
        }
    }
}
