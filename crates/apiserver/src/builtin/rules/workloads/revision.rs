//! `ControllerRevision`.

use super::super::checks::{Errors, IMMUTABLE, nonnegative};
use super::super::{Rules, names};
use crate::field::{FieldError, Path};
use serde_json::Value;

pub(super) const RULES: Rules =
    Rules { validate, validate_update, name: names::dns1123_subdomain, ..Rules::NONE };

const DATA: Path<'static> = Path::of("data");

fn validate(revision: &Value, errors: &mut Errors) {
    nonnegative(errors, &Path::ROOT, revision, "revision");
    match revision.get("data") {
        None | Some(Value::Null) => errors.push(FieldError::required(&DATA, "data is mandatory")),
        Some(Value::Object(_)) => {}
        Some(_) => errors.push(FieldError::required(&DATA, "data must be a valid JSON object")),
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    nonnegative(errors, &Path::ROOT, new, "revision");
    if new.get("data") != old.get("data") {
        errors.push(FieldError::invalid(&DATA, new.get("data").unwrap_or(&Value::Null), IMMUTABLE));
    }
}
