//! `ReplicaSet`.

use super::super::json::{default_to, ensure_object};
use super::super::{Rules, names, pod};
use super::common;
use serde_json::Value;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: common::prepare_create,
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
