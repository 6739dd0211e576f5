//! Label selectors as objects hold them: `matchLabels` and `matchExpressions`.

use super::{label_key, label_value, validate_labels};
use crate::field::{FieldError, Path};
use serde_json::Value;

/// Checks a label selector; an absent one is fine here.
pub(crate) fn validate_label_selector(selector: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_labels(&selector["matchLabels"], &path.field("matchLabels"), errors);
    let list = path.field("matchExpressions");
    for (index, requirement) in selector["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        validate_selector_requirement(requirement, &list.index(index), errors);
    }
}

/// Checks one entry of `matchExpressions`.
pub(crate) fn validate_selector_requirement(
    requirement: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let empty = Vec::new();
    let values = requirement["values"].as_array().unwrap_or(&empty);
    let values_path = path.field("values");
    match requirement["operator"].as_str().unwrap_or("") {
        "In" | "NotIn" => {
            if values.is_empty() {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&values_path, detail));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&values_path, detail));
            }
        }
        other => {
            let path = path.field("operator");
            errors.push(FieldError::invalid(&path, &other.into(), "not a valid selector operator"));
        }
    }
    let key = requirement["key"].as_str().unwrap_or("");
    for why in label_key(key) {
        errors.push(FieldError::invalid(&path.field("key"), &key.into(), why));
    }
    for (index, value) in values.iter().enumerate() {
        for why in label_value(value.as_str().unwrap_or("")) {
            errors.push(FieldError::invalid(&values_path.index(index), value, why));
        }
    }
}
