//! x
use serde_json::{Number, Value};

/// Turns whole floats into integers, as Go does by writing `1.0` as `1`.
pub(crate) fn normalise_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(int) = whole(number) {
                *number = int.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise_numbers),
        Value::Object(map) => map.values_mut().for_each(normalise_numbers),
        _ => {}
    }
}

fn whole(number: &Number) -> Option<i64> {
    // Up to here floats and integers correspond one to one.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|_| number.is_f64())?;
    #[allow(clippy::cast_possible_truncation)] // checked by the guard
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}
