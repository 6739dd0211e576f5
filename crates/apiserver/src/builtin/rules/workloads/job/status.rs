//! What a write to a job's status may say. Most of it is about jobs that are managed by others, whose
//! controllers must keep the same promises as the built-in one.

use super::super::common::{STATUS, invalid_without_value, validate_counts};
use super::indexes;
use crate::builtin::rules::checks::{Errors, IMMUTABLE};
use crate::builtin::rules::json::{flag, int, list, same_field, set, text};
use crate::field::FieldError;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::HashSet;

/// Whether a status has a condition of this type with this status.
pub(super) fn has_condition(status: &Value, kind: &str, value: &str) -> bool {
    list(status, "conditions").iter().any(|c| text(c, "type") == kind && text(c, "status") == value)
}

/// A status and the one before it, with the questions the checks ask of them.
struct Change<'a> {
    spec: &'a Value,
    new: &'a Value,
    old: &'a Value,
}

impl Change<'_> {
    fn is(&self, kind: &str) -> bool {
        has_condition(self.new, kind, "True")
    }

    fn was(&self, kind: &str) -> bool {
        has_condition(self.old, kind, "True")
    }

    fn condition_changed(&self, kind: &str) -> bool {
        self.is(kind) != self.was(kind)
    }

    fn finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn finished_changed(&self) -> bool {
        self.finished() != (self.was("Complete") || self.was("Failed"))
    }

    fn changed(&self, field: &str) -> bool {
        !same_field(self.new, self.old, field)
    }

    fn indexed(&self) -> bool {
        text(self.spec, "completionMode") == "Indexed"
    }
}

/// Checks a write to a Job's status.
pub(super) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let change = Change {
        spec: new.get("spec").unwrap_or(&nothing),
        new: new.get("status").unwrap_or(&nothing),
        old: old.get("status").unwrap_or(&nothing),
    };
    validate_counts(change.new, &["active", "succeeded", "failed", "ready", "terminating"], errors);
    validate_uncounted(&change, errors);
    validate_completion(&change, errors);
    validate_finished(&change, errors);
    validate_indexes(&change, errors);
    validate_pods(&change, errors);
    validate_success(&change, errors);
    validate_history(&change, errors);
}

fn refuse_conditions(errors: &mut Errors, why: &str) {
    errors.push(invalid_without_value(&STATUS.field("conditions"), why));
}

fn validate_uncounted(change: &Change<'_>, errors: &mut Errors) {
    let Some(uncounted) = set(change.new, "uncountedTerminatedPods") else { return };
    let path = STATUS.field("uncountedTerminatedPods");
    let mut seen = HashSet::new();
    for field in ["succeeded", "failed"] {
        let path = path.field(field);
        for (index, uid) in list(uncounted, field).iter().enumerate() {
            if uid.as_str().is_none_or(str::is_empty) {
                errors.push(FieldError::invalid(&path.index(index), uid, "must not be empty"));
            } else if !seen.insert(uid.as_str()) {
                errors.push(FieldError::duplicate(&path.index(index), uid));
            }
        }
    }
}

fn validate_completion(change: &Change<'_>, errors: &mut Errors) {
    let complete = change.is("Complete");
    let complete_changed = change.condition_changed("Complete");
    if complete && change.is("Failed") && (complete_changed || change.condition_changed("Failed")) {
        refuse_conditions(errors, "cannot set Complete=True and Failed=true conditions");
    }
    if complete
        && change.is("FailureTarget")
        && (complete_changed || change.condition_changed("FailureTarget"))
    {
        refuse_conditions(errors, "cannot set Complete=True and FailureTarget=true conditions");
    }
    let path = STATUS.field("completionTime");
    let time = set(change.new, "completionTime");
    if complete_changed || change.changed("completionTime") {
        match time {
            Some(time) if !complete => {
                let why = "cannot set completionTime when there is no Complete=True condition";
                errors.push(FieldError::invalid(&path, time, why));
            }
            None if complete => {
                let why = "completionTime is required for Complete jobs";
                errors.push(FieldError::required(&path, why));
            }
            _ => {}
        }
    }
    if change.changed("startTime") || change.changed("completionTime") {
        let read = |field: &str| text(change.new, field).parse::<Timestamp>().ok();
        if let (Some(start), Some(end), Some(time)) = (read("startTime"), read("completionTime"), time)
            && end < start
        {
            errors.push(FieldError::invalid(&path, time, "must be equal to or after `startTime`"));
        }
    }
}

fn validate_finished(change: &Change<'_>, errors: &mut Errors) {
    let failed_changed = change.condition_changed("Failed") || change.changed("failedIndexes");
    if failed_changed && change.is("Failed") && !change.is("FailureTarget") {
        let why = "cannot set Failed=True condition without the FailureTarget=true condition";
        refuse_conditions(errors, why);
    }
    let complete_changed =
        change.condition_changed("Complete") || change.condition_changed("SuccessCriteriaMet");
    if complete_changed && change.is("Complete") && !change.is("SuccessCriteriaMet") {
        let why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        refuse_conditions(errors, why);
    }
    if !change.finished() {
        return;
    }
    let finished_changed = change.finished_changed();
    let active = int(change.new, "active").unwrap_or(0);
    if active > 0 && (finished_changed || change.changed("active")) {
        let why = "active>0 is invalid for finished job";
        errors.push(FieldError::invalid(&STATUS.field("active"), &active.into(), why));
    }
    let never_started = flag(change.spec, "suspend") && int(change.spec, "completions") == Some(0);
    if set(change.new, "startTime").is_none()
        && (finished_changed || change.changed("startTime"))
        && !never_started
    {
        let why = "startTime is required for finished job";
        errors.push(FieldError::required(&STATUS.field("startTime"), why));
    }
    if let Some(uncounted) = set(change.new, "uncountedTerminatedPods")
        && (finished_changed || change.changed("uncountedTerminatedPods"))
        && ["succeeded", "failed"].iter().any(|f| !list(uncounted, f).is_empty())
    {
        let why = "must be empty for finished job";
        errors.push(FieldError::invalid(&STATUS.field("uncountedTerminatedPods"), uncounted, why));
    }
}

