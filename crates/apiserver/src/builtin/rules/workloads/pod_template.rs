//! `PodTemplate`.

use super::super::json::{bump_generation, set_generation};
use super::super::{Env, Rules, names, pod};
use serde_json::Value;

pub(super) const RULES: Rules = Rules {
    default: pod::defaults::default_template,
    prepare_create,
    prepare_update,
    name: names::dns1123_subdomain,
    ..Rules::NONE
};

fn prepare_create(template: &mut Value, _env: &Env<'_>) {
    set_generation(template, 1);
    pod::prepare::drop_disabled(template.pointer_mut("/template/spec"), None);
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    pod::prepare::drop_disabled(new.pointer_mut("/template/spec"), old.pointer("/template/spec"));
    let changed = new.get("template") != old.get("template");
    bump_generation(new, old, changed);
}
