//! `ReplicaSet`.

use super::super::checks::{Errors, nonnegative};
use super::super::json::{default_to, ensure_object};
use super::super::{Env, Rules, names, pod};
use super::common::{self, SPEC, SelectorWording};
use crate::field::Path;
use serde_json::{Value, json};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update: common::prepare_update,
    prepare_status: common::prepare_status,
    validate,
    validate_update,
    validate_status,
    warnings,
    name: names::dns1123_subdomain,
};

fn default(set: &mut Value) {
    let Some(spec) = ensure_object(set, "spec") else { return };
    default_to(spec, "replicas", 1);
    pod::defaults::default_template(spec);
}

fn prepare_create(set: &mut Value, _env: &Env<'_>) {
    common::prepare_create_with(set, json!({"replicas": 0}));
}

const WORDING: SelectorWording = SelectorWording {
    // The real server says so of replica sets as well.
    empty_for: "deployment",
    broken: "invalid label selector",
    validate_template,
};

/// Checks the template of a replica set or deployment.
pub(super) fn validate_template(_spec: &Value, template: &Value, path: &Path<'_>, errors: &mut Errors) {
    pod::validate::validate_template(template, path, errors);
    common::validate_always_running(template, "ReplicaSet", path, errors);
}

fn validate(set: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let spec = set.get("spec").unwrap_or(&nothing);
    nonnegative(errors, &SPEC, spec, "replicas");
    nonnegative(errors, &SPEC, spec, "minReadySeconds");
    common::validate_selected_template(spec, &WORDING, errors);
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    validate(new, errors);
    common::immutable_selector(new, old, errors);
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let status = new.get("status").unwrap_or(&nothing);
    let counts = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    common::validate_counts(status, &counts, errors);
    let counts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    common::validate_replica_counts(status, &counts, "readyReplicas", errors);
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    pod::warnings::for_workload(new, old, common::name_warnings)
}
