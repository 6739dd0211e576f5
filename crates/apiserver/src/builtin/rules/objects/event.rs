//! `Event`, in its two groups.
//!
//! Events are stored as `v1`; [`to_core`] and [`from_core`] translate objects of `events.k8s.io/v1`. The
//! rules of both groups take the stored form, since what they refuse is named by its fields; those of
//! `events.k8s.io` are stricter.

use super::{check_meta_again, check_new_meta_again};
use crate::builtin::rules::Rules;
use crate::builtin::rules::checks::IMMUTABLE;
use crate::builtin::rules::json::{int, put, same_field, set, take, text};
use crate::builtin::rules::names::{
    complain, dns1123_subdomain, label_key, path_segment_name, validate_immutable, validate_immutable_text,
};
use crate::field::{FieldError, Path, Problem};
use serde_json::Value;

pub(super) static CORE: Rules = Rules {
    validate: |object, errors| validate_stored(object, "reportingComponent", errors),
    validate_update: |new, _, errors| validate_stored(new, "reportingComponent", errors),
    name: path_segment_name,
    ..Rules::NONE
};

pub(super) static EVENTS: Rules =
    Rules { validate: validate_strict, validate_update, name: dns1123_subdomain, ..Rules::NONE };

/// Fields that have one name in `events.k8s.io` and another in the core group.
const RENAMED: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Makes an `events.k8s.io/v1` object a `v1` one.
pub(crate) fn to_core(event: &mut Value) {
    for (theirs, ours) in RENAMED {
        if let Some(value) = take(event, theirs) {
            put(event, ours, value);
        }
    }
    put(event, "apiVersion", "v1");
}

/// Makes a `v1` object an `events.k8s.io/v1` one.
pub(crate) fn from_core(event: &mut Value) {
    for (theirs, ours) in RENAMED {
        if let Some(value) = take(event, ours) {
            put(event, theirs, value);
        }
    }
    put(event, "apiVersion", "events.k8s.io/v1");
}

fn validate_stored(event: &Value, controller_field: &str, errors: &mut Vec<FieldError>) {
    let namespace = text(&event["metadata"], "namespace");
    let involved = text(&event["involvedObject"], "namespace");
    let timed = set(event, "eventTime").is_some();
    let mismatch = match (involved, timed) {
        ("", false) => !matches!(namespace, "" | "default"),
        (involved, false) => namespace != involved,
        ("", true) => !matches!(namespace, "default" | "kube-system"),
        (_, true) => false,
    };
    if mismatch {
        let path = Path::of("involvedObject");
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid(&path.field("namespace"), &involved.into(), detail));
    }
    if timed {
        validate_report(event, controller_field, errors);
    }
    complain(errors, &Path::of("namespace"), namespace, dns1123_subdomain(namespace));
}

fn validate_report(event: &Value, controller_field: &str, errors: &mut Vec<FieldError>) {
    let controller = text(event, "reportingComponent");
    let path = Path::of(controller_field);
    if controller.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    complain(errors, &path, controller, label_key(controller));
    let mut limit = |field: &str, required: bool, max: usize| {
        let length = text(event, field).len();
        if required && length == 0 {
            errors.push(FieldError::required(&Path::of(field), ""));
        }
        if length > max {
            let detail = format!("can have at most {max} characters");
            errors.push(FieldError::invalid(&Path::of(field), &"".into(), detail));
        }
    };
    limit("reportingInstance", true, 128);
    limit("action", true, 128);
    limit("reason", true, 128);
    limit("message", false, 1024);
}

