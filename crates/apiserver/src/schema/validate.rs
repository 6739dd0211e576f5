//! Everything a custom object is checked for, in the order Kubernetes does it.

use super::correlate::Old;
use super::embedded::check_embedded;
use super::lists::check_lists;
use super::values::check_values;
use super::{CompiledSchema, Schema};
use crate::field::{FieldError, Path, Problem};
use serde_json::Value;
use std::sync::atomic::AtomicBool;

/// What validation found.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Why the object is refused; empty if it is not.
    pub errors: Vec<FieldError>,
    /// What the client is warned of: rules that an unchanged part fails.
    pub warnings: Vec<String>,
}

/// Checks an object to be created (`old` is none) or replaced.
///
/// Parts that are as they were before are not complained about, so that objects stored under an older
/// schema can still be written. The object must have been pruned and defaulted.
/// `more` are complaints that others have about values; they stand after the schema's own. When `cancelled`
/// becomes true, the verdict says nothing about rules.
pub(crate) fn validate(
    new: &Value,
    old: Option<&Value>,
    schema: &CompiledSchema,
    more: Vec<FieldError>,
    cancelled: &AtomicBool,
) -> Verdict {
    let root: &Schema = schema;
    let old_root = old.map(|value| Old { value, schema: root });
    let mut errors = check_values(new, old_root, root, "");
    errors.extend(more);
    errors.extend(check_embedded(new, root, &Path::ROOT));
    errors.extend(new_list_errors(new, old, root));
    finish(new, old, schema, errors, cancelled)
}

/// Checks a write to the status subresource; `new` and `old` are whole objects, `more` is as for [`validate`].
pub(crate) fn validate_status(
    new: &Value,
    old: &Value,
    schema: &CompiledSchema,
    more: Vec<FieldError>,
    cancelled: &AtomicBool,
) -> Verdict {
    let root: &Schema = schema;
    let mut errors = Vec::new();
    if let (Some(status), Some(status_schema)) = (new.get("status"), root.properties.get("status")) {
        let old_status = Old { value: old, schema: root }.field("status");
        errors = check_values(status, old_status, status_schema, "status");
    }
    errors.extend(more);
    errors.extend(new_list_errors(new, Some(old), root));
    finish(new, Some(old), schema, errors, cancelled)
}

/// Repeated items are forgiven if the old object had some anywhere.
fn new_list_errors(new: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    let errors = check_lists(new, schema);
    match old {
        Some(old) if !errors.is_empty() && !check_lists(old, schema).is_empty() => Vec::new(),
        _ => errors,
    }
}

fn finish(
    new: &Value,
    old: Option<&Value>,
    schema: &CompiledSchema,
    mut errors: Vec<FieldError>,
    cancelled: &AtomicBool,
) -> Verdict {
    let mut warnings = Vec::new();
    if let Some(rules) = schema.rules() {
        if errors.iter().any(hinders_rules) {
            errors.push(FieldError::invalid(
                &Path::ROOT,
                &Value::Null,
                "some validation rules were not checked because the object was invalid; correct the \
                 existing errors to complete validation",
            ));
        } else {
            errors.extend(rules.check(new, old, schema, &Path::ROOT, &mut warnings, cancelled));
        }
    }
    Verdict { errors, warnings }
}

/// Rules are written for values of the right shape and size.
fn hinders_rules(error: &FieldError) -> bool {
    use Problem::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(error.problem, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}
