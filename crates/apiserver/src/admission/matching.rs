//! Whether a webhook is asked about a request, by rules and selectors.

use super::hook::Hook;
use super::{Attributes, Gvr, Operation, Served};
use crate::selectors::LabelSelector;
use crate::status::{ApiError, Subject};
use serde_json::Value;

const NAMESPACES: Gvr<'static> = Gvr { group: "", version: "v1", resource: "namespaces" };

/// Whether the request is about an admission configuration, which webhooks must not be able to lock.
pub(super) fn is_exempt(attributes: &Attributes<'_>) -> bool {
    attributes.kind.group == "admissionregistration.k8s.io"
        && matches!(
            attributes.kind.kind,
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

/// The form in which the webhook wants to see the request; none if rules or selectors exclude it.
pub(super) fn wanted_form<'a>(
    hook: &Hook<'_>,
    attributes: &Attributes<'a>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Option<Served<'a>>, ApiError> {
    // Selectors are not even read for webhooks whose rules exclude the request, so that a webhook that
    // does not apply can't refuse it.
    let Some(form) = by_rules(hook, attributes) else {
        return Ok(None);
    };
    let namespace = matches_namespace(hook, attributes, object);
    let selected = matches_object(hook, object, old);
    if matches!(namespace, Ok(false)) || matches!(selected, Ok(false)) {
        return Ok(None);
    }
    Ok((namespace? && selected?).then_some(form))
}

fn by_rules<'a>(hook: &Hook<'_>, attributes: &Attributes<'a>) -> Option<Served<'a>> {
    let rules = hook.rules();
    if rules.iter().any(|rule| rule_matches(rule, attributes, attributes.resource)) {
        return Some(Served { resource: attributes.resource, kind: attributes.kind });
    }
    if !hook.matches_equivalents() {
        return None;
    }
    // Earlier rules decide before earlier forms.
    let forms = attributes.equivalents.served;
    let matching = |rule| {
        forms.iter().find(|f| f.resource != attributes.resource && rule_matches(rule, attributes, f.resource))
    };
    rules.iter().find_map(matching).copied()
}

fn rule_matches(rule: &Value, attributes: &Attributes<'_>, resource: Gvr<'_>) -> bool {
    let names = |field: &str| {
        rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    };
    let has = |field: &str, wanted: &str| names(field).any(|name| name == "*" || name == wanted);
    let cluster_scoped = resource == NAMESPACES || attributes.namespace.is_empty();
    let scope = match rule.get("scope").and_then(Value::as_str) {
        None | Some("*") => true,
        Some("Namespaced") => !cluster_scoped,
        Some("Cluster") => cluster_scoped,
        Some(_) => false,
    };
    scope
        && has("operations", attributes.operation.name())
        && has("apiGroups", resource.group)
        && has("apiVersions", resource.version)
        && names("resources").any(|name| {
            let (main, sub) = name.split_once('/').unwrap_or((name, ""));
            (main == "*" || main == resource.resource) && (sub == "*" || sub == attributes.subresource)
        })
}

fn matches_namespace(
    hook: &Hook<'_>,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<bool, ApiError> {
    let is_namespace = attributes.resource.resource == "namespaces";
    if attributes.namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    let Some(selector) = read_selector(hook, "namespaceSelector")? else {
        return Ok(false);
    };
    if selector.is_everything() {
        return Ok(true);
    }
    let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
    if is_namespace && attributes.subresource.is_empty() && writes {
        return Ok(object.is_some_and(|namespace| selector.selects(namespace)));
    }
    match attributes.namespace_object {
        Some(namespace) => Ok(selector.selects(namespace)),
        None => Err(ApiError::not_found(&Subject { group: "", kind: "namespaces" }, attributes.namespace)),
    }
}

fn matches_object(hook: &Hook<'_>, object: Option<&Value>, old: Option<&Value>) -> Result<bool, ApiError> {
    let Some(selector) = read_selector(hook, "objectSelector")? else {
        return Ok(false);
    };
    Ok(selector.is_everything() || [object, old].into_iter().flatten().any(|object| selector.selects(object)))
}

fn read_selector(hook: &Hook<'_>, field: &str) -> Result<Option<LabelSelector>, ApiError> {
    LabelSelector::from_object(hook.selector(field)).map_err(ApiError::internal)
}
