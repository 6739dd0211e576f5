//! What the kinds that run pods have in common.

use super::super::json::{bump_generation, keep, put, same_field, set_generation};
use super::super::{Env, pod};
use serde_json::{Value, json};

/// A new object of a kind whose status has no fields that are always written.
pub(super) fn prepare_create(object: &mut Value, _env: &Env<'_>) {
    prepare_create_with(object, json!({}));
}

/// A new object: an unused status, generation 1, fields of disabled features ignored.
pub(super) fn prepare_create_with(object: &mut Value, status: Value) {
    put(object, "status", status);
    set_generation(object, 1);
    pod::prepare::drop_disabled(object.pointer_mut("/spec/template/spec"), None);
}

/// An update: status stays, and a changed spec counts as a new generation.
pub(super) fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep_status(new, old);
    let changed = !same_field(new, old, "spec");
    bump_generation(new, old, changed);
}

/// Everything an update does before the generation is decided.
pub(super) fn keep_status(new: &mut Value, old: &Value) {
    keep(new, old, "status");
    pod::prepare::drop_disabled(new.pointer_mut("/spec/template/spec"), old.pointer("/spec/template/spec"));
}

/// A write to status: spec stays.
pub(super) fn prepare_status(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "spec");
}