fn validate_strict(event: &Value, errors: &mut Vec<FieldError>) {
    validate_stored(event, "reportingController", errors);
    check_new_meta_again(event, true, dns1123_subdomain, errors);
    validate_series(event, errors);
    if set(event, "eventTime").is_none() {
        errors.push(FieldError::required(&Path::of("eventTime"), ""));
    }
    let mut refuse = |field: &str, detail: String| {
        errors.push(FieldError::invalid(&Path::of(field), &"".into(), detail));
    };
    let kind = text(event, "type");
    if kind != "Normal" && kind != "Warning" {
        refuse("type", format!("has invalid value: {kind}"));
    }
    for field in ["firstTimestamp", "lastTimestamp"] {
        if set(event, field).is_some() {
            refuse(field, "needs to be unset".to_owned());
        }
    }
    if int(event, "count").unwrap_or(0) != 0 {
        refuse("count", "needs to be unset".to_owned());
    }
    let source = &event["source"];
    if !text(source, "component").is_empty() || !text(source, "host").is_empty() {
        refuse("source", "needs to be unset".to_owned());
    }
}

fn validate_series(event: &Value, errors: &mut Vec<FieldError>) {
    let Some(series) = set(event, "series") else { return };
    if int(series, "count").unwrap_or(0) < 2 {
        errors.push(FieldError::invalid(&Path::of("series.count"), &"".into(), "should be at least 2"));
    }
    if set(series, "lastObservedTime").is_none() {
        errors.push(FieldError::required(&Path::of("series.lastObservedTime"), ""));
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    validate_stored(new, "reportingController", errors);
    check_meta_again(new, old, errors);
    if !same_field(new, old, "series") {
        validate_series(new, errors);
    }
    let object = |field: &str, errors: &mut Vec<FieldError>| {
        if !same_field(new, old, field) {
            errors.push(FieldError {
                problem: Problem::Invalid,
                field: field.to_owned(),
                value: Some(internal(field, &new[field])),
                detail: IMMUTABLE.to_owned(),
            });
        }
    };
    let plain = |field: &str, shown: &str, errors: &mut Vec<FieldError>| {
        if !same_field(new, old, field) {
            let is_text = new[field].is_string() || old[field].is_string();
            let check = if is_text && !field.ends_with("Time") && !field.ends_with("Timestamp") {
                validate_immutable_text
            } else {
                validate_immutable
            };
            check(&new[field], &old[field], &Path::of(shown), errors);
        }
    };
    object("involvedObject", errors);
    plain("reason", "reason", errors);
    plain("message", "message", errors);
    object("source", errors);
    for field in ["firstTimestamp", "lastTimestamp", "count", "type", "eventTime", "action"] {
        plain(field, field, errors);
    }
    object("related", errors);
    plain("reportingComponent", "reportingController", errors);
    plain("reportingInstance", "reportingInstance", errors);
}

/// An object of an event as the real server prints it: Go field names, nothing left out.
fn internal(field: &str, value: &Value) -> String {
    const REFERENCE: &[(&str, &str)] = &[
        ("Kind", "kind"),
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("UID", "uid"),
        ("APIVersion", "apiVersion"),
        ("ResourceVersion", "resourceVersion"),
        ("FieldPath", "fieldPath"),
    ];
    const SOURCE: &[(&str, &str)] = &[("Component", "component"), ("Host", "host")];
    if field == "related" && value.is_null() {
        return "null".to_owned();
    }
    let table = if field == "source" { SOURCE } else { REFERENCE };
    let fields: Vec<String> =
        table.iter().map(|(go, json)| format!("\"{go}\":{}", Value::from(text(value, json)))).collect();
    format!("{{{}}}", fields.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_survives_the_way_to_the_core_group_and_back() {
        let event = json!({"apiVersion": "events.k8s.io/v1", "metadata": {"name": "a"}, "note": "n", "reason": "r",
            "regarding": {"kind": "Pod"}, "reportingController": "a/b", "deprecatedCount": 1});
        let mut core = event.clone();
        to_core(&mut core);
        assert_eq!(
            core,
            json!({"apiVersion": "v1", "metadata": {"name": "a"}, "message": "n", "reason": "r",
                "involvedObject": {"kind": "Pod"}, "reportingComponent": "a/b", "count": 1})
        );
        from_core(&mut core);
        assert_eq!(core, event);
    }
}
