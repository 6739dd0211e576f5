//! `PriorityClass`: numbers up to a billion for users, the rest for the system.

use super::check_meta_again;
use crate::builtin::rules::Rules;
use crate::builtin::rules::json::{flag, int, set_generation, text};
use crate::builtin::rules::names::{dns1123_subdomain, validate_immutable};
use crate::field::{FieldError, Path};
use crate::status::{ApiError, Subject};
use serde_json::Value;

const USER_MAX: i64 = 1_000_000_000;
const SYSTEM: &[(&str, i64)] =
    &[("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(super) static RULES: Rules = Rules {
    default: |object| super::default_pointer(object, "preemptionPolicy", "PreemptLowerPriority"),
    prepare_create: |object, _| set_generation(object, 1),
    validate,
    validate_update,
    name: dns1123_subdomain,
    ..Rules::NONE
};

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let name = text(&object["metadata"], "name");
    let value = int(object, "value").unwrap_or(0);
    if name.starts_with("system-") {
        if let Some(why) = system_refusal(name, value, flag(object, "globalDefault")) {
            let path = Path::of("metadata");
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            errors.push(FieldError::forbidden(&path.field("name"), detail));
        }
    } else if value > USER_MAX {
        let detail = format!("maximum allowed value of a user defined priority is {USER_MAX}");
        errors.push(FieldError::forbidden(&Path::of("value"), detail));
    }
    let policies = &["PreemptLowerPriority", "Never"];
    super::one_of(text(object, "preemptionPolicy"), &Path::of("preemptionPolicy"), policies, errors);
}

fn system_refusal(name: &str, value: i64, global: bool) -> Option<String> {
    let Some((_, expected)) = SYSTEM.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if value != *expected {
        return Some(format!("value of {name} PriorityClass must be {expected}"));
    }
    global.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    if int(new, "value").unwrap_or(0) != int(old, "value").unwrap_or(0) {
        errors.push(FieldError::forbidden(&Path::of("value"), "may not be changed in an update."));
    }
    let path = Path::of("preemptionPolicy");
    validate_immutable(&new["preemptionPolicy"], &old["preemptionPolicy"], &path, errors);
}

/// Refuses a second default class. `default` is the name of the one that exists.
pub(crate) fn admit_default(new: &Value, old: Option<&Value>, default: Option<&str>) -> Result<(), ApiError> {
    let name = text(&new["metadata"], "name");
    match default {
        Some(existing) if flag(new, "globalDefault") && (old.is_none() || existing != name) => {
            let why =
                format!("PriorityClass {existing} is already marked as default. Only one default can exist");
            Err(ApiError::forbidden(
                &Subject { group: "scheduling.k8s.io", kind: "priorityclasses" },
                name,
                &why,
            ))
        }
        _ => Ok(()),
    }
}
