//! `pods/ephemeralcontainers`: a write that adds debugging containers and touches nothing else.

use super::super::checks::Errors;
use super::super::json::{bump_generation, keep, object_mut, put, take};
use super::prepare::{drop_disabled, reset_metadata};
use super::validate::update::validate_ephemeral_containers;
use serde_json::Value;

/// Restores all of the pod but its ephemeral containers.
pub(crate) fn prepare(new: &mut Value, old: &Value) {
    let containers = object_mut(new, "spec").and_then(|spec| take(spec, "ephemeralContainers"));
    keep(new, old, "spec");
    keep(new, old, "status");
    reset_metadata(new, old);
    if let Some(spec) = object_mut(new, "spec") {
        match containers {
            Some(containers) => put(spec, "ephemeralContainers", containers),
            None => drop(take(spec, "ephemeralContainers")),
        }
    }
    drop_disabled(new.get_mut("spec"), old.get("spec"));
    let changed = new.get("spec") != old.get("spec");
    bump_generation(new, old, changed);
}

/// Everything wrong with such a write: containers can be added, not changed or removed.
pub(crate) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    validate_ephemeral_containers(new, old, errors);
}
