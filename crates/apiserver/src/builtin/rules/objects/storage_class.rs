//! `StorageClass`: how volumes are made, which does not change.

use super::{check_meta_again, check_new_meta_again, default_pointer};
use crate::builtin::rules::Rules;
use crate::builtin::rules::json::{list, same_field, set, text};
use crate::builtin::rules::names::{
    complain, dns1123_subdomain, label_key, validate_immutable, validate_immutable_text,
};
use crate::field::{FieldError, Path};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};

const PARAMETERS_MAX: usize = 512;
const PARAMETERS_BYTES_MAX: usize = 256 << 10;

pub(super) static RULES: Rules = Rules {
    default: |object| {
        default_pointer(object, "reclaimPolicy", "Delete");
        default_pointer(object, "volumeBindingMode", "Immediate");
    },
    validate,
    validate_update,
    name: dns1123_subdomain,
    ..Rules::NONE
};

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let path = Path::of("provisioner");
    match text(object, "provisioner").to_lowercase().as_str() {
        "" => errors.push(FieldError::required(&path, "")),
        name => complain(errors, &path, name, label_key(name)),
    }
    validate_parameters(object, errors);
    let reclaim = text(object, "reclaimPolicy");
    if !matches!(reclaim, "" | "Delete" | "Retain") {
        let path = Path::of("reclaimPolicy");
        errors.push(FieldError::not_supported(&path, &reclaim.into(), &["Delete", "Retain"]));
    }
    let modes = &["Immediate", "WaitForFirstConsumer"];
    super::choice(object, "volumeBindingMode", modes, &Path::ROOT, errors);
    validate_topologies(object, errors);
}

fn validate_parameters(object: &Value, errors: &mut Vec<FieldError>) {
    let path = Path::of("parameters");
    let Some(parameters) = set(object, "parameters").and_then(Value::as_object) else { return };
    if parameters.len() > PARAMETERS_MAX {
        errors.push(FieldError::too_long(&path, PARAMETERS_MAX));
        return;
    }
    let mut bytes = 0;
    for (key, value) in parameters {
        if key.is_empty() {
            errors.push(FieldError::invalid(&path, &"".into(), "field can not be empty."));
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > PARAMETERS_BYTES_MAX {
        errors.push(FieldError::too_long(&path, PARAMETERS_BYTES_MAX));
    }
}

fn validate_topologies(object: &Value, errors: &mut Vec<FieldError>) {
    let path = Path::of("allowedTopologies");
    let terms = list(object, "allowedTopologies");
    let mut before: Vec<BTreeMap<&str, BTreeSet<&str>>> = Vec::new();
    for (index, term) in terms.iter().enumerate() {
        let path = path.index(index);
        let path = path.field("matchLabelExpressions");
        let mut keys = HashSet::new();
        for (index, requirement) in list(term, "matchLabelExpressions").iter().enumerate() {
            let path = path.index(index);
            let values_path = path.field("values");
            let values = list(requirement, "values");
            if values.is_empty() {
                errors.push(FieldError::required(&values_path, ""));
            }
            let mut seen = HashSet::new();
            for (index, value) in values.iter().enumerate() {
                if !seen.insert(value.as_str()) {
                    errors.push(FieldError::duplicate(&values_path.index(index), value));
                }
            }
            let key = text(requirement, "key");
            complain(errors, &path.field("key"), key, label_key(key));
            if !keys.insert(key) {
                errors.push(FieldError::duplicate(&path.field("key"), &key.into()));
            }
        }
        let requirements = list(term, "matchLabelExpressions").iter();
        let meaning: BTreeMap<&str, BTreeSet<&str>> = requirements
            .map(|r| (text(r, "key"), list(r, "values").iter().filter_map(Value::as_str).collect()))
            .collect();
        // The real server compares an empty term with one empty term for each there is.
        let empties = if meaning.is_empty() { terms.len() } else { 0 };
        let repeats = before.iter().filter(|other| **other == meaning).count() + empties;
        errors.extend((0..repeats).map(|_| FieldError::duplicate(&path, &"".into())));
        before.push(meaning);
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_new_meta_again(new, false, dns1123_subdomain, errors);
    validate(new, errors);
    check_meta_again(new, old, errors);
    let keep = |field: &str, errors: &mut Vec<FieldError>| {
        if !same_field(new, old, field) {
            validate_immutable(&new[field], &old[field], &Path::of(field), errors);
        }
    };
    keep("parameters", errors);
    validate_immutable_text(&new["provisioner"], &old["provisioner"], &Path::of("provisioner"), errors);
    keep("reclaimPolicy", errors);
    keep("volumeBindingMode", errors);
}
