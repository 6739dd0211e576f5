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
#[derive(Debug)]
pub(crate) struct Decoded { pub value: Value, pub duplicates: Vec<String> }
#[derive(Debug)]
pub(crate) struct DecodeError(String);
impl DecodeError {
    pub(crate) fn for_kind(&self, kind: &str) -> String { format!("the object provided is unrecognized (must be of type {kind}): {}", self.0) }
    pub(crate) fn for_patch(&self, _json: bool) -> String { self.0.clone() }
    pub(crate) fn plain(&self) -> String { self.0.clone() }
}
pub(crate) fn json(body: &[u8]) -> Result<Decoded, DecodeError> { serde_json::from_slice(body).map(|value| Decoded { value, duplicates: vec![] }).map_err(|e| DecodeError(e.to_string())) }
pub(crate) fn patch(body: &[u8]) -> Result<Decoded, DecodeError> { json(body) }
pub(crate) fn yaml(body: &[u8]) -> Result<Decoded, DecodeError> {
    let text = std::str::from_utf8(body).map_err(|e| DecodeError(e.to_string()))?;
    serde_saphyr::from_str(text).map(|value| Decoded { value, duplicates: vec![] }).map_err(|e| DecodeError(e.to_string()))
}
pub(crate) fn missing_kind(_: &str, value: &Value) -> String { format!("Object 'Kind' is missing in '{value}'") }
pub(crate) fn bad_metadata(_: &str, error: &str) -> crate::status::ApiError { crate::status::ApiError::bad_request(error) }
pub(crate) fn strict_error(list: &[String]) -> String { format!("strict decoding error: {}", list.join(", ")) }
