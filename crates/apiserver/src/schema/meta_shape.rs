//! The Go type `ObjectMeta`, as far as decoding JSON into it and writing it back goes.

use crate::field::Path;
use crate::gotext::json_type;
use serde_json::{Map, Value};

/// A Go type that JSON is decoded into.
#[derive(Debug)]
pub(super) enum Shape {
    /// A string, with the type's name.
    Text(&'static str),
    /// A signed 64-bit integer.
    Int,
    /// A boolean behind a pointer: kept when false.
    Flag,
    /// A time of whole seconds.
    Time,
    /// A map from string to string.
    Texts,
    /// A list, with the type's name.
    List(&'static str, &'static Shape),
    /// A struct: its name as a field's owner and as a type, and its fields. Text fields named in the last
    /// list are written even if empty.
    Struct(&'static str, &'static str, &'static [(&'static str, Shape)], &'static [&'static str]),
    /// JSON that is kept as it is.
    Raw,
}

const TEXT: Shape = Shape::Text("string");

const OWNER_REFERENCE: Shape = Shape::Struct(
    "OwnerReference",
    "v1.OwnerReference",
    &[
        ("apiVersion", TEXT),
        ("blockOwnerDeletion", Shape::Flag),
        ("controller", Shape::Flag),
        ("kind", TEXT),
        ("name", TEXT),
        ("uid", Shape::Text("types.UID")),
    ],
    &["apiVersion", "kind", "name", "uid"],
);

const MANAGED_FIELDS_ENTRY: Shape = Shape::Struct(
    "ManagedFieldsEntry",
    "v1.ManagedFieldsEntry",
    &[
        ("apiVersion", TEXT),
        ("fieldsType", TEXT),
        ("fieldsV1", Shape::Raw),
        ("manager", TEXT),
        ("operation", Shape::Text("v1.ManagedFieldsOperationType")),
        ("subresource", TEXT),
        ("time", Shape::Time),
    ],
    &[],
);

/// `metav1.ObjectMeta`.
pub(super) const OBJECT_META: Shape = Shape::Struct(
    "ObjectMeta",
    "v1.ObjectMeta",
    &[
        ("annotations", Shape::Texts),
        ("creationTimestamp", Shape::Time),
        ("deletionGracePeriodSeconds", Shape::Int),
        ("deletionTimestamp", Shape::Time),
        ("finalizers", Shape::List("[]string", &TEXT)),
        ("generateName", TEXT),
        ("generation", Shape::Int),
        ("labels", Shape::Texts),
        ("managedFields", Shape::List("[]v1.ManagedFieldsEntry", &MANAGED_FIELDS_ENTRY)),
        ("name", TEXT),
        ("namespace", TEXT),
        ("ownerReferences", Shape::List("[]v1.OwnerReference", &OWNER_REFERENCE)),
        ("resourceVersion", TEXT),
        ("selfLink", TEXT),
        ("uid", Shape::Text("types.UID")),
    ],
    &[],
);

impl Shape {
    /// The shape of a struct's field.
    pub(super) fn field(&self, name: &str) -> Option<&Shape> {
        match self {
            Shape::Struct(_, _, fields, _) => {
                fields.iter().find(|(field, _)| *field == name).map(|(_, shape)| shape)
            }
            _ => None,
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Shape::Text(name) | Shape::List(name, _) | Shape::Struct(_, name, _, _) => name,
            Shape::Int => "int64",
            Shape::Flag => "bool",
            Shape::Time => "string",
            Shape::Texts => "map[string]string",
            Shape::Raw => "v1.FieldsV1",
        }
    }
}

