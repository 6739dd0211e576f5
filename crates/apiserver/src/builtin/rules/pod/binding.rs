//! `pods/binding`: a pod is given its node, once.

use super::super::Env;
use super::super::json::{ensure_object, list, object_mut, put, set, take, text};
use super::conditions::set_condition;
use crate::field::{FieldError, Path};
use crate::status::{ApiError, Subject};
use serde_json::{Value, json};

/// Binds the pod to the node that the binding names.
///
/// The binding's labels and annotations go over to the pod. The spec changes, but its generation does not.
/// Preconditions (`metadata.uid` and `resourceVersion` of the binding) are the caller's.
pub(crate) fn bind(pod: &mut Value, binding: &Value, env: &Env<'_>) -> Result<(), ApiError> {
    let nothing = Value::Null;
    let target = binding.get("target").unwrap_or(&nothing);
    validate_target(target)?;
    refuse_unless_free(pod)?;
    let Some(spec) = ensure_object(pod, "spec") else { return Ok(()) };
    put(spec, "nodeName", text(target, "name"));
    if let Some(status) = object_mut(pod, "status") {
        take(status, "nominatedNodeName");
    }
    for field in ["annotations", "labels"] {
        let given = binding.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_object);
        for (key, value) in given.into_iter().flatten() {
            if let Some(map) = ensure_object(pod, "metadata").and_then(|m| ensure_object(m, field)) {
                put(map, key, value.clone());
            }
        }
    }
    let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null});
    set_condition(pod, condition, env.now);
    Ok(())
}

fn validate_target(target: &Value) -> Result<(), ApiError> {
    let mut wrong = Vec::new();
    let path = Path::of("target");
    let kind = text(target, "kind");
    if !matches!(kind, "" | "Node") {
        wrong.push(FieldError::not_supported(&path.field("kind"), &kind.into(), &["Node", "<empty>"]));
    }
    if text(target, "name").is_empty() {
        wrong.push(FieldError::required(&path.field("name"), ""));
    }
    let sentences: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    match sentences.as_slice() {
        [] => Ok(()),
        // The real server forgets to say that this is the client's mistake.
        [one] => Err(ApiError::plain(500, "", one)),
        many => Err(ApiError::plain(500, "", format!("[{}]", many.join(", ")))),
    }
}

fn refuse_unless_free(pod: &Value) -> Result<(), ApiError> {
    let nothing = Value::Null;
    let (meta, spec) = (pod.get("metadata").unwrap_or(&nothing), pod.get("spec").unwrap_or(&nothing));
    let name = text(meta, "name");
    let node = text(spec, "nodeName");
    let why = if set(meta, "deletionTimestamp").is_some() {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !node.is_empty() {
        format!("pod {name} is already assigned to node {node:?}")
    } else if !list(spec, "schedulingGates").is_empty() {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(ApiError::conflict(&Subject { group: "", kind: "pods/binding" }, name, &why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> Env<'static> {
        Env { now: jiff::Timestamp::UNIX_EPOCH, uid: &String::new, dry_run: false }
    }

    fn refused(mut pod: Value, target: &Value) -> String {
        let error = bind(&mut pod, &json!({"target": target}), &env()).unwrap_err();
        format!("{} {}", error.code, error.message)
    }

    #[test]
    fn a_bound_pod_has_its_node_and_what_the_binding_brought() {
        let mut pod = json!({"metadata": {"name": "p", "generation": 1}, "spec": {}, "status": {"nominatedNodeName": "x"}});
        let binding = json!({
            "metadata": {"labels": {"q": "r"}, "annotations": {"x": "y"}},
            "target": {"kind": "Node", "name": "n1"},
        });
        bind(&mut pod, &binding, &env()).unwrap();
        let condition = json!({
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": null,
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        });
        assert_eq!(
            pod,
            json!({
                "metadata": {"name": "p", "generation": 1, "labels": {"q": "r"}, "annotations": {"x": "y"}},
                "spec": {"nodeName": "n1"},
                "status": {"conditions": [condition]},
            })
        );
    }

    #[test]
    fn a_pod_is_bound_once() {
        let node = &json!({"kind": "Node", "name": "n2"});
        let pod = |meta: Value, spec: Value| json!({"metadata": meta, "spec": spec});
        let start = "409 Operation cannot be fulfilled on pods/binding \"p\": pod p";
        assert_eq!(
            refused(pod(json!({"name": "p"}), json!({"nodeName": "n1"})), node),
            format!("{start} is already assigned to node \"n1\"")
        );
        assert_eq!(
            refused(pod(json!({"name": "p"}), json!({"schedulingGates": [{"name": "a"}]})), node),
            format!("{start} has non-empty .spec.schedulingGates")
        );
        assert_eq!(
            refused(pod(json!({"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}), json!({})), node),
            format!("{start} is being deleted, cannot be assigned to a host")
        );
        assert_eq!(
            refused(pod(json!({"name": "p"}), json!({})), &json!({"kind": "Foo"})),
            "500 [target.kind: Unsupported value: \"Foo\": supported values: \"Node\", \"<empty>\", target.name: \
             Required value]"
        );
    }
}
