//! `ReplicaSet`.

use super::super::json::{default_to, ensure_object};
use super::super::{Env, Rules, names, pod};
use super::common;
use serde_json::{Value, json};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update: common::prepare_update,
    prepare_status: common::prepare_status,
    name: names::dns1123_subdomain,
    ..Rules::NONE
};

fn default(set: &mut Value) {
    let Some(spec) = ensure_object(set, "spec") else { return };
    default_to(spec, "replicas", 1);
    pod::defaults::default_template(spec);
}

fn prepare_create(set: &mut Value, _env: &Env<'_>) {
    common::prepare_create_with(set, json!({"replicas": 0}));
}
