//! Taking over from client-side apply.
//!
//! `kubectl apply` without `--server-side` keeps what it applied in an annotation. When the manager
//! `kubectl` applies server-side, conflicts over fields that the annotation shows to be its own are none,
//! and an annotation that is there is kept in step.

use super::Target;
use super::compare::compare;
use super::fields::fields_of;
use super::node::Node;
use super::set::FieldSet;
use super::validate::{Duplicates, validate};
use crate::gotext;
use serde_json::Value;

/// The manager as which kubectl applies.
pub(super) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    if text.is_empty() { None } else { Some(text) }
}

/// The fields that the annotation shows kubectl to have set and that are still as it set them.
pub(super) fn owned_by_annotation(live: &Value, target: &Target<'_>) -> Option<FieldSet> {
    let root = Node::root(target.schema);
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.get("apiVersion")?.as_str()? != target.api_version {
        return None;
    }
    validate(live, root, Duplicates::Refused).ok()?;
    validate(&last, root, Duplicates::Refused).ok()?;
    let changed = compare(&last, live, root);
    let fields = fields_of(&last, root);
    Some(fields.difference(&changed.modified).difference(&changed.added).difference(&changed.removed))
}

/// Brings the annotation, if there is one, in step with what was applied.
pub(super) fn refresh_annotation(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut text = if annotation(applied).is_some() {
        let mut applied = applied.clone();
        if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
            annotations.remove(ANNOTATION);
        }
        gotext::go_json(&applied)
    } else {
        gotext::go_json(applied)
    };
    text.push('\n');
    let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") else { return };
    annotations.insert(ANNOTATION.to_owned(), text.into());
    let size: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_SIZE_MAX {
        annotations.remove(ANNOTATION);
    }
}
