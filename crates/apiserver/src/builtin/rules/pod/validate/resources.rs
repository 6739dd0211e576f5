//! Requests and limits, of containers and of the pod as a whole.

use super::super::resources::{aggregate, is_huge_page, is_native, is_pod_level, may_overcommit};
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::checks::{Errors, form, nonnegative_quantity};
use crate::builtin::rules::json::{list, set, text};
use crate::builtin::rules::names;
use crate::field::{FieldError, Path};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};

const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const STANDARD: [&str; 20] = [
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
];

/// Checks the `resources` of a container; `claims` are the names in the pod's `resourceClaims`.
pub(super) fn validate(resources: &Value, claims: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    validate_lists(resources, container_resource, path, errors);
    validate_claims(resources, claims, &path.field("claims"), errors);
}

/// Checks a list of resources that has no requests beside it, such as a pod's overhead.
pub(super) fn validate_limits(limits: &Value, path: &Path<'_>, errors: &mut Errors) {
    let wrapped = serde_json::json!({"limits": limits});
    validate_lists(&wrapped, container_resource, path, errors);
}

/// Checks the resources of the pod as a whole, alone and against its containers.
pub(super) fn validate_pod_level(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(resources) = set(spec, "resources") else { return };
    let path = path.field("resources");
    if spec.pointer("/os/name").is_some_and(|os| os == "windows") {
        errors.push(FieldError::forbidden(&path, "may not be set for a windows pod"));
        return;
    }
    if set(resources, "claims").is_some() {
        let why = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&path.field("claims"), why));
    }
    validate_lists(resources, pod_resource, &path, errors);
    let bound = |field: &str, name: &str| resources.get(field)?.get(name);
    for (name, sum) in aggregate(spec, "requests") {
        if let Some(request) = bound("requests", &name)
            && Quantity::read(request).is_some_and(|request| sum > request)
        {
            let why = format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.push(FieldError::invalid(&path.field("requests").key(&name), request, why));
        }
    }
    for (name, sum) in aggregate(spec, "limits") {
        if let Some(limit) = bound("limits", &name).filter(|_| is_huge_page(&name))
            && Quantity::read(limit).is_some_and(|limit| sum > limit)
        {
            let why = format!("must be greater than or equal to aggregate container limits of {sum}");
            errors.push(FieldError::invalid(&path.field("limits").key(&name), limit, why));
        }
    }
    for (index, container) in list(spec, "containers").iter().enumerate() {
        let limits = container.pointer("/resources/limits").and_then(Value::as_object);
        for (name, limit) in limits.into_iter().flatten() {
            let Some(bound) = bound("limits", name) else { continue };
            if Quantity::read(limit) > Quantity::read(bound) {
                let why = format!("must be less than or equal to pod limits of {}", shown(bound));
                let containers = path.field("containers");
                let at = containers.index(index);
                errors.push(FieldError::invalid(&at.key(name).field("limits"), limit, why));
            }
        }
    }
}

fn validate_lists(
    resources: &Value,
    check_name: fn(&str, &Path<'_>, &mut Errors),
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let empty = Map::new();
    let of = |field: &str| resources.get(field).and_then(Value::as_object).unwrap_or(&empty);
    let (limits, requests) = (of("limits"), of("requests"));
    let (limits_path, requests_path) = (path.field("limits"), path.field("requests"));
    for (name, quantity) in limits {
        let at = limits_path.key(name);
        check_name(name, &at, errors);
        validate_quantity(name, quantity, &at, errors);
        validate_huge_page(name, quantity, &at, errors);
    }
    for (name, quantity) in requests {
        let at = requests_path.key(name);
        check_name(name, &at, errors);
        validate_quantity(name, quantity, &at, errors);
        if let Some(limit) = limits.get(name) {
            let (asked, most) = (Quantity::read(quantity), Quantity::read(limit));
            let relation = if asked != most && !may_overcommit(name) {
                Some("equal to")
            } else {
                (asked > most).then_some("less than or equal to")
            };
            if let Some(relation) = relation {
                let why = format!("must be {relation} {name} limit of {}", shown(limit));
                errors.push(FieldError::invalid(&requests_path, quantity, why));
            }
        } else if !may_overcommit(name) {
            let why = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(&limits_path, why));
        }
        validate_huge_page(name, quantity, &at, errors);
    }
    let any = |test: fn(&str) -> bool| limits.keys().chain(requests.keys()).any(|name| test(name));
    if any(is_huge_page) && !any(|name| matches!(name, "cpu" | "memory")) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}

