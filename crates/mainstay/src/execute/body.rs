//! Bodies of requests and answers. Both are as large as objects are, so neither is copied on its way.

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value, json};

use crate::plan::{Action, Body, Precondition};

/// The uid of the object that a step is meant for; empty if it is meant for whatever is there.
pub(super) fn uid_of(body: &Body) -> &str {
    match &body.precondition {
        Precondition::Uid(uid) | Precondition::Unchanged { uid, .. } => uid,
        Precondition::None | Precondition::Absent => "",
    }
}

/// The bytes that are sent.
pub(super) fn render_body(action: Action, body: &Body) -> Vec<u8> {
    if matches!(action, Action::Delete | Action::End) {
        let policy = if body.foreground { "Foreground" } else { "Background" };
        let mut options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": uid_of(body)}, "propagationPolicy": policy,
        });
        if let Precondition::Unchanged { resource_version, .. } = &body.precondition {
            options["preconditions"]["resourceVersion"] = json!(resource_version);
        }
        if action == Action::End {
            options["gracePeriodSeconds"] = json!(0);
        }
        return options.to_string().into_bytes();
    }
    let more: &[(&str, &str)] = match &body.precondition {
        Precondition::None => &[],
        // No object was ever at revision 1, so an object that exists is a conflict. One that does not is created: the
        // server compares the version only with something that is there.
        Precondition::Absent => &[("resourceVersion", "1")],
        Precondition::Uid(uid) => &[("uid", uid)],
        Precondition::Unchanged { uid, resource_version } => {
            &[("uid", uid), ("resourceVersion", resource_version)]
        }
    };
    // Text and trees of text can always be written to memory.
    serde_json::to_vec(&WithMetadata { value: &body.value, more }).unwrap_or_default()
}

/// An object with more in its metadata than it has.
struct WithMetadata<'a> {
    value: &'a Value,
    more: &'a [(&'a str, &'a str)],
}

impl Serialize for WithMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(object) = self.value else { return self.value.serialize(serializer) };
        let mut fields = serializer.serialize_map(None)?;
        for (name, value) in object {
            match value {
                Value::Object(metadata) if name == "metadata" => {
                    fields.serialize_entry(name, &Extended { metadata, more: self.more })?;
                }
                _ => fields.serialize_entry(name, value)?,
            }
        }
        fields.end()
    }
}

struct Extended<'a> {
    metadata: &'a Map<String, Value>,
    more: &'a [(&'a str, &'a str)],
}

impl Serialize for Extended<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        for (name, value) in self.metadata {
            if self.more.iter().all(|(more, _)| more != name) {
                fields.serialize_entry(name, value)?;
            }
        }
        for (name, value) in self.more {
            fields.serialize_entry(name, value)?;
        }
        fields.end()
    }
}

/// An answer as a tree, without `managedFields`: they are as large as all the rest.
pub(super) fn read_values(answer: &Bytes) -> Value {
    let mut text = serde_json::Deserializer::from_slice(answer);
    Fields::Object.deserialize(&mut text).unwrap_or_default()
}

/// Whose fields are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fields {
    Object,
    Metadata,
}

impl<'de> DeserializeSeed<'de> for Fields {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = match (self, name.as_str()) {
                (Fields::Object, "metadata") => entries.next_value_seed(Fields::Metadata)?,
                (Fields::Metadata, "managedFields") => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => entries.next_value()?,
            };
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(precondition: Precondition) -> Value {
        let value =
            json!({"kind": "Shop", "metadata": {"name": "web", "uid": "old"}, "spec": {"metadata": {}}});
        serde_json::from_slice(&render_body(Action::Apply, &Body::new(value, precondition))).unwrap()
    }

    #[test]
    fn preconditions_are_in_the_metadata_of_what_is_sent() {
        let metadata = |precondition| rendered(precondition)["metadata"].take();
        assert_eq!(metadata(Precondition::None), json!({"name": "web", "uid": "old"}));
        assert_eq!(metadata(Precondition::Uid("new".into())), json!({"name": "web", "uid": "new"}));
        let unchanged = Precondition::Unchanged { uid: "new".into(), resource_version: "7".into() };
        assert_eq!(metadata(unchanged), json!({"name": "web", "uid": "new", "resourceVersion": "7"}));
        let absent = rendered(Precondition::Absent);
        assert_eq!(absent["metadata"]["resourceVersion"], "1");
        assert_eq!(absent["spec"], json!({"metadata": {}}));
    }

    #[test]
    fn answers_are_read_without_managed_fields_of_the_object_itself() {
        let answer = json!({
            "metadata": {"name": "web", "managedFields": [{"manager": "x"}]},
            "spec": {"managedFields": 1, "metadata": {"managedFields": 2}},
        });
        let mut expected = answer.clone();
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(read_values(&answer.to_string().into()), expected);
        assert_eq!(read_values(&"[1]".into()), Value::Null);
    }
}
