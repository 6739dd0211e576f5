//! JSON text into Rust types, with an error that names the field.
//!
//! The field is found after the fact, from the position that the parser reports. A deserializer that keeps track of the path
//! would be compiled once more for each type, of which a Pod has hundreds, and would cost time where nothing is wrong.

use serde::de::DeserializeOwned;

/// Text that does not fit a type.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// The path of the field, as `spec.containers[0].image`; `.` is the whole.
    pub(crate) field: String,
    /// What the parser says of it.
    pub(crate) error: serde_json::Error,
}

/// Reads a value of a type.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> Result<T, Misfit> {
    serde_json::from_str(json).map_err(|error| Misfit { field: field_at(json, offset(json, &error)), error })
}

/// How many bytes the parser had read when it failed.
fn offset(json: &str, error: &serde_json::Error) -> usize {
    // Without a position the line is zero, and the whole is meant.
    let Some(before) = error.line().checked_sub(1) else { return 0 };
    let start: usize = json.split_inclusive('\n').take(before).map(str::len).sum();
    start.saturating_add(error.column())
}

/// An object or array that the text has opened.
enum Open<'j> {
    Object { key: Option<&'j str> },
    Array { index: usize },
}

/// The path of the value that stands, or has just ended, at `offset`.
fn field_at(json: &str, offset: usize) -> String {
    let bytes = json.as_bytes();
    let end = offset.min(bytes.len());
    let mut open: Vec<Open<'_>> = Vec::new();
    // Whether a string at this place is the key of a field.
    let mut before_colon = false;
    let mut at = 0;
    while at < end {
        match bytes[at] {
            b'{' => {
                open.push(Open::Object { key: None });
                before_colon = true;
            }
            b'[' => {
                open.push(Open::Array { index: 0 });
                before_colon = false;
            }
            b'}' | b']' => {
                open.pop();
                before_colon = false;
            }
            b':' => before_colon = false,
            b',' => match open.last_mut() {
                Some(Open::Array { index }) => *index += 1,
                _ => before_colon = true,
            },
            b'"' => {
                let close = string_end(bytes, at);
                if let (true, Some(Open::Object { key })) = (before_colon, open.last_mut()) {
                    *key = json.get(at + 1..close);
                }
                at = close;
            }
            _ => {}
        }
        at += 1;
    }
    render_path(&open)
}

/// Where the string that begins at `start` has its closing quote, or the text its end.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

fn render_path(open: &[Open<'_>]) -> String {
    use std::fmt::Write as _;
    let mut path = String::new();
    for one in open {
        // Writing to a string does not fail.
        let _ = match one {
            Open::Object { key: Some(key) } if path.is_empty() => write!(path, "{key}"),
            Open::Object { key: Some(key) } => write!(path, ".{key}"),
            Open::Object { key: None } => Ok(()),
            Open::Array { index } => write!(path, "[{index}]"),
        };
    }
    if path.is_empty() { ".".into() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde::Deserialize;
    use serde::de::IgnoredAny;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its reading is tested")]
    struct Strict {
        size: u8,
        name: Option<String>,
        parts: Option<Vec<Strict>>,
        by_name: Option<BTreeMap<String, Strict>>,
    }

    /// Both ways of writing the text, and the deserializer that keeps track, name the same field.
    fn check<T: DeserializeOwned + std::fmt::Debug>(value: &serde_json::Value, field: &str) {
        let compact = value.to_string();
        let mut tracked = serde_json::Deserializer::from_str(&compact);
        let tracked: Result<T, _> = serde_path_to_error::deserialize(&mut tracked);
        assert_eq!(tracked.unwrap_err().path().to_string(), field);
        for text in [compact, serde_json::to_string_pretty(value).unwrap()] {
            assert_eq!(read::<T>(&text).unwrap_err().field, field, "{text}");
        }
    }

    #[test]
    fn a_field_that_does_not_fit_is_named() {
        check::<Pod>(
            &json!({"spec": {"containers": [{"name": "a"}, {"name": 7}]}}),
            "spec.containers[1].name",
        );
        check::<Pod>(&json!({"spec": {"containers": {"name": "a"}}, "status": {}}), "spec.containers");
        check::<Pod>(
            &json!({"metadata": {"labels": {"a\"}": "x", "b": []}}, "spec": {}}),
            "metadata.labels.b",
        );
        check::<Strict>(&json!({"size": 256}), "size");
        check::<Strict>(
            &json!({"size": 1, "parts": [{"size": 1}, {"size": 1, "parts": [{"name": "x"}]}]}),
            "parts[1].parts[0]",
        );
        check::<Strict>(
            &json!({"size": 1, "by_name": {"a": {"size": 1, "colour": "red"}}}),
            "by_name.a.colour",
        );
        check::<Strict>(&json!({"name": "x"}), ".");
        check::<Strict>(&json!([]), ".");
    }

    #[test]
    fn text_that_is_no_json_has_a_field_too() {
        assert_eq!(read::<IgnoredAny>(r#"{"a": [1, {"b": x}]}"#).unwrap_err().field, "a[1].b");
        assert_eq!(read::<IgnoredAny>("").unwrap_err().field, ".");
        assert_eq!(read::<IgnoredAny>(r#"{"a": "\"#).unwrap_err().field, "a");
    }

    proptest::proptest! {
        #[test]
        fn any_text_and_any_place_have_an_answer(text in "[{}\\[\\],:\"\\\\a1é ]{0,40}", offset in 0..60_usize) {
            field_at(&text, offset);
        }
    }
}
