//! Data for programs: JSON, YAML, names.

use super::Format;
use crate::failure::Failure;
use serde::Serialize;
use serde_json::{Value, json as object};

/// A Kubernetes object that is printed to be applied.
pub(crate) type Manifest = Value;

/// As JSON, with a line's end.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| Failure::new(error).context("cannot print as JSON"))
}

/// As YAML, with a line's end.
pub(crate) fn yaml(value: &impl Serialize) -> Result<String, Failure> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: 1 << 20, compact_list_indent: true };
    let text = serde_saphyr::to_string_with_options(value, options);
    text.map_err(|error| Failure::new(error).context("cannot print as YAML"))
}

/// Objects as `kubectl apply -f -` takes them: YAML documents, or one `List` in JSON; or their names.
pub(crate) fn manifests(objects: &[Manifest], format: Format) -> Result<String, Failure> {
    match format {
        Format::Name => Ok(objects.iter().map(|object| name(object) + "\n").collect()),
        Format::Json => json(&object!({"apiVersion": "v1", "kind": "List", "items": objects})),
        Format::Yaml | Format::Table => {
            let documents: Result<Vec<String>, Failure> = objects.iter().map(yaml).collect();
            Ok(documents?.join("---\n"))
        }
    }
}

/// As kubectl names an object: `deployment.apps/web`, `namespace/shop`.
pub(crate) fn name(object: &Manifest) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/kind").to_lowercase();
    match text("/apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{}", text("/metadata/name")),
        None => format!("{kind}/{}", text("/metadata/name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn objects() -> [Value; 2] {
        [
            object!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
            object!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"a": "1"}},
                "spec": {"args": ["run", "--serve", "0.0.0.0:8080", "yes"], "empty": [], "none": {}, "n": 2}}),
        ]
    }

    #[test]
    fn yaml_has_a_document_for_each_object() {
        let text = manifests(&objects(), Format::Yaml).unwrap();
        expect![[r#"
            apiVersion: v1
            kind: Namespace
            metadata:
              name: shop
            ---
            apiVersion: apps/v1
            kind: Deployment
            metadata:
              labels:
                a: "1"
              name: web
            spec:
              args:
              - run
              - --serve
              - 0.0.0.0:8080
              - "yes"
              empty: []
              "n": 2
              none: {}
        "#]]
        .assert_eq(&text);
        let read: Vec<Value> =
            text.split("---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect();
        assert_eq!(read, objects());
    }

    #[test]
    fn names_are_those_of_kubectl() {
        let text = manifests(&objects(), Format::Name).unwrap();
        assert_eq!(text, "namespace/shop\ndeployment.apps/web\n");
    }
}
