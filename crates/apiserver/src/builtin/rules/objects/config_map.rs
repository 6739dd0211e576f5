//! `ConfigMap`: keys, size, and the promise of `immutable`.

use super::{byte_length, check_meta_again};
use crate::builtin::rules::Rules;
use crate::builtin::rules::json::{flag, same_field};
use crate::builtin::rules::names::{complain, config_key, dns1123_subdomain};
use crate::field::{FieldError, Path, Problem};
use serde_json::Value;

const BYTES_MAX: usize = 1 << 20;

pub(super) static RULES: Rules = Rules { validate, validate_update, name: dns1123_subdomain, ..Rules::NONE };

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    let data = Path::of("data");
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        complain(errors, &data.key(key), key, config_key(key));
        if object["binaryData"].get(key).is_some() {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(&data.key(key), &key.as_str().into(), detail));
        }
        bytes += value.as_str().map_or(0, str::len);
    }
    let data = Path::of("binaryData");
    for (key, value) in object["binaryData"].as_object().into_iter().flatten() {
        complain(errors, &data.key(key), key, config_key(key));
        bytes += byte_length(value);
    }
    if bytes > BYTES_MAX {
        // The real server names no field here, and this is how its empty path prints.
        errors.push(FieldError {
            problem: Problem::TooLong,
            field: "[]".to_owned(),
            value: None,
            detail: format!("may not be more than {BYTES_MAX} bytes"),
        });
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    check_immutable(new, old, &["data", "binaryData"], errors);
    super::check_new_meta_again(new, true, dns1123_subdomain, errors);
    validate(new, errors);
}

/// Refuses changes to the content of an object that was declared immutable.
pub(super) fn check_immutable(new: &Value, old: &Value, content: &[&str], errors: &mut Vec<FieldError>) {
    if !flag(old, "immutable") {
        return;
    }
    let changed = content.iter().filter(|field| !same_field(new, old, field)).copied();
    let lifted = (!flag(new, "immutable")).then_some("immutable");
    for field in lifted.into_iter().chain(changed) {
        let detail = "field is immutable when `immutable` is set";
        errors.push(FieldError::forbidden(&Path::of(field), detail));
    }
}
