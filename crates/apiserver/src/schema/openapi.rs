//! How a custom kind's schema is published.

use serde_json::{Value, json};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The names under which a custom kind is published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
    pub list_kind: &'a str,
    /// The name of its schema among the components.
    pub definition: &'a str,
}

impl Published<'_> {
    fn identity(&self, kind: &str) -> Value {
        json!([{"group": self.group, "version": self.version, "kind": kind}])
    }
}

fn reference(name: &str) -> Value {
    json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}]})
}

/// The component of a custom kind: its own schema, with what every object has.
pub(crate) fn publish(schema: &Value, names: &Published<'_>) -> Value {
    let mut schema = schema.clone();
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let properties = &mut schema["properties"];
    properties["apiVersion"] = json!({"type": "string"});
    properties["kind"] = json!({"type": "string"});
    properties["metadata"] = reference(OBJECT_META);
    schema["x-kubernetes-group-version-kind"] = names.identity(names.kind);
    schema
}

/// The component of its list.
pub(crate) fn publish_list(names: &Published<'_>) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": reference(LIST_META),
            "items": {"type": "array", "items": reference(names.definition)},
        },
        "x-kubernetes-group-version-kind": names.identity(names.list_kind),
    })
}
