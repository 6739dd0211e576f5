//! `CronJob`.

use super::super::json::{default_to, ensure_object};
use super::super::{Env, Rules, names, pod};
use super::{common, job};
use serde_json::Value;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status: common::prepare_status,
    name: names::dns1123_subdomain,
    ..Rules::NONE
};

const POD_SPEC: &str = "/spec/jobTemplate/spec/template/spec";

fn default(cron: &mut Value) {
    let Some(spec) = ensure_object(cron, "spec") else { return };
    default_to(spec, "concurrencyPolicy", "Allow");
    default_to(spec, "suspend", false);
    default_to(spec, "successfulJobsHistoryLimit", 3);
    default_to(spec, "failedJobsHistoryLimit", 1);
    if let Some(spec) = ensure_object(spec, "jobTemplate").and_then(|t| ensure_object(t, "spec")) {
        job::default_template(spec);
    }
}

fn prepare_create(cron: &mut Value, env: &Env<'_>) {
    common::prepare_create(cron, env);
    pod::prepare::drop_disabled(cron.pointer_mut(POD_SPEC), None);
}

fn prepare_update(new: &mut Value, old: &Value, env: &Env<'_>) {
    pod::prepare::drop_disabled(new.pointer_mut(POD_SPEC), old.pointer(POD_SPEC));
    common::prepare_update(new, old, env);
}
