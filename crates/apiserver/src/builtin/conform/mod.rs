//! What reading an object into its Go type and writing it again does to it.
//!
//! kube-apiserver holds built-in objects as Go structs and stores them as protobuf, which shows: fields it
//! does not know vanish, unset ones vanish or come back as zero values, quantities and times get their
//! canonical form, and a value of the wrong type is refused in the words of Go's JSON library. This module
//! does the same to a JSON tree, in place and in one walk; a tree that has this form already is not changed.
//!
//! Where a tree has several faults, the one reported is the first in the order of field names, as if the
//! request had its fields sorted.

mod scalar;
#[cfg(test)]
mod tests;
mod trail;

use crate::bounds::STRUCTS_MAX;
use crate::builtin::tables::{self, JSON_SCHEMA_PROPS};
use crate::field::go_quote;
use crate::gotext::json_type;
use crate::schema::{Additional, Field, Form, GoType, Presence, Schema, SchemaRef};
use serde_json::{Map, Value};
use std::fmt;
use trail::Trail;

/// As many unknown fields are reported as kube-apiserver reports.
const UNKNOWN_MAX: usize = 100;

/// A field that the Go type does not have. Prints as strict decoding reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownField(pub String);

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown field {}", go_quote(&self.0))
    }
}

/// Why a value cannot be read into its Go type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// It does not fit the type; Go's words.
    #[error("{0}")]
    Value(String),
    /// It consists of more than [`STRUCTS_MAX`] objects, counting those that its type adds.
    #[error("the object consists of more than {STRUCTS_MAX} objects")]
    TooMany,
}

/// Gives `value` the form it has after it was read as the built-in kind of `schema`, stored, and written.
///
/// Returns the fields that were dropped because the kind does not have them. After an error the value is
/// partly changed and of no use.
pub(crate) fn conform(value: &mut Value, schema: &Schema) -> Result<Vec<UnknownField>, Unreadable> {
    let keeps_empty = !schema.go.is_some_and(|go| go.as_protobuf);
    let mut walk = Walk {
        keeps_empty,
        unknown: Vec::new(),
        mismatch: None,
        fatal: None,
        outer: None,
        structs_left: Some(STRUCTS_MAX),
    };
    walk.element(value, schema, &Trail::ROOT);
    if walk.structs_left.is_none() {
        return Err(Unreadable::TooMany);
    }
    if let Some(message) = walk.fatal.or(walk.mismatch) {
        return Err(Unreadable::Value(message));
    }
    if schema.go.is_some_and(|go| go.name == "v1.StatefulSet") {
        name_claim_templates(value);
    }
    Ok(walk.unknown)
}

/// Claim templates are the only objects inside a stored one. Kubernetes says of each what it is.
fn name_claim_templates(set: &mut Value) {
    let templates = set.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
    for template in templates.into_iter().flatten().filter_map(Value::as_object_mut) {
        for (name, text) in [("apiVersion", "v1"), ("kind", "PersistentVolumeClaim")] {
            if template.get(name).is_none_or(|found| found != text) {
                template.insert(name.to_owned(), text.into());
            }
        }
    }
}

/// The value of a Go type that nothing was read into.
pub(crate) fn zero(schema: &Schema) -> Value {
    match schema.go.map(|go| go.form) {
        Some(Form::Struct) => {
            let mut map = Map::new();
            insert_unset(&mut map, schema, &mut zero);
            Value::Object(map)
        }
        Some(Form::String) => "".into(),
        Some(Form::Bool | Form::SchemaOrBool) => false.into(),
        Some(Form::Int32 | Form::Int64 | Form::Float | Form::IntOrString) => 0.into(),
        Some(Form::Quantity) => "0".into(),
        _ => Value::Null,
    }
}

