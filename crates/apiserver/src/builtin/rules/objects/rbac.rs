//! Roles and bindings: stored and checked, not enforced.

use super::{check_meta_again, check_new_meta_again};
use crate::builtin::rules::Rules;
use crate::builtin::rules::json::{default_to, ensure_object, list, list_mut, same_field, set, text};
use crate::builtin::rules::names::{complain, dns1123_subdomain, path_segment_name, validate_label_selector};
use crate::field::{FieldError, Path, Problem};
use serde_json::Value;

const GROUP: &str = "rbac.authorization.k8s.io";
const REFERENCE: Path<'static> = Path::of("roleRef");

pub(super) static ROLE: Rules = Rules {
    validate: |object, errors| validate_rules(object, true, errors),
    validate_update: |new, old, errors| {
        check_new_meta_again(new, true, path_segment_name, errors);
        validate_rules(new, true, errors);
        check_meta_again(new, old, errors);
    },
    name: path_segment_name,
    ..Rules::NONE
};

pub(super) static CLUSTER_ROLE: Rules = Rules {
    validate: validate_cluster_role,
    validate_update: |new, old, errors| {
        check_new_meta_again(new, false, path_segment_name, errors);
        validate_cluster_role(new, errors);
        check_meta_again(new, old, errors);
    },
    name: path_segment_name,
    ..Rules::NONE
};

pub(super) static ROLE_BINDING: Rules = Rules {
    default: default_binding,
    validate: |object, errors| validate_binding(object, true, errors),
    validate_update: |new, old, errors| validate_binding_update(new, old, true, errors),
    name: path_segment_name,
    ..Rules::NONE
};

pub(super) static CLUSTER_ROLE_BINDING: Rules = Rules {
    default: default_binding,
    validate: |object, errors| validate_binding(object, false, errors),
    validate_update: |new, old, errors| validate_binding_update(new, old, false, errors),
    name: path_segment_name,
    ..Rules::NONE
};

fn default_binding(object: &mut Value) {
    if let Some(reference) = ensure_object(object, "roleRef") {
        default_to(reference, "apiGroup", GROUP);
    }
    for subject in list_mut(object, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            default_to(subject, "apiGroup", GROUP);
        }
    }
}

fn validate_rules(object: &Value, namespaced: bool, errors: &mut Vec<FieldError>) {
    let path = Path::of("rules");
    for (index, rule) in list(object, "rules").iter().enumerate() {
        let path = path.index(index);
        let empty = |field: &str| list(rule, field).is_empty();
        if empty("verbs") {
            errors.push(FieldError::required(&path.field("verbs"), "verbs must contain at least one value"));
        }
        if !empty("nonResourceURLs") {
            let mut refuse = |detail: &str| {
                let path = path.field("nonResourceURLs");
                errors.push(FieldError::invalid(&path, &rule["nonResourceURLs"], detail));
            };
            if namespaced {
                refuse("namespaced rules cannot apply to non-resource URLs");
            }
            if !empty("apiGroups") || !empty("resources") || !empty("resourceNames") {
                refuse("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        for (field, what) in [("apiGroups", "api group"), ("resources", "resource")] {
            if empty(field) {
                let detail = format!("resource rules must supply at least one {what}");
                errors.push(FieldError::required(&path.field(field), detail));
            }
        }
    }
}

fn validate_cluster_role(object: &Value, errors: &mut Vec<FieldError>) {
    validate_rules(object, false, errors);
    let Some(aggregation) = set(object, "aggregationRule") else { return };
    let path = Path::of("aggregationRule");
    let path = path.field("clusterRoleSelectors");
    let selectors = list(aggregation, "clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path, detail));
    }
    for (index, selector) in selectors.iter().enumerate() {
        let before = errors.len();
        validate_label_selector(selector, &path.index(index), errors);
        if errors.len() > before {
            errors.push(FieldError::invalid(&path.index(index), &Value::Null, "invalid label selector."));
        }
    }
}

fn validate_binding(object: &Value, namespaced: bool, errors: &mut Vec<FieldError>) {
    let reference = &object["roleRef"];
    let group = text(reference, "apiGroup");
    if group != GROUP {
        errors.push(FieldError::not_supported(&REFERENCE.field("apiGroup"), &group.into(), &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let kind = text(reference, "kind");
    if !kinds.contains(&kind) {
        errors.push(FieldError::not_supported(&REFERENCE.field("kind"), &kind.into(), kinds));
    }
    match text(reference, "name") {
        "" => errors.push(FieldError::required(&REFERENCE.field("name"), "")),
        name => complain(errors, &REFERENCE.field("name"), name, path_segment_name(name)),
    }
    let path = Path::of("subjects");
    for (index, subject) in list(object, "subjects").iter().enumerate() {
        validate_subject(subject, namespaced, &path.index(index), errors);
    }
}

fn validate_subject(subject: &Value, namespaced: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    if name.is_empty() {
        errors.push(FieldError::required(&path.field("name"), ""));
    }
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                complain(errors, &path.field("name"), name, dns1123_subdomain(name));
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(&path.field("apiGroup"), &group.into(), &[""]));
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(&path.field("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(FieldError::not_supported(&path.field("apiGroup"), &group.into(), &[GROUP]));
            }
        }
        kind => {
            let kinds = &["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&path.field("kind"), &kind.into(), kinds));
        }
    }
}

fn validate_binding_update(new: &Value, old: &Value, namespaced: bool, errors: &mut Vec<FieldError>) {
    check_new_meta_again(new, namespaced, path_segment_name, errors);
    validate_binding(new, namespaced, errors);
    check_meta_again(new, old, errors);
    if !same_field(new, old, "roleRef") {
        let [group, kind, name] =
            ["apiGroup", "kind", "name"].map(|field| Value::from(text(&new["roleRef"], field)));
        errors.push(FieldError {
            problem: Problem::Invalid,
            field: REFERENCE.to_string(),
            value: Some(format!("{{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}")),
            detail: "cannot change roleRef".to_owned(),
        });
    }
}
