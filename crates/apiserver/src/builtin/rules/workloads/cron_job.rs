//! `CronJob`.

use super::super::checks::{Errors, nonnegative, required_one_of};
use super::super::json::{default_to, ensure_object, flag, generation, set, text};
use super::super::{Env, Rules, names, pod};
use super::common::{self, SPEC, invalid_text, selector_text};
use super::job;
use crate::field::{FieldError, Path};
use crate::schedule::Schedule;
use serde_json::Value;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status: common::prepare_status,
    validate,
    validate_update,
    warnings,
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

fn validate(cron: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    validate_spec(cron.get("spec").unwrap_or(&nothing), None, errors);
    let name = cron.get("metadata").map_or("", |m| text(m, "name"));
    // The jobs' names are longer by eleven characters.
    if name.len() > 52 {
        let metadata = Path::of("metadata");
        let why = "must be no more than 52 characters";
        errors.push(FieldError::invalid(&metadata.field("name"), &name.into(), why));
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let (spec, before) = (new.get("spec").unwrap_or(&nothing), old.get("spec").unwrap_or(&nothing));
    validate_spec(spec, Some(before), errors);
}

fn validate_spec(spec: &Value, before: Option<&Value>, errors: &mut Errors) {
    validate_schedule(spec, before, errors);
    nonnegative(errors, &SPEC, spec, "startingDeadlineSeconds");
    if before.is_none_or(|before| before.get("timeZone") != spec.get("timeZone"))
        && let Some(zone) = set(spec, "timeZone").and_then(Value::as_str)
    {
        validate_zone(zone, errors);
    }
    required_one_of(errors, &SPEC, spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"]);
    let nothing = Value::Null;
    let jobs = spec.pointer("/jobTemplate/spec").unwrap_or(&nothing);
    let path = SPEC.field("jobTemplate");
    let path = path.field("spec");
    job::validate::validate_spec(jobs, &path, errors);
    if let Some(selector) = set(jobs, "selector") {
        let shown = selector_text(Some(selector));
        errors.push(invalid_text(&path.field("selector"), shown, "`selector` will be auto-generated"));
    }
    if flag(jobs, "manualSelector") {
        let at = path.field("manualSelector");
        errors.push(FieldError::not_supported(&at, &true.into(), &["nil", "false"]));
    }
    nonnegative(errors, &SPEC, spec, "successfulJobsHistoryLimit");
    nonnegative(errors, &SPEC, spec, "failedJobsHistoryLimit");
}

fn validate_schedule(spec: &Value, before: Option<&Value>, errors: &mut Errors) {
    let (text_now, path) = (text(spec, "schedule"), SPEC.field("schedule"));
    if text_now.is_empty() {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    if let Err(why) = Schedule::parse(text_now) {
        errors.push(FieldError::invalid(&path, &text_now.into(), why.to_string()));
    }
    let zone_allowed = before.is_some_and(|before| text(before, "schedule").contains("TZ"));
    let why = match (text_now.contains("TZ"), zone_allowed) {
        (true, false) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        (true, true) if set(spec, "timeZone").is_some() => {
            "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        }
        _ => return,
    };
    errors.push(FieldError::invalid(&path, &text_now.into(), why));
}

fn validate_zone(zone: &str, errors: &mut Errors) {
    let path = SPEC.field("timeZone");
    let mut refuse = |why: String| errors.push(FieldError::invalid(&path, &zone.into(), why));
    if zone.is_empty() {
        return refuse("timeZone must be nil or non-empty string".to_owned());
    }
    let well_formed = |part: &str| {
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_+".contains(&b))
    };
    if !zone.split('/').all(well_formed) {
        return refuse(format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("Local") {
        let rule = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        refuse(rule.to_owned());
    }
    if let Err(why) = Schedule::zone(zone) {
        refuse(why.to_string());
    }
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let path = SPEC.field("jobTemplate");
    let path = path.field("spec");
    let jobs = new.pointer("/spec/jobTemplate/spec");
    match old {
        None => {
            let mut warnings = common::name_warnings(new);
            warnings.extend(job::spec_warnings(jobs, &path));
            warnings
        }
        Some(old) => {
            let changed = generation(old) != generation(new);
            let mut warnings = if changed { job::spec_warnings(jobs, &path) } else { Vec::new() };
            if new.get("spec").is_some_and(|spec| text(spec, "schedule").contains("TZ")) {
                warnings.push(
                    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                     https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                        .to_owned(),
                );
            }
            warnings
        }
    }
}
