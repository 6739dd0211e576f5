//! `Lease`: numbers that make sense.

use super::check_meta_again;
use crate::builtin::rules::Rules;
use crate::builtin::rules::json::{int, object_mut, set, take};
use crate::builtin::rules::names::dns1123_subdomain;
use crate::field::{FieldError, Path};
use serde_json::Value;

pub(super) static RULES: Rules = Rules {
    prepare_create: |object, _| drop_election(object, None),
    prepare_update: |new, old, _| drop_election(new, Some(old)),
    validate,
    validate_update: |new, old, errors| {
        check_meta_again(new, old, errors);
        validate(new, errors);
    },
    name: dns1123_subdomain,
    ..Rules::NONE
};

/// Coordinated leader election is off by default, and so are its fields.
fn drop_election(object: &mut Value, old: Option<&Value>) {
    let Some(spec) = object_mut(object, "spec") else { return };
    for field in ["strategy", "preferredHolder"] {
        if old.is_none_or(|old| set(&old["spec"], field).is_none()) {
            take(spec, field);
        }
    }
}

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let spec = Path::of("spec");
    for (field, low, detail) in [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ] {
        if let Some(number) = int(&object["spec"], field).filter(|number| *number < low) {
            errors.push(FieldError::invalid(&spec.field(field), &number.into(), detail));
        }
    }
}
