//! Fields of a document that its kind does not have. A server drops them, and a type ignores them: who misspelt one would never know.

use crate::failure::Failure;
use serde_json::Value;

/// The fields of `metadata` that people write or a server fills in.
const METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Refuses a document with fields that its CRD does not have, by their paths. One that no CRD of these defines is left alone.
pub(crate) fn refuse_unknown(document: &Value, crds: &[Value]) -> Result<(), Failure> {
    let unknown = crds.iter().find(|crd| defines(crd, document)).map(|crd| unknown_fields(document, crd));
    match unknown.unwrap_or_default().as_slice() {
        [] => Ok(()),
        unknown => {
            let lines: Vec<String> = unknown.iter().map(|path| format!("{path}: unknown field")).collect();
            Err(Failure::new(anyhow::anyhow!(lines.join("\n"))))
        }
    }
}

fn defines(crd: &Value, document: &Value) -> bool {
    let group = document["apiVersion"].as_str().and_then(|version| version.split_once('/'));
    let spec = &crd["spec"];
    document["kind"] == spec["names"]["kind"] && group.is_some_and(|(group, _)| spec["group"] == group)
}

/// The paths of all fields that a CRD does not have, in the version of the document, or in its first one.
fn unknown_fields(document: &Value, crd: &Value) -> Vec<String> {
    let versions = crd["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let version = document["apiVersion"].as_str().and_then(|version| version.rsplit('/').next());
    let of_document = versions.iter().find(|known| known["name"].as_str() == version);
    let Some(schema) = of_document.or(versions.first()).map(|version| &version["schema"]["openAPIV3Schema"])
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, value) in document.as_object().into_iter().flatten() {
        match name.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                let fields = value.as_object().into_iter().flat_map(serde_json::Map::keys);
                let unknown = fields.filter(|field| !METADATA.contains(&field.as_str()));
                found.extend(unknown.map(|field| format!("metadata.{field}")));
            }
            _ => field(name, name, value, schema, &mut found),
        }
    }
    found
}

fn field(path: &str, name: &str, value: &Value, schema: &Value, found: &mut Vec<String>) {
    if let Some(known) = schema["properties"].get(name) {
        walk(path, value, known, found);
    } else if schema["additionalProperties"].is_object() {
        walk(path, value, &schema["additionalProperties"], found);
    } else {
        found.push(path.to_owned());
    }
}

fn walk(path: &str, value: &Value, schema: &Value, found: &mut Vec<String>) {
    let keeps_all = schema["x-kubernetes-preserve-unknown-fields"] == true
        || schema["additionalProperties"] == true
        || schema["type"] != "object" && schema["type"] != "array";
    match value {
        Value::Object(fields) if !keeps_all => {
            for (name, value) in fields {
                field(&format!("{path}.{name}"), name, value, schema, found);
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                walk(&format!("{path}[{place}]"), item, &schema["items"], found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::CustomResourceExt as _;
    use mainstay_networks::kinds::Network;
    use serde_json::json;

    fn check(spec: &Value, expected: &str) {
        let document = json!({
            "apiVersion": "networks.mainstay.dev/v1alpha1", "kind": "Network", "metadata": {"name": "lab"}, "spec": spec,
        });
        let refused = refuse_unknown(&document, &[json!(Network::crd())]);
        assert_eq!(refused.map_or_else(|failure| failure.parts().0, |()| String::new()), expected);
    }

    #[test]
    fn fields_that_a_kind_does_not_have_are_named_by_their_paths() {
        check(
            &json!({"replicas": 3, "bootstrap": {"degree": 2, "n": 2}, "config": {"any": {"thing": 1}}}),
            "",
        );
        check(
            &json!({"replicas": 3, "peers": [{"env": [{"name": "A", "value": "b"}], "resources": {"limits": {"cpu": "1"}}}]}),
            "",
        );
        check(
            &json!({"replica": 3, "bootstrap": {"degre": 2}, "peers": [{}, {"rpc": {"prot": 1}, "env": [{"nam": "A"}]}]}),
            "spec.bootstrap.degre: unknown field\nspec.peers[1].env[0].nam: unknown field\n\
             spec.peers[1].rpc.prot: unknown field\nspec.replica: unknown field",
        );
    }

    #[test]
    fn metadata_and_what_is_beside_the_spec_are_looked_at_too() {
        let document = json!({
            "apiVersion": "networks.mainstay.dev/v1alpha1", "kind": "Network", "metadata": {"nam": "lab"}, "specs": {},
        });
        let refused = refuse_unknown(&document, &[json!(Network::crd())]).unwrap_err();
        assert_eq!(refused.parts().0, "metadata.nam: unknown field\nspecs: unknown field");
        assert!(refuse_unknown(&json!({"kind": "Pod", "nonsense": 1}), &[json!(Network::crd())]).is_ok());
    }
}
