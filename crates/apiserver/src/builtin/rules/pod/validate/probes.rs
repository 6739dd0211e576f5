//! Probes and lifecycle hooks.

use crate::builtin::rules::checks::{Errors, nonnegative, one_of, port, required};
use crate::builtin::rules::json::{int, list, set, text};
use crate::builtin::rules::names;
use crate::field::{FieldError, Path};
use serde_json::Value;

/// Checks the probes and hooks of a container that may have them. `grace` is the pod's grace period.
pub(super) fn validate(container: &Value, grace: Option<i64>, path: &Path<'_>, errors: &mut Errors) {
    if let Some(lifecycle) = set(container, "lifecycle") {
        let path = path.field("lifecycle");
        for hook in ["postStart", "preStop"] {
            if let Some(handler) = set(lifecycle, hook) {
                validate_handler(
                    handler,
                    grace,
                    &["exec", "httpGet", "tcpSocket", "sleep"],
                    &path.field(hook),
                    errors,
                );
            }
        }
    }
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = set(container, field) else { continue };
        let path = path.field(field);
        validate_probe(probe, grace, &path, errors);
        if field == "readinessProbe" {
            if let Some(seconds) = set(probe, "terminationGracePeriodSeconds") {
                let at = path.field("terminationGracePeriodSeconds");
                errors.push(FieldError::invalid(&at, seconds, "must not be set for readinessProbes"));
            }
        } else {
            let threshold = int(probe, "successThreshold").unwrap_or(0);
            if threshold != 1 {
                let at = path.field("successThreshold");
                errors.push(FieldError::invalid(&at, &threshold.into(), "must be 1"));
            }
        }
    }
}

fn validate_probe(probe: &Value, grace: Option<i64>, path: &Path<'_>, errors: &mut Errors) {
    validate_handler(probe, grace, &["exec", "httpGet", "tcpSocket", "grpc"], path, errors);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        nonnegative(errors, path, probe, field);
    }
    if let Some(seconds) = int(probe, "terminationGracePeriodSeconds").filter(|s| *s <= 0) {
        let at = path.field("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(&at, &seconds.into(), "must be greater than 0"));
    }
}

fn validate_handler(
    handler: &Value,
    grace: Option<i64>,
    kinds: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mut found = false;
    for kind in kinds {
        let Some(action) = set(handler, kind) else { continue };
        let path = path.field(kind);
        if found {
            errors.push(FieldError::forbidden(&path, "may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match *kind {
            "exec" => {
                if list(action, "command").is_empty() {
                    errors.push(FieldError::required(&path.field("command"), ""));
                }
            }
            "httpGet" => validate_http_get(action, &path, errors),
            "sleep" => {
                let seconds = int(action, "seconds").unwrap_or(0);
                if let Some(grace) = grace.filter(|grace| seconds < 0 || seconds > *grace) {
                    let why =
                        format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                    errors.push(FieldError::invalid(&path, &seconds.into(), why));
                }
            }
            _ => port(errors, &path.field("port"), action.get("port").unwrap_or(&Value::Null)),
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn validate_http_get(action: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(errors, path, action, "path");
    port(errors, &path.field("port"), action.get("port").unwrap_or(&Value::Null));
    one_of(errors, path, action, "scheme", &["HTTP", "HTTPS"]);
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            let why = names::form_error(
                "a valid HTTP header must consist of alphanumeric characters or '-'",
                "[-A-Za-z0-9]+",
                &["X-Header-Name"],
            );
            errors.push(FieldError::invalid(&path.field("httpHeaders"), &name.into(), why));
        }
    }
}
