//! The kinds that are not workloads.
//!
//! On create the caller checks `metadata` (and [`wants_standard_finalizers`]) before a kind's `validate`. On update it does what the real
//! server does for all kinds (metadata as if new, then what the update changes), and each kind's
//! `validate_update` repeats the metadata checks that its own strategy repeats: the `causes` of a refusal
//! list them as often as kube-apiserver does.

pub(crate) mod claim;
pub(crate) mod class_defaults;
mod config_map;
pub(crate) mod crd;
mod endpoint_slice;
pub(crate) mod endpoints;
pub(crate) mod event;
mod ingress;
mod lease;
pub(crate) mod namespace;
mod network_policy;
mod node;
pub(crate) mod priority_class;
mod rbac;
pub(crate) mod reviews;
mod secret;
pub(crate) mod service;
mod service_account;
mod storage_class;
mod volume;
mod volume_source;
mod webhook_client;
mod webhooks;

#[cfg(test)]
mod tests;

use super::Rules;
use super::json::{ensure_object, is_empty, put, set};
use super::names::object_meta::validate_standard_finalizers;
use super::names::{NameCheck, validate_object_meta, validate_object_meta_update};
use crate::field::{FieldError, Path};
use serde_json::Value;

/// The rules of one of these kinds.
pub(crate) fn rules(group: &str, kind: &str) -> Option<&'static Rules> {
    Some(match (group, kind) {
        ("", "ConfigMap") => &config_map::RULES,
        ("", "Endpoints") => &endpoints::RULES,
        ("", "Event") => &event::CORE,
        ("", "Namespace") => &namespace::RULES,
        ("", "Node") => &node::RULES,
        ("", "PersistentVolume") => &volume::RULES,
        ("", "PersistentVolumeClaim") => &claim::RULES,
        ("", "Secret") => &secret::RULES,
        ("", "Service") => &service::RULES,
        ("", "ServiceAccount") => &service_account::RULES,
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => &webhooks::MUTATING,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => &webhooks::VALIDATING,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &crd::RULES,
        ("coordination.k8s.io", "Lease") => &lease::RULES,
        ("discovery.k8s.io", "EndpointSlice") => &endpoint_slice::RULES,
        ("events.k8s.io", "Event") => &event::EVENTS,
        ("networking.k8s.io", "Ingress") => &ingress::RULES,
        ("networking.k8s.io", "IngressClass") => &ingress::CLASS,
        ("networking.k8s.io", "NetworkPolicy") => &network_policy::RULES,
        ("rbac.authorization.k8s.io", "ClusterRole") => &rbac::CLUSTER_ROLE,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => &rbac::CLUSTER_ROLE_BINDING,
        ("rbac.authorization.k8s.io", "Role") => &rbac::ROLE,
        ("rbac.authorization.k8s.io", "RoleBinding") => &rbac::ROLE_BINDING,
        ("scheduling.k8s.io", "PriorityClass") => &priority_class::RULES,
        ("storage.k8s.io", "StorageClass") => &storage_class::RULES,
        _ => return None,
    })
}

/// Whether a kind checks its metadata itself. Before `validate` of such a kind the caller checks none; after
/// it, if nothing was wrong, it checks what must hold for every kind.
pub(crate) fn checks_own_metadata(group: &str, kind: &str) -> bool {
    matches!((group, kind), ("" | "events.k8s.io", "Event"))
}

/// Whether finalizers of this built-in kind must be standard or qualified names. The caller checks it
/// with [`validate_standard_finalizers`], on create and on update, after the rest of the metadata.
pub(crate) fn wants_standard_finalizers(group: &str, kind: &str) -> bool {
    !matches!(
        (group, kind),
        ("", "Event")
            | ("apiextensions.k8s.io" | "admissionregistration.k8s.io", _)
            | ("coordination.k8s.io", "Lease")
            | ("policy", "PodDisruptionBudget")
    )
}

/// The strategy's own check of what an update does to the metadata.
fn check_meta_again(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    validate_object_meta_update(new, old, errors);
}

/// The strategy's own check of the metadata as of a new object.
fn check_new_meta_again(new: &Value, namespaced: bool, name: NameCheck, errors: &mut Vec<FieldError>) {
    validate_object_meta(new, namespaced, name, errors);
    validate_standard_finalizers(new, errors);
}

/// How many bytes a base64 text stands for.
fn byte_length(encoded: &Value) -> usize {
    let text = encoded.as_str().unwrap_or("");
    let padding = text.bytes().rev().take_while(|c| *c == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// Sets a field that a Go struct holds by pointer, unless it is set: an empty text is a value here.
fn default_pointer(value: &mut Value, field: &str, default: impl Into<Value>) {
    if set(value, field).is_none() {
        put(value, field, default);
    }
}

/// Checks that a text, if it is there, is one of those it may be; an empty one is there.
fn choice(value: &Value, field: &str, supported: &[&str], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(text) = set(value, field).and_then(Value::as_str)
        && !supported.contains(&text)
    {
        errors.push(FieldError::not_supported(&path.field(field), &text.into(), supported));
    }
}

/// Whether a field is absent or empty.
fn is_unset(value: &Value, field: &str) -> bool {
    is_empty(value.get(field))
}

/// Checks that a text is there and one of those it may be.
fn one_of(text: &str, path: &Path<'_>, supported: &[&str], errors: &mut Vec<FieldError>) {
    if text.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !supported.contains(&text) {
        errors.push(FieldError::not_supported(path, &text.into(), supported));
    }
}
