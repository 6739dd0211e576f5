//! `scale` of deployments, replica sets and stateful sets: the number of replicas as an object of its own.

use super::super::checks::{Errors, nonnegative};
use super::super::json::{ensure_object, int, list, put, set, text};
use super::common::SPEC;
use serde_json::{Map, Value, json};

/// The `Scale` of an object.
pub(crate) fn read(object: &Value) -> Value {
    let nothing = Value::Null;
    let (spec, status) = (object.get("spec").unwrap_or(&nothing), object.get("status").unwrap_or(&nothing));
    let meta = object.get("metadata").unwrap_or(&nothing);
    let fields = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    let metadata: Map<String, Value> =
        fields.iter().filter_map(|f| Some(((*f).to_owned(), meta.get(f)?.clone()))).collect();
    let mut scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {},
        "status": {"replicas": int(status, "replicas").unwrap_or(0)},
    });
    if let Some(replicas) = int(spec, "replicas").filter(|n| *n != 0) {
        put(&mut scale["spec"], "replicas", replicas);
    }
    let selector = set(spec, "selector").map(selector_string).unwrap_or_default();
    if !selector.is_empty() {
        put(&mut scale["status"], "selector", selector);
    }
    scale
}

/// Everything wrong with a `Scale` that is to be written.
pub(crate) fn validate(scale: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    nonnegative(errors, &SPEC, scale.get("spec").unwrap_or(&nothing), "replicas");
}

/// Gives an object the replicas of a valid `Scale`. The caller then goes on as with any update, and holds the
/// object to the `Scale`'s uid and resource version.
pub(crate) fn write(object: &mut Value, scale: &Value) {
    let replicas = scale.get("spec").and_then(|s| int(s, "replicas")).unwrap_or(0);
    if let Some(spec) = ensure_object(object, "spec") {
        put(spec, "replicas", replicas);
    }
}

/// A selector as a query: `a=b,a,z notin (p,q)`.
pub(crate) fn selector_string(selector: &Value) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        parts.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for requirement in list(selector, "matchExpressions") {
        let key = text(requirement, "key");
        let mut values: Vec<&str> = list(requirement, "values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        parts.push((
            key,
            match text(requirement, "operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                _ => format!("!{key}"),
            },
        ));
    }
    parts.sort_by_key(|(key, _)| *key);
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_scale_shows_the_object_it_scales() {
        let object = json!({
            "metadata": {"name": "sc", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"x": "y"}},
            "spec": {
                "replicas": 2,
                "selector": {
                    "matchLabels": {"a": "b"},
                    "matchExpressions": [
                        {"key": "z", "operator": "NotIn", "values": ["q", "p"]},
                        {"key": "a", "operator": "Exists"},
                    ],
                },
            },
            "status": {"replicas": 1},
        });
        expect![[r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"sc","namespace":"n","resourceVersion":"7","uid":"u"},"spec":{"replicas":2},"status":{"replicas":1,"selector":"a=b,a,z notin (p,q)"}}"#]]
        .assert_eq(&read(&object).to_string());
    }

    #[test]
    fn writing_a_scale_sets_the_replicas() {
        let mut object = json!({"spec": {"replicas": 2, "paused": true}});
        write(&mut object, &json!({"spec": {"replicas": 5}}));
        assert_eq!(object, json!({"spec": {"replicas": 5, "paused": true}}));
    }
}
