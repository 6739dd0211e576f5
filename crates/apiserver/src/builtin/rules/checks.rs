//! Checks of single values that many kinds share, worded as Kubernetes words them.

use super::json::{int, text};
use crate::builtin::quantity::Quantity;
use crate::field::{FieldError, Path};
use serde_json::Value;

pub(crate) const NEGATIVE: &str = "must be greater than or equal to 0";
pub(crate) const NOT_POSITIVE: &str = "must be greater than zero";
pub(crate) const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
/// The end of every refusal to change what cannot change.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// The errors found so far.
pub(crate) type Errors = Vec<FieldError>;

/// One `Invalid` for each thing wrong with a text.
pub(crate) fn form(errors: &mut Errors, path: &Path<'_>, value: &str, check: fn(&str) -> Vec<String>) {
    super::names::complain(errors, path, value, check(value));
}

/// As [`form`], where an empty text is `Required` instead.
pub(crate) fn required_form(
    errors: &mut Errors,
    path: &Path<'_>,
    value: &str,
    check: fn(&str) -> Vec<String>,
) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        form(errors, path, value, check);
    }
}

/// The field must not be empty.
pub(crate) fn required(errors: &mut Errors, path: &Path<'_>, holder: &Value, field: &str) {
    if text(holder, field).is_empty() {
        errors.push(FieldError::required(&path.field(field), ""));
    }
}

/// The field, if set, must be one of these; they are listed as given.
pub(crate) fn one_of(errors: &mut Errors, path: &Path<'_>, holder: &Value, field: &str, supported: &[&str]) {
    let value = text(holder, field);
    if !value.is_empty() && !supported.contains(&value) {
        errors.push(FieldError::not_supported(&path.field(field), &value.into(), supported));
    }
}

/// The field must be one of these: `Required` if it is empty.
pub(crate) fn required_one_of(
    errors: &mut Errors,
    path: &Path<'_>,
    holder: &Value,
    field: &str,
    supported: &[&str],
) {
    required(errors, path, holder, field);
    one_of(errors, path, holder, field, supported);
}

/// The number, if set, must not be below zero.
pub(crate) fn nonnegative(errors: &mut Errors, path: &Path<'_>, holder: &Value, field: &str) {
    if let Some(number) = int(holder, field).filter(|n| *n < 0) {
        errors.push(FieldError::invalid(&path.field(field), &number.into(), NEGATIVE));
    }
}

/// The number, if set, must lie between these.
pub(crate) fn in_range(errors: &mut Errors, path: &Path<'_>, number: i64, low: i64, high: i64) {
    if !(low..=high).contains(&number) {
        let why = super::names::range_error(low, high);
        errors.push(FieldError::invalid(path, &number.into(), why));
    }
}

/// The quantity must not be below zero.
pub(crate) fn nonnegative_quantity(errors: &mut Errors, path: &Path<'_>, value: &Value) {
    if Quantity::read(value).is_some_and(|q| q.is_negative()) {
        errors.push(FieldError::invalid(path, value, NEGATIVE));
    }
}

/// File permission bits.
pub(crate) fn file_mode(errors: &mut Errors, path: &Path<'_>, holder: &Value, field: &str) {
    if let Some(mode) = int(holder, field).filter(|m| !(0..=0o777).contains(m)) {
        errors.push(FieldError::invalid(&path.field(field), &mode.into(), FILE_MODE));
    }
}

/// A path that stays inside where it starts.
pub(crate) fn local_descending_path(errors: &mut Errors, path: &Path<'_>, target: &str) {
    if target.starts_with('/') {
        errors.push(FieldError::invalid(path, &target.into(), "must be a relative path"));
    }
    no_backsteps(errors, path, target);
}

/// A path without `..` elements.
pub(crate) fn no_backsteps(errors: &mut Errors, path: &Path<'_>, target: &str) {
    if target.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(path, &target.into(), "must not contain '..'"));
    }
}

/// As [`local_descending_path`], and not starting with `..` either, which is reserved.
pub(crate) fn local_unreserved_path(errors: &mut Errors, path: &Path<'_>, target: &str) {
    local_descending_path(errors, path, target);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.push(FieldError::invalid(path, &target.into(), "must not start with '..'"));
    }
}

/// A port by number or name.
pub(crate) fn port(errors: &mut Errors, path: &Path<'_>, value: &Value) {
    let wrong = match value {
        Value::String(name) => super::names::port_name(name),
        other => super::names::port_number(other.as_i64().unwrap_or(0)),
    };
    let shown = if value.is_null() { &Value::from(0) } else { value };
    errors.extend(wrong.into_iter().map(|why| FieldError::invalid(path, shown, why)));
}

/// A number, or a percentage as text: what is wrong with it as a count of pods.
pub(crate) fn count_or_percent(errors: &mut Errors, path: &Path<'_>, value: &Value) {
    match value {
        Value::String(text) => {
            let digits = text.strip_suffix('%').unwrap_or("");
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                let why = super::names::form_error(
                    "a valid percent string must be a numeric string followed by an ending '%'",
                    "[0-9]+%",
                    &["1%", "93%"],
                );
                errors.push(FieldError::invalid(path, value, why));
            }
        }
        Value::Number(number) if number.as_i64().is_some_and(|n| n < 0) => {
            errors.push(FieldError::invalid(path, value, NEGATIVE));
        }
        _ => {}
    }
}

/// The percentage that a text such as `25%` gives.
pub(crate) fn percent(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}

/// A percentage of at most 100.
pub(crate) fn not_over_100_percent(errors: &mut Errors, path: &Path<'_>, value: &Value) {
    if percent(value).is_some_and(|p| p > 100) {
        errors.push(FieldError::invalid(path, value, "must not be greater than 100%"));
    }
}
