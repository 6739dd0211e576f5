//! The order in which the fields of an answer are written: `kind` and `apiVersion` first, as Go's types have them. A
//! client that reads a stream then knows what it has before it has all of it.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};

const FIRST: [&str; 3] = ["kind", "apiVersion", "metadata"];
/// The fields that hold whole objects: of a list, of a table, and of a table's row.
const HOLDERS: [&str; 3] = ["items", "rows", "object"];

/// A tree that is written in that order.
pub(crate) struct KindFirst<'a>(pub(crate) &'a Value);

/// The text of such a tree.
pub(crate) fn text(value: &Value) -> String {
    // Writing JSON into memory does not fail.
    serde_json::to_string(&KindFirst(value)).unwrap_or_default()
}

impl Serialize for KindFirst<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => serialize_fields(fields, serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(KindFirst)),
            other => other.serialize(serializer),
        }
    }
}

fn serialize_fields<S: Serializer>(fields: &Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    let is_object = fields.contains_key("kind") && fields.contains_key("apiVersion");
    let first = |name: &str| is_object && FIRST.contains(&name);
    let mut out = serializer.serialize_map(Some(fields.len()))?;
    if is_object {
        for name in FIRST {
            if let Some(value) = fields.get(name) {
                out.serialize_entry(name, value)?;
            }
        }
    }
    for (name, value) in fields.iter().filter(|(name, _)| !first(name)) {
        if HOLDERS.contains(&name.as_str()) {
            out.serialize_entry(name, &KindFirst(value))?;
        } else {
            out.serialize_entry(name, value)?;
        }
    }
    out.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_an_object_is_comes_first() {
        let object =
            json!({"apiVersion": "v1", "a": 1, "kind": "K", "metadata": {"kind": 1, "apiVersion": 2}});
        let written = r#"{"kind":"K","apiVersion":"v1","metadata":{"apiVersion":2,"kind":1},"a":1}"#;
        assert_eq!(text(&object), written);
        let table = json!({"apiVersion": "m", "kind": "Table", "rows": [{"cells": [], "object": object}]});
        let written =
            format!(r#"{{"kind":"Table","apiVersion":"m","rows":[{{"cells":[],"object":{written}}}]}}"#);
        assert_eq!(text(&table), written);
        assert_eq!(text(&json!({"b": 1, "kind": 2})), r#"{"b":1,"kind":2}"#);
    }
}
