//! `ValidatingWebhookConfiguration` and `MutatingWebhookConfiguration`.

use super::webhook_client::validate_client;
use super::{choice, default_pointer, is_unset, validate_object_meta};
use crate::admission::check_match_condition;
use crate::builtin::rules::json::{
    bump_generation, int, list, list_mut, object_mut, same_field, set, set_generation, text,
};
use crate::builtin::rules::names::{complain, dns1123_subdomain, label_key, validate_label_selector};
use crate::builtin::rules::{Env, Rules};
use crate::field::{FieldError, Path};
use serde_json::{Value, json};
use std::collections::HashSet;

const WEBHOOKS: Path<'static> = Path::of("webhooks");
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];
const CONDITIONS_MAX: usize = 64;

pub(super) static VALIDATING: Rules = Rules {
    default: |object| default(object, false),
    prepare_create: |object, _| set_generation(object, 1),
    prepare_update,
    validate,
    validate_update,
    name: dns1123_subdomain,
    ..Rules::NONE
};

pub(super) static MUTATING: Rules = Rules {
    default: |object| default(object, true),
    prepare_create: |object, _| set_generation(object, 1),
    prepare_update,
    validate,
    validate_update,
    name: dns1123_subdomain,
    ..Rules::NONE
};

fn default(object: &mut Value, mutating: bool) {
    for hook in list_mut(object, "webhooks") {
        default_pointer(hook, "failurePolicy", "Fail");
        default_pointer(hook, "matchPolicy", "Equivalent");
        default_pointer(hook, "namespaceSelector", json!({}));
        default_pointer(hook, "objectSelector", json!({}));
        default_pointer(hook, "timeoutSeconds", 10);
        if mutating {
            default_pointer(hook, "reinvocationPolicy", "Never");
        }
        for rule in list_mut(hook, "rules") {
            default_pointer(rule, "scope", "*");
        }
        if let Some(service) =
            object_mut(hook, "clientConfig").and_then(|config| object_mut(config, "service"))
        {
            default_pointer(service, "port", 443);
        }
    }
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    let changed = !same_field(new, old, "webhooks");
    bump_generation(new, old, changed);
}

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let mut names = HashSet::new();
    for (index, hook) in list(object, "webhooks").iter().enumerate() {
        let path = WEBHOOKS.index(index);
        validate_hook(hook, &path, errors);
        validate_review_versions(hook, &path, errors);
        let name = text(hook, "name");
        if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::duplicate(&path.field("name"), &name.into()));
        }
    }
}

fn validate_update(new: &Value, _old: &Value, errors: &mut Vec<FieldError>) {
    validate_object_meta(new, false, dns1123_subdomain, errors);
    validate(new, errors);
}

fn validate_hook(hook: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_qualified_name(text(hook, "name"), &path.field("name"), errors);
    let rules = path.field("rules");
    for (index, rule) in list(hook, "rules").iter().enumerate() {
        validate_rule(rule, &rules.index(index), errors);
    }
    choice(hook, "failurePolicy", &["Fail", "Ignore"], path, errors);
    choice(hook, "matchPolicy", &["Equivalent", "Exact"], path, errors);
    if set(hook, "sideEffects").is_none() {
        let detail = "must specify one of None, NoneOnDryRun";
        errors.push(FieldError::required(&path.field("sideEffects"), detail));
    }
    choice(hook, "sideEffects", &["None", "NoneOnDryRun"], path, errors);
    if let Some(seconds) = int(hook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path.field("timeoutSeconds"), &seconds.into(), detail));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        validate_label_selector(&hook[field], &path.field(field), errors);
    }
    choice(hook, "reinvocationPolicy", &["IfNeeded", "Never"], path, errors);
    let config = &hook["clientConfig"];
    let config_path = path.field("clientConfig");
    validate_client(config, &config_path, errors);
    validate_conditions(hook, &path.field("matchConditions"), errors);
}

/// A name of at least three labels.
fn validate_qualified_name(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let wrong = dns1123_subdomain(name);
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(path, &name.into(), wrong.join(",")));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, &name.into(), detail));
    }
}

fn validate_rule(rule: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let whole = |field: &str, what: &str, errors: &mut Vec<FieldError>| {
        let values = list(rule, field);
        if values.is_empty() {
            errors.push(FieldError::required(&path.field(field), ""));
        }
        if values.len() > 1 && values.iter().any(|value| value == "*") {
            let detail = format!("if '*' is present, must not specify other {what}");
            errors.push(FieldError::invalid(&path.field(field), &rule[field], detail));
        }
    };
    whole("operations", "operations", errors);
    let operations = path.field("operations");
    for (index, operation) in list(rule, "operations").iter().enumerate() {
        if !OPERATIONS.contains(&operation.as_str().unwrap_or("")) {
            errors.push(FieldError::not_supported(&operations.index(index), operation, OPERATIONS));
        }
    }
    whole("apiGroups", "API groups", errors);
    whole("apiVersions", "API versions", errors);
    let versions = path.field("apiVersions");
    for (index, _) in list(rule, "apiVersions").iter().enumerate().filter(|(_, version)| *version == "") {
        errors.push(FieldError::required(&versions.index(index), ""));
    }
    validate_resources(rule, &path.field("resources"), errors);
    choice(rule, "scope", &["*", "Cluster", "Namespaced"], path, errors);
}

fn validate_resources(rule: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let resources = list(rule, "resources");
    if resources.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let (mut whole, mut subresources) = (HashSet::new(), HashSet::new());
    let mut plain_last = false;
    for (index, value) in resources.iter().enumerate() {
        let name = value.as_str().unwrap_or("");
        if name.is_empty() {
            errors.push(FieldError::required(&path.index(index), ""));
            continue;
        }
        let Some((resource, sub)) = name.split_once('/') else {
            // Only the last plain resource counts, as in the real server.
            plain_last = name != "*";
            continue;
        };
        let mut refuse = |present: String| {
            let detail = format!("if '{present}' is present, must not specify {name}");
            errors.push(FieldError::invalid(&path.index(index), value, detail));
        };
        if whole.contains(resource) {
            refuse(format!("{resource}/*"));
        }
        if subresources.contains(sub) {
            refuse(format!("*/{sub}"));
        }
        if sub == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            subresources.insert(sub);
        }
    }
    let has = |name: &str| resources.iter().any(|resource| resource == name);
    if resources.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, &rule["resources"], detail));
    }
    if has("*") && plain_last {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, &rule["resources"], detail));
    }
}

fn validate_review_versions(hook: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("admissionReviewVersions");
    let versions = list(hook, "admissionReviewVersions");
    if versions.is_empty() {
        let detail = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::required(&path, detail));
        return;
    }
    super::crd::validate::validate_review_versions(versions, REVIEW_VERSIONS, &path, errors);
}

fn validate_conditions(hook: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let conditions = list(hook, "matchConditions");
    if conditions.len() > CONDITIONS_MAX {
        errors.push(FieldError::too_many(path, conditions.len(), CONDITIONS_MAX));
    }
    let mut names = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let expression = text(condition, "expression");
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&path.field("expression"), ""));
        } else if let Err(error) = check_match_condition(expression) {
            errors.push(FieldError::invalid(
                &path.field("expression"),
                &expression.into(),
                error.to_string(),
            ));
        }
        let name_path = path.field("name");
        let name = text(condition, "name");
        if is_unset(condition, "name") {
            errors.push(FieldError::required(&name_path, ""));
            continue;
        }
        complain(errors, &name_path, name, label_key(name));
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&name_path, &name.into()));
        }
    }
}
