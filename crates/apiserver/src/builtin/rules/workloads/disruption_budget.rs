//! `PodDisruptionBudget`.

use super::super::{Env, Rules, names};
use super::common;
use serde_json::{Value, json};

pub(super) const RULES: Rules = Rules {
    prepare_create,
    prepare_update: common::prepare_update,
    prepare_status: common::prepare_status,
    name: names::dns1123_subdomain,
    ..Rules::NONE
};

fn prepare_create(budget: &mut Value, _env: &Env<'_>) {
    let status =
        json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
    common::prepare_create_with(budget, status);
}