/// Decodes a value and returns it as Go writes it back. Unknown fields are added to `unknown` by their
/// paths below `at`; the error is the first that Go reports.
pub(super) fn decode(
    value: &Value,
    shape: &Shape,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<Value, String> {
    let mut decoder = Decoder { unknown, owner: "", fields: Vec::new(), error: None };
    let written = decoder.value(value, shape, at);
    match decoder.error {
        Some(error) => Err(error),
        None => Ok(written.unwrap_or_else(|| Value::Object(Map::new()))),
    }
}

struct Decoder<'u> {
    unknown: &'u mut Vec<String>,
    owner: &'static str,
    fields: Vec<String>,
    error: Option<String>,
}

impl Decoder<'_> {
    /// The value as written back; none if it is unset.
    fn value(&mut self, value: &Value, shape: &Shape, at: &Path<'_>) -> Option<Value> {
        match (shape, value) {
            (Shape::Raw, value) => Some(value.clone()),
            (_, Value::Null) => None,
            (Shape::Text(_), Value::String(text)) => (!text.is_empty()).then(|| value.clone()),
            (Shape::Flag, Value::Bool(_)) => Some(value.clone()),
            (Shape::Int, Value::Number(number)) => {
                let int = number.as_i64();
                if int.is_none() {
                    self.mismatch(&format!("number {number}"), shape);
                }
                int.filter(|int| *int != 0).map(Value::from)
            }
            (Shape::Time, Value::String(text)) => match super::go_time::parse_rfc3339(text) {
                Ok(time) => Some(Value::String(time)),
                Err(error) => {
                    self.fail(error);
                    None
                }
            },
            (Shape::Texts, Value::Object(map)) => self.texts(map, at),
            (Shape::List(_, item_shape), Value::Array(items)) => {
                let mut out = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let decoded = self.value(item, item_shape, &at.index(index));
                    out.push(decoded.unwrap_or_else(|| empty(item_shape)));
                }
                (!out.is_empty()).then_some(Value::Array(out))
            }
            (Shape::Struct(owner, _, fields, always), Value::Object(map)) => {
                Some(self.structure(map, owner, fields, always, at))
            }
            (shape, value) => {
                self.mismatch(json_type(value), shape);
                None
            }
        }
    }

    fn texts(&mut self, map: &Map<String, Value>, at: &Path<'_>) -> Option<Value> {
        let mut out = Map::new();
        for (key, value) in map {
            let text = self.value(value, &TEXT, at).unwrap_or_else(|| empty(&TEXT));
            out.insert(key.clone(), text);
        }
        (!out.is_empty()).then_some(Value::Object(out))
    }

    fn structure(
        &mut self,
        map: &Map<String, Value>,
        owner: &'static str,
        fields: &'static [(&'static str, Shape)],
        always: &[&str],
        at: &Path<'_>,
    ) -> Value {
        let outer = std::mem::replace(&mut self.owner, owner);
        let mut out = Map::new();
        for (name, value) in map {
            let Some((_, shape)) = fields.iter().find(|(field, _)| field == name) else {
                self.unknown.push(at.field(name).to_string());
                continue;
            };
            self.fields.push(name.clone());
            if let Some(decoded) = self.value(value, shape, &at.field(name)) {
                out.insert(name.clone(), decoded);
            }
            self.fields.pop();
        }
        for name in always {
            out.entry(*name).or_insert_with(|| empty(&TEXT));
        }
        self.owner = outer;
        Value::Object(out)
    }

    fn mismatch(&mut self, actual: &str, shape: &Shape) {
        let wanted = shape.type_name();
        let place = if self.fields.is_empty() {
            "Go value".to_owned()
        } else {
            format!("Go struct field {}.{}", self.owner, self.fields.join("."))
        };
        self.fail(format!("json: cannot unmarshal {actual} into {place} of type {wanted}"));
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }
}

fn empty(shape: &Shape) -> Value {
    match shape {
        Shape::Text(_) => Value::String(String::new()),
        Shape::Struct(_, _, _, always) => {
            Value::Object(always.iter().map(|name| ((*name).to_owned(), "".into())).collect())
        }
        _ => Value::Null,
    }
}
