//! Groups of the Kubernetes project: their definitions say who approved them.

use crate::builtin::rules::json::text;
use crate::field::{FieldError, Path};
use serde_json::Value;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const PULL_REQUEST: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Approval {
    /// The annotation is a URL.
    Given,
    /// The annotation says why there is none.
    Bypassed,
    Missing,
    Unreadable,
}

fn is_protected(crd: &Value) -> bool {
    let group = text(&crd["spec"], "group");
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|suffix| group.strip_suffix(suffix).is_some_and(|head| head.is_empty() || head.ends_with('.')))
}

fn annotation(crd: &Value) -> &str {
    text(&crd["metadata"]["annotations"], ANNOTATION)
}

fn approval(crd: &Value) -> Approval {
    let text = annotation(crd);
    let is_url = text.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    match text {
        "" => Approval::Missing,
        _ if text.starts_with("unapproved") => Approval::Bypassed,
        _ if is_url => Approval::Given,
        _ => Approval::Unreadable,
    }
}

fn sentence(crd: &Value) -> String {
    let opening = format!("protected groups must have approval annotation \"{ANNOTATION}\"");
    match approval(crd) {
        Approval::Given => format!("approved in {}", annotation(crd)),
        Approval::Bypassed => format!("not approved: {:?}", annotation(crd)),
        Approval::Missing => format!("{opening}, {PULL_REQUEST}"),
        Approval::Unreadable => {
            format!("{opening} with either a URL or a reason starting with \"unapproved\", {PULL_REQUEST}")
        }
    }
}

/// Refuses a definition that takes a protected group without saying so; an old one may stay as it is.
pub(super) fn validate_approval(crd: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if !is_protected(crd) || old.is_some_and(|old| approval(old) == approval(crd)) {
        return;
    }
    let path = Path::of("metadata");
    let path = path.field("annotations");
    let path = path.key(ANNOTATION);
    match approval(crd) {
        Approval::Given | Approval::Bypassed => {}
        Approval::Missing => errors.push(FieldError::required(&path, sentence(crd))),
        Approval::Unreadable => {
            errors.push(FieldError::invalid(&path, &annotation(crd).into(), sentence(crd)));
        }
    }
}

/// Status, reason and message of the condition that definitions of protected groups have.
pub(super) fn condition(crd: &Value) -> Option<(&'static str, &'static str, String)> {
    let (status, reason) = match approval(crd) {
        _ if !is_protected(crd) => return None,
        Approval::Given => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Unreadable => ("False", "InvalidAnnotation"),
    };
    Some((status, reason, sentence(crd)))
}