fn validate_indexes(change: &Change<'_>, errors: &mut Errors) {
    let completions = int(change.spec, "completions");
    let (completed, failed) = (text(change.new, "completedIndexes"), set(change.new, "failedIndexes"));
    let per_index = set(change.spec, "backoffLimitPerIndex").is_some();
    let (completed_changed, failed_changed) =
        (change.changed("completedIndexes"), change.changed("failedIndexes"));
    let (completed_path, failed_path) = (STATUS.field("completedIndexes"), STATUS.field("failedIndexes"));
    if let (true, Some(completions)) = (completed_changed, completions)
        && let Err(why) = indexes::count(completed, completions)
    {
        let why = format!("error parsing completedIndexes: {why}");
        errors.push(FieldError::invalid(&completed_path, &completed.into(), why));
    }
    if let (true, Some(completions), Some(failed)) = (failed_changed && per_index, completions, failed)
        && let Err(why) = indexes::count(failed.as_str().unwrap_or_default(), completions)
    {
        let why = format!("error parsing failedIndexes: {why}");
        errors.push(FieldError::invalid(&failed_path, failed, why));
    }
    if completed_changed && !completed.is_empty() && !change.indexed() {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.push(FieldError::invalid(&completed_path, &completed.into(), why));
    }
    let Some(failed) = failed else { return };
    if failed_changed && !per_index {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.push(FieldError::invalid(&failed_path, failed, why));
    }
    if let (true, Some(completions)) = (failed_changed || completed_changed, completions)
        && let Some(index) = indexes::overlap(completed, failed.as_str().unwrap_or_default(), completions)
    {
        let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
        errors.push(FieldError::invalid(&failed_path, failed, why));
    }
}

fn validate_pods(change: &Change<'_>, errors: &mut Errors) {
    let terminating = int(change.new, "terminating").unwrap_or(0);
    if terminating > 0 && change.finished() && (change.finished_changed() || change.changed("terminating")) {
        let why = "terminating>0 is invalid for finished job";
        errors.push(FieldError::invalid(&STATUS.field("terminating"), &terminating.into(), why));
    }
    let active = int(change.new, "active").unwrap_or(0);
    if let Some(ready) = int(change.new, "ready").filter(|ready| *ready > active)
        && (change.changed("ready") || change.changed("active"))
    {
        let why = "cannot set more ready pods than active";
        errors.push(FieldError::invalid(&STATUS.field("ready"), &ready.into(), why));
    }
}

fn validate_success(change: &Change<'_>, errors: &mut Errors) {
    let met = change.is("SuccessCriteriaMet");
    if met && change.is("Failed") {
        refuse_conditions(errors, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
    }
    if met && change.is("FailureTarget") {
        refuse_conditions(errors, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    }
    if set(change.spec, "successPolicy").is_some() && !met && change.is("Complete") {
        let why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        refuse_conditions(errors, why);
    }
}

/// What was said of a job cannot be taken back.
fn validate_history(change: &Change<'_>, errors: &mut Errors) {
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if change.was(kind) && !change.is(kind) {
            refuse_conditions(errors, &format!("cannot disable the terminal {kind}=True condition"));
        }
    }
    let elastic = change.indexed() && int(change.spec, "completions") == int(change.spec, "parallelism");
    for (field, counts) in [("failed", true), ("succeeded", !elastic)] {
        let (now, before) = (int(change.new, field).unwrap_or(0), int(change.old, field).unwrap_or(0));
        if counts && now < before {
            let why = format!("cannot decrease the {field} counter");
            errors.push(FieldError::invalid(&STATUS.field(field), &now.into(), why));
        }
    }
    let (now, before) = (set(change.new, "completionTime"), set(change.old, "completionTime"));
    if let (Some(now), Some(before)) = (now, before)
        && now != before
    {
        errors.push(FieldError::invalid(&STATUS.field("completionTime"), now, IMMUTABLE));
    }
    let resuming = change.was("Suspended") && has_condition(change.new, "Suspended", "False");
    if set(change.old, "startTime").is_some()
        && change.changed("startTime")
        && !resuming
        && !flag(change.spec, "suspend")
    {
        let shown = change.new.get("startTime").unwrap_or(&Value::Null);
        let why = "field is immutable for unsuspended job once set";
        errors.push(FieldError::invalid(&STATUS.field("startTime"), shown, why));
    }
    if change.was("SuccessCriteriaMet") && !change.is("SuccessCriteriaMet") {
        refuse_conditions(errors, "cannot disable the SuccessCriteriaMet=True condition");
    }
    if change.was("Complete") && !change.was("SuccessCriteriaMet") && change.is("SuccessCriteriaMet") {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        refuse_conditions(errors, why);
    }
}