/// A quantity as text, as it stands inside a sentence.
fn shown(quantity: &Value) -> String {
    match quantity {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn validate_quantity(name: &str, quantity: &Value, path: &Path<'_>, errors: &mut Errors) {
    nonnegative_quantity(errors, path, quantity);
    let whole_only = (STANDARD.contains(&name) && is_counted(name)) || is_extended(name);
    if whole_only && Quantity::read(quantity).is_some_and(|q| !q.is_whole()) {
        errors.push(FieldError::invalid(path, quantity, "must be an integer"));
    }
}

/// Standard resources that are numbers of objects.
fn is_counted(name: &str) -> bool {
    !name.contains("cpu") && !name.contains("memory") && !name.contains("storage")
}

fn validate_huge_page(name: &str, quantity: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(size) = name.strip_prefix("hugepages-") else { return };
    let size = Quantity::parse(size).ok().filter(|size| size.is_positive() && size.is_whole());
    let amount = Quantity::read(quantity).unwrap_or(Quantity::ZERO).to_whole();
    if size.is_none_or(|size| amount % size.to_whole() != 0) {
        let why = format!("{} is not positive integer multiple of {name}", shown(quantity));
        errors.push(FieldError::invalid(path, quantity, why));
    }
}

fn container_resource(name: &str, path: &Path<'_>, errors: &mut Errors) {
    resource_name(name, path, errors);
    let why = if !name.contains('/') {
        if CONTAINER.contains(&name) || is_huge_page(name) {
            return;
        }
        "must be a standard resource for containers"
    } else if !is_native(name) && !is_extended(name) {
        "doesn't follow extended resource name standard"
    } else {
        return;
    };
    errors.push(FieldError::invalid(path, &name.into(), why));
}

fn pod_resource(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let before = errors.len();
    resource_name(name, path, errors);
    if errors.len() == before && !is_pod_level(name) {
        let supported = ["cpu", "hugepages-", "memory"];
        errors.push(FieldError::not_supported(path, &name.into(), &supported));
    }
}

fn resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let before = errors.len();
    form(errors, path, name, names::label_key);
    let standard = STANDARD.contains(&name)
        || is_huge_page(name)
        || name.strip_prefix("requests.").is_some_and(is_huge_page);
    if errors.len() == before && !name.contains('/') && !standard {
        let why = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, &name.into(), why));
    }
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::label_key(&format!("requests.{name}")).is_empty()
}

fn validate_claims(resources: &Value, known: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let mut seen: HashSet<String> = HashSet::new();
    for (index, claim) in list(resources, "claims").iter().enumerate() {
        let at = path.index(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        if seen.contains(name) {
            errors.push(FieldError::duplicate(&at, &name.into()));
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                form(errors, &at.field("request"), request, names::dns1123_label);
                key = format!("{name}/{request}");
            }
            let overlaps = seen.contains(&key)
                || (request.is_empty()
                    && seen.iter().any(|s| s.split_once('/').is_some_and(|(n, _)| n == name)));
            if overlaps {
                errors.push(FieldError::duplicate(&at, &key.as_str().into()));
            }
            seen.insert(key);
        }
        if !known.contains(name) {
            let names: Vec<&str> = known.iter().copied().collect();
            let tail = if names.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", names.join(", "))
            };
            let mut error = FieldError::not_found(&at, &name.into());
            error.detail = format!("must be one of the names in pod.spec.resourceClaims{tail}");
            errors.push(error);
        }
    }
}
