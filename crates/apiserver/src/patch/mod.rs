//! The three ways to patch an object besides server-side apply.
//!
//! Each is a pure function from an object and a patch to the patched object. What a patch may do and in
//! which order lists end up follows the libraries kube-apiserver uses, including where those differ from
//! the RFCs. A refused patch is a [`PatchError`], which knows the `Status` a client sees.
//!
//! Patches arrive parsed; text that is no JSON at all is the reader's business.

pub(crate) mod json_patch;
#[cfg(test)]
mod limits_tests;
pub(crate) mod merge_patch;
mod order;
pub(crate) mod strategic;
#[cfg(test)]
mod tests;

use crate::gotext::json_type;
use crate::jsonpath;
use crate::status::ApiError;
use serde_json::Value;

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    /// The body is not a patch of its kind.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object: a path is missing, a test failed. Kubernetes doesn't say which.
    #[error("the server rejected our request due to an error in our request")]
    Unprocessable,
    /// More operations than a JSON patch may have.
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {max}, got {0}",
        max = json_patch::OPERATIONS_MAX
    )]
    TooManyOperations(usize),
    /// Its copies add more than they may. Clients are told no more than [`Unprocessable`](PatchError::Unprocessable) tells.
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {0}, exceeding the limit {max}",
        max = json_patch::COPIED_BYTES_MAX
    )]
    CopiesTooMuch(usize),
    /// Its operations move more values about than they may.
    #[error(
        "Request entity too large: the operations of the JSON patch move more than {max} values",
        max = json_patch::MOVED_VALUES_MAX
    )]
    MovesTooMuch,
    /// What results would be nested too deeply to be stored.
    #[error(
        "Request entity too large: the object would be nested deeper than {max} levels",
        max = crate::bounds::STORED_DEPTH_MAX
    )]
    TooDeep,
    /// Kubernetes reports some mistakes in strategic merge patches as failures of its own.
    #[error("{0}")]
    Unexpected(String),
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        let message = error.to_string();
        match error {
            PatchError::Malformed(_) => ApiError::bad_request(message),
            PatchError::Unprocessable | PatchError::CopiesTooMuch(_) => {
                let message = PatchError::Unprocessable.to_string();
                let mut refusal = ApiError::plain(422, "Invalid", message);
                refusal.details = Some(Box::default());
                refusal
            }
            PatchError::TooManyOperations(_) | PatchError::MovesTooMuch | PatchError::TooDeep => {
                ApiError::too_large(message)
            }
            PatchError::Unexpected(_) => ApiError::plain(500, "", message),
        }
    }
}

/// Refuses a body that is neither an object nor `null`, in the words of Go's decoder.
fn check_object(patch: &Value, prefix: &str) -> Result<(), PatchError> {
    match patch {
        Value::Object(_) | Value::Null => Ok(()),
        other => Err(PatchError::Malformed(format!(
            "{prefix}json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(other)
        ))),
    }
}

/// A value as Go's `%v` prints it, which is how refusals quote patches: `map[a:1 b:[x y]]`.
pub(crate) fn go_print(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Array(items) => format!("[{}]", list(items.iter().map(go_print).collect())),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{key}:{}", go_print(value)));
            format!("map[{}]", list(entries.collect()))
        }
        scalar => jsonpath::print(scalar),
    }
}