/// Adds the fields that are written even when unset, with their values from `zero`.
fn insert_unset(map: &mut Map<String, Value>, schema: &Schema, zero: &mut dyn FnMut(&Schema) -> Value) {
    for field in schema.fields.iter().filter(|field| is_always_written(field.presence)) {
        if !map.contains_key(field.name) {
            let unset = if field.presence == Presence::Null { Value::Null } else { zero(&field.shape) };
            map.insert(field.name.to_owned(), unset);
        }
    }
}

fn find<'a>(fields: &'a [Field], name: &str) -> Option<&'a Field> {
    fields.binary_search_by(|field| field.name.cmp(name)).ok().map(|at| &fields[at])
}

const fn is_always_written(presence: Presence) -> bool {
    matches!(presence, Presence::Always | Presence::Null)
}

struct Walk {
    keeps_empty: bool,
    unknown: Vec<UnknownField>,
    /// The first type error. Go reads on after it, in case something worse turns up.
    mismatch: Option<String>,
    /// An error at which reading ends.
    fatal: Option<String>,
    /// Inside a value whose Go type reads itself: the struct outside that errors are put down to. Unknown
    /// fields in there are not reported.
    outer: Option<&'static str>,
    /// How many more structs the value may have; none if it has too many, and then reading has ended.
    structs_left: Option<usize>,
}

impl Walk {
    /// Counts structs, and ends the reading if they are too many.
    fn count(&mut self, structs: usize) {
        self.structs_left = self.structs_left.and_then(|left| left.checked_sub(structs));
        if self.structs_left.is_none() && self.fatal.is_none() {
            self.fatal = Some(Unreadable::TooMany.to_string());
        }
    }

    /// An unset value, its structs counted.
    fn zero(&mut self, schema: &Schema) -> Value {
        fn structs(value: &Value) -> usize {
            value.as_object().map_or(0, |fields| 1 + fields.values().map(structs).sum::<usize>())
        }
        let zero = zero(schema);
        self.count(structs(&zero));
        zero
    }

    /// Reads a value that is not `null`.
    fn value(&mut self, value: &mut Value, schema: &Schema, trail: &Trail<'_>) {
        let Some(go) = schema.go else { return };
        match (go.form, value) {
            (Form::Struct, Value::Object(map)) => self.structure(map, schema, go, trail),
            (Form::Map, Value::Object(map)) => {
                let Additional::Values(values) = &schema.additional else { return };
                for (key, value) in map.iter_mut() {
                    self.element(value, values, &trail.key(key));
                }
            }
            (Form::List | Form::WrappedList, Value::Array(list)) => {
                let Some(items) = &schema.items else { return };
                for (index, item) in list.iter_mut().enumerate() {
                    self.element(item, items, &trail.index(index));
                }
            }
            (Form::SchemaOrArray | Form::SchemaOrBool | Form::SchemaOrStringArray, value) => {
                self.schema_or(value, go.form, trail);
            }
            (Form::Raw, _) => {}
            (_, value) => self.scalar(value, go, trail),
        }
    }

    fn structure(&mut self, map: &mut Map<String, Value>, schema: &Schema, go: GoType, trail: &Trail<'_>) {
        self.count(1);
        let owner = go.name.rsplit('.').next().unwrap_or_default();
        let mut unset = schema.fields.iter().filter(|field| is_always_written(field.presence)).count();
        // Objects are sorted as the fields are, so each search begins where the last one ended. Only if a
        // program turns on serde_json's `preserve_order` are they not; then all fields are searched.
        let mut rest: &[Field] = &schema.fields;
        map.retain(|key, value| {
            if self.fatal.is_some() {
                return true;
            }
            let at = match rest.first() {
                Some(first) if first.name == key => Ok(0),
                _ => rest.binary_search_by(|field| field.name.cmp(key)),
            };
            let found = match at {
                Ok(at) => {
                    let found = &rest[at];
                    rest = &rest[at + 1..];
                    Some(found)
                }
                Err(_) => find(&schema.fields, key),
            };
            let Some(field) = found else {
                self.report_unknown(trail, key);
                return false;
            };
            unset -= usize::from(is_always_written(field.presence));
            self.field(value, field, &trail.field(owner, field))
        });
        if unset > 0 && self.fatal.is_none() {
            insert_unset(map, schema, &mut |shape| self.zero(shape));
        }
    }

