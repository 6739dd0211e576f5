//! Field paths and field errors, worded as Kubernetes words them.
//!
//! Every check of an object reports [`FieldError`]s; [`crate::status::ApiError::invalid`] turns a list
//! of them into the `Status` that clients see. The wording is part of the API: operators match on it.

use serde_json::Value;
use std::fmt::{self, Write as _};

/// A path is cut off here. Keys of maps can be as long as an object, and stand in the paths of all that is below them.
const PATH_BYTES_MAX: usize = 4 << 10;
const ELLIPSIS: &str = "...";

/// Cuts off a path that is too long.
pub(crate) fn cut(path: &mut String) {
    if path.len() > PATH_BYTES_MAX {
        path.truncate(path.floor_char_boundary(PATH_BYTES_MAX - ELLIPSIS.len()));
        path.push_str(ELLIPSIS);
    }
}

/// How many errors a refusal names. An object can have hundreds of thousands.
pub(crate) const ERRORS_MAX: usize = 10_000;

/// Where in an object a value stands: `spec.ports[0].name`, `metadata.labels[a/b]`.
///
/// Cheap to extend while walking: each step is a new small value that borrows its parent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The object itself; prints as nothing, or as `<nil>` where Kubernetes prints an empty path so.
    pub(crate) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    /// A path of one field below the root.
    pub(crate) const fn of(name: &'a str) -> Path<'a> {
        Path { parent: None, step: Step::Field(name) }
    }

    /// The field `name` of the object at this path.
    pub(crate) const fn field(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    /// The item `index` of the list at this path.
    pub(crate) const fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// The entry `key` of the map at this path, printed `[key]`.
    pub(crate) const fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    /// Whether this is the object itself.
    pub(crate) const fn is_root(&self) -> bool {
        self.parent.is_none() && matches!(self.step, Step::Root)
    }

    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        if out.len() >= PATH_BYTES_MAX {
            return;
        }
        match self.step {
            Step::Root => {}
            Step::Field(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            // Writing to a String cannot fail.
            Step::Index(index) => drop(write!(out, "[{index}]")),
            Step::Key(key) => drop(write!(out, "[{key}]")),
        }
        cut(out);
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out);
        f.write_str(if out.is_empty() { "<nil>" } else { &out })
    }
}

/// What is wrong with a field; the `reason` of a `StatusCause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    TypeInvalid,
    Internal,
}

impl Problem {
    /// The machine-readable reason in a `StatusCause`.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Problem::NotFound => "FieldValueNotFound",
            Problem::Required => "FieldValueRequired",
            Problem::Duplicate => "FieldValueDuplicate",
            Problem::Invalid => "FieldValueInvalid",
            Problem::NotSupported => "FieldValueNotSupported",
            Problem::Forbidden => "FieldValueForbidden",
            Problem::TooLong => "FieldValueTooLong",
            Problem::TooMany => "FieldValueTooMany",
            Problem::TypeInvalid => "FieldValueTypeInvalid",
            Problem::Internal => "InternalError",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Problem::NotFound => "Not found",
            Problem::Required => "Required value",
            Problem::Duplicate => "Duplicate value",
            Problem::Invalid | Problem::TypeInvalid => "Invalid value",
            Problem::NotSupported => "Unsupported value",
            Problem::Forbidden => "Forbidden",
            Problem::TooLong => "Too long",
            Problem::TooMany => "Too many",
            Problem::Internal => "Internal error",
        }
    }
}

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    /// What is wrong.
    pub problem: Problem,
    /// Where, as text.
    pub field: String,
    /// The offending value as Kubernetes prints it (`"a"`, `1`, `null`, `{"a":1}`); none for problems
    /// that print no value.
    pub value: Option<String>,
    /// The rest of the sentence.
    pub detail: String,
}

impl FieldError {
    fn new(problem: Problem, path: &Path<'_>, value: Option<&Value>, detail: impl Into<String>) -> Self {
        FieldError { problem, field: path.to_string(), value: value.map(render), detail: detail.into() }
    }

    /// A required field is missing.
    pub(crate) fn required(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(Problem::Required, path, None, detail)
    }

    /// The value may not stand here.
    pub(crate) fn invalid(path: &Path<'_>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(Problem::Invalid, path, Some(value), detail)
    }

    /// The value is of another type than the schema says.
    pub(crate) fn type_invalid(path: &Path<'_>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(Problem::TypeInvalid, path, Some(value), detail)
    }

    /// The field may not be set, or not be changed, in this situation.
    pub(crate) fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(Problem::Forbidden, path, None, detail)
    }

    /// The value stands in the list already.
    pub(crate) fn duplicate(path: &Path<'_>, value: &Value) -> Self {
        Self::new(Problem::Duplicate, path, Some(value), "")
    }

    /// The value names something that is not there.
    pub(crate) fn not_found(path: &Path<'_>, value: &Value) -> Self {
        Self::new(Problem::NotFound, path, Some(value), "")
    }

    /// The value is none of the supported ones, which are listed in the order given.
    pub(crate) fn not_supported(path: &Path<'_>, value: &Value, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| go_quote(s)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(Problem::NotSupported, path, Some(value), detail)
    }

    /// The text is longer than `max` bytes.
    pub(crate) fn too_long(path: &Path<'_>, max: usize) -> Self {
        let detail = format!("may not be more than {max} {}", if max == 1 { "byte" } else { "bytes" });
        Self::new(Problem::TooLong, path, None, detail)
    }

    /// The list holds `actual` items, more than `max`.
    pub(crate) fn too_many(path: &Path<'_>, actual: usize, max: usize) -> Self {
        let detail = format!("must have at most {max} {}", if max == 1 { "item" } else { "items" });
        let mut error = Self::new(Problem::TooMany, path, None, detail);
        error.value = Some(actual.to_string());
        error
    }

    /// The sentence without the field, as it stands in a `StatusCause`.
    pub(crate) fn body(&self) -> String {
        let mut out = self.problem.text().to_owned();
        if let Some(value) = &self.value {
            let _ = write!(out, ": {value}");
        }
        if !self.detail.is_empty() {
            let _ = write!(out, ": {}", self.detail);
        }
        out
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

fn render(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        Value::Number(number) => crate::gotext::GoNumber::of(number).to_string(),
        other => crate::gotext::go_json(other),
    }
}

/// Quotes like Go's `%q`.
pub(crate) fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_print_like_kubernetes() {
        let spec = Path::of("spec");
        let ports = spec.field("ports");
        let first = ports.index(0);
        assert_eq!(first.field("name").to_string(), "spec.ports[0].name");
        let labels = Path::ROOT.field("metadata");
        let labels = labels.field("labels");
        assert_eq!(labels.key("a/b").to_string(), "metadata.labels[a/b]");
    }

    #[test]
    fn long_paths_are_cut_off() {
        let long = "é".repeat(PATH_BYTES_MAX);
        let spec = Path::of("spec");
        let below = spec.key(&long);
        let text = below.field("a").to_string();
        assert!(
            text.len() <= PATH_BYTES_MAX && text.starts_with("spec[é") && text.ends_with("é..."),
            "{text}"
        );
        assert_eq!(text, below.to_string());
    }

    #[test]
    fn errors_print_like_kubernetes() {
        let path = Path::of("kind");
        let error = FieldError::not_supported(&path, &json!("x"), &["A", "B"]);
        assert_eq!(error.to_string(), "kind: Unsupported value: \"x\": supported values: \"A\", \"B\"");
        assert_eq!(FieldError::required(&path, "").to_string(), "kind: Required value");
    }
}
