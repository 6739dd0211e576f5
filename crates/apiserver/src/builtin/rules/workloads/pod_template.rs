//! `PodTemplate`.

use super::super::checks::Errors;
use super::super::json::{bump_generation, generation, set_generation};
use super::super::{Env, Rules, names, pod};
use crate::field::Path;
use serde_json::Value;

pub(super) const RULES: Rules = Rules {
    default: pod::defaults::default_template,
    prepare_create,
    prepare_update,
    validate,
    validate_update: |new, _, errors| validate(new, errors),
    warnings,
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

fn validate(template: &Value, errors: &mut Errors) {
    pod::validate::validate_template(&template["template"], &Path::of("template"), errors);
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some_and(|old| generation(old) == generation(new)) {
        return Vec::new();
    }
    pod::warnings::for_template(
        new.get("template"),
        old.and_then(|o| o.get("template")),
        &Path::of("template"),
    )
}