    /// Reads a field of a struct, and says whether it stays.
    fn field(&mut self, value: &mut Value, field: &Field, trail: &Trail<'_>) -> bool {
        let shape: &Schema = &field.shape;
        if !value.is_null() {
            self.value(value, shape, trail);
        }
        match field.presence {
            // To Go a pointer to a value that is written as `null` is not unset; a reader cannot tell.
            Presence::Pointer => !value.is_null(),
            Presence::OmitZero => !is_zero(value),
            Presence::Always => {
                if value.is_null() {
                    *value = self.zero(shape);
                }
                true
            }
            Presence::Null => {
                let collection = matches!(shape.go.map(|go| go.form), Some(Form::List | Form::Map));
                if collection && !self.keeps_empty && is_zero(value) {
                    *value = Value::Null;
                }
                true
            }
        }
    }

    /// Reads an item of a list or a value of a map.
    fn element(&mut self, value: &mut Value, schema: &Schema, trail: &Trail<'_>) {
        if self.fatal.is_some() {
            return;
        }
        if !value.is_null() {
            self.value(value, schema, trail);
        } else if schema.go.is_some_and(|go| go.form == Form::Bytes) {
            *value = "".into();
        } else {
            *value = self.zero(schema);
        }
    }

    /// Reads one of the three types that are a JSON schema or something else.
    fn schema_or(&mut self, value: &mut Value, form: Form, trail: &Trail<'_>) {
        let Some(props) = tables::definition(JSON_SCHEMA_PROPS).map(SchemaRef::Builtin) else { return };
        let entered = self.outer.is_none();
        if entered {
            self.outer = trail.owner();
        }
        let before = self.mismatch.take();
        match (form, &mut *value) {
            (_, Value::Object(_)) => self.value(value, &props, trail),
            (Form::SchemaOrBool, Value::Bool(_)) => {}
            (Form::SchemaOrBool, _) => self.fatal = Some("boolean or JSON schema expected".to_owned()),
            (Form::SchemaOrArray, Value::Array(list)) if !list.is_empty() => {
                for item in list {
                    self.element(item, &props, trail);
                }
            }
            (Form::SchemaOrStringArray, Value::Array(list)) if !list.is_empty() => {
                for item in list {
                    match item {
                        Value::Null => *item = "".into(),
                        item => self.scalar(
                            item,
                            GoType { name: "string", form: Form::String, as_protobuf: false },
                            trail,
                        ),
                    }
                }
            }
            _ => *value = Value::Null,
        }
        // What went wrong inside ends the reading outside.
        self.fatal = self.fatal.take().or(self.mismatch.take());
        self.mismatch = before;
        if entered {
            self.outer = None;
        }
    }

    fn report_unknown(&mut self, trail: &Trail<'_>, key: &str) {
        if self.outer.is_none() && self.unknown.len() < UNKNOWN_MAX {
            self.unknown.push(UnknownField(trail.strict_path(key)));
        }
    }

    /// Go's words for a value that does not fit a type.
    fn describe_mismatch(&self, value: &Value, type_name: &str, trail: &Trail<'_>) -> String {
        self.describe(json_type(value), type_name, trail)
    }

    fn describe(&self, found: &str, type_name: &str, trail: &Trail<'_>) -> String {
        match self.outer.or_else(|| trail.owner()) {
            Some(owner) => {
                let path = trail.go_path();
                format!(
                    "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {type_name}"
                )
            }
            None => format!("json: cannot unmarshal {found} into Go value of type {type_name}"),
        }
    }
}

/// Whether `omitempty` leaves the value out.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}
