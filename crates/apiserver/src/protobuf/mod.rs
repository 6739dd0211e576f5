//! Request bodies in Kubernetes' protobuf form.
//!
//! Typed Go clients, kubectl's among them, send built-in kinds as `application/vnd.kubernetes.protobuf`:
//! four magic bytes, then a `runtime.Unknown` that names the kind and holds the object's message. Messages
//! are decoded by walking the built-in schemas, which know each field's number. The tree that comes out is
//! what the object's JSON would have been, with unset fields of fixed size as zeros; `conform` removes those
//! as it does those of any other request.
//!
//! Input is not trusted: nesting and the number of values are bounded, and malformed bytes are an error.

mod special;
#[cfg(test)]
mod tests;
mod wire;

use crate::bounds::{BODY_DEPTH_MAX, STRUCTS_MAX, depth_within};
use crate::builtin::tables::{self, JSON_SCHEMA_PROPS};
use crate::builtin::time::Precision;
use crate::schema::{Additional, Form, Schema, SchemaRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};
use special::{float, int_or_string, quantity, raw, timestamp};
use wire::{Reader, Wire};

const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may be nested while they are read. Each is at least one level of the tree, whose own bound is that of
/// all bodies.
const DEPTH_MAX: u32 = 128;

/// A body of the size that requests may have can name millions of empty values, each far larger as a tree. Of messages it
/// may have only [`STRUCTS_MAX`], as they are the largest.
const VALUES_MAX: usize = 1 << 20;

/// Bytes that are not the message they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(String);

impl Malformed {
    fn new(message: impl Into<String>) -> Self {
        Malformed(message.into())
    }

    fn truncated() -> Self {
        Malformed::new("unexpected EOF")
    }

    fn too_deep() -> Self {
        Malformed::new("proto: message is nested too deeply")
    }
}

/// The outer message of a body: what the object is, and its own message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    /// `apps/v1`; empty if the sender left it to the URL.
    pub api_version: String,
    /// `Deployment`; empty likewise.
    pub kind: String,
    /// The object's message.
    pub raw: &'a [u8],
}

/// Opens a body.
pub(crate) fn open(body: &[u8]) -> Result<Envelope<'_>, Malformed> {
    if body.is_empty() {
        return Err(Malformed::new("empty data"));
    }
    let Some(message) = body.strip_prefix(MAGIC) else {
        let expected =
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        return Err(Malformed::new(expected));
    };
    if message.is_empty() {
        return Err(Malformed::new("empty body"));
    }
    let mut envelope = Envelope::default();
    let mut reader = Reader(message);
    while let Some((number, content)) = reader.field()? {
        match (number, content) {
            (1, Wire::Bytes(type_meta)) => {
                let mut reader = Reader(type_meta);
                while let Some((number, content)) = reader.field()? {
                    match (number, content) {
                        (1, Wire::Bytes(text)) => envelope.api_version = string(text),
                        (2, Wire::Bytes(text)) => envelope.kind = string(text),
                        (1 | 2, other) => return Err(wrong_type(other, "typeMeta")),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(raw)) => envelope.raw = raw,
            (1 | 2, other) => return Err(wrong_type(other, "raw")),
            _ => {}
        }
    }
    Ok(envelope)
}

/// Decodes an object's message by its schema. The tree has no `apiVersion` and no `kind`: they are in the
/// [`Envelope`].
pub(crate) fn decode(raw: &[u8], schema: &Schema) -> Result<Value, Malformed> {
    let mut decoder = Decoder { values_left: VALUES_MAX, messages_left: STRUCTS_MAX };
    let mut object = Map::new();
    decoder.message(raw, schema, None, &mut object, DEPTH_MAX)?;
    let object = Value::Object(object);
    // A message may be a list in JSON, with a level of its own, or hold JSON itself.
    depth_within(&object, BODY_DEPTH_MAX).ok_or_else(Malformed::too_deep)?;
    Ok(object)
}

/// Decodes a body: the object with its `apiVersion` and `kind`, which are the given ones unless it names
/// its own. None if there is no such built-in kind.
pub(crate) fn decode_body(body: &[u8], api_version: &str, kind: &str) -> Result<Option<Value>, Malformed> {
    let envelope = open(body)?;
    let api_version = if envelope.api_version.is_empty() { api_version } else { &envelope.api_version };
    let kind = if envelope.kind.is_empty() { kind } else { &envelope.kind };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let Some(schema) = tables::schema_of(group, version, kind) else { return Ok(None) };
    let mut value = decode(envelope.raw, &schema)?;
    if let Value::Object(object) = &mut value {
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
    }
    Ok(Some(value))
}

/// Decodes a body of one kind that every group and version has: its `apiVersion` is the sender's, whatever that is. The
/// message of another kind is not read, as its kind is all that is needed to refuse it.
pub(crate) fn decode_as(body: &[u8], wanted: &str, schema: Option<&Schema>) -> Result<Value, Malformed> {
    let envelope = open(body)?;
    let kind = if envelope.kind.is_empty() { wanted } else { &envelope.kind };
    let mut value = match schema.filter(|_| kind == wanted) {
        Some(schema) => decode(envelope.raw, schema)?,
        None => Value::Object(Map::new()),
    };
    if let Value::Object(object) = &mut value {
        object.insert("apiVersion".to_owned(), envelope.api_version.into());
        object.insert("kind".to_owned(), kind.into());
    }
    Ok(value)
}

/// What a number means in a message.
enum Place<'a> {
    Field(&'a str, &'a Schema),
    /// The message of an embedded struct, whose fields stand among those of its owner.
    Embedded,
}

fn place(schema: &Schema, embedded: Option<u32>, number: u32) -> Option<Place<'_>> {
    schema.fields.iter().find_map(|field| {
        let within = field.embedded.map(|embedded| embedded.proto);
        if within == embedded.map(Some) && field.proto == Some(number) {
            Some(Place::Field(field.name, &field.shape))
        } else if embedded.is_none() && within == Some(Some(number)) {
            Some(Place::Embedded)
        } else {
            None
        }
    })
}

struct Decoder {
    values_left: usize,
    messages_left: usize,
}

impl Decoder {
    /// Decodes a message's fields into `object`; those of the embedded struct with this number, if given.
    fn message(
        &mut self,
        bytes: &[u8],
        schema: &Schema,
        embedded: Option<u32>,
        object: &mut Map<String, Value>,
        depth: u32,
    ) -> Result<(), Malformed> {
        let depth = depth.checked_sub(1).ok_or_else(Malformed::too_deep)?;
        let mut reader = Reader(bytes);
        while let Some((number, content)) = reader.field()? {
            match (place(schema, embedded, number), content) {
                (Some(Place::Field(name, shape)), content) => {
                    // Taken out while it is added to: repeated fields come one by one.
                    let known = object.get_mut(name).map(Value::take);
                    let value = self.field(content, shape, name, known, depth)?;
                    object.insert(name.to_owned(), value);
                }
                (Some(Place::Embedded), Wire::Bytes(bytes)) => {
                    self.message(bytes, schema, Some(number), object, depth)?;
                }
                (Some(Place::Embedded), content) => return Err(wrong_type(content, "embedded message")),
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// Decodes one occurrence of a field, of which `known` came before.
    fn field(
        &mut self,
        content: Wire<'_>,
        schema: &Schema,
        name: &str,
        known: Option<Value>,
        depth: u32,
    ) -> Result<Value, Malformed> {
        match (form(schema), known) {
            (Form::List, known) => {
                let mut list = match known {
                    Some(Value::Array(list)) => list,
                    _ => Vec::new(),
                };
                let Some(items) = &schema.items else { return Ok(Value::Array(list)) };
                match content {
                    Wire::Bytes(packed) if is_number(form(items)) => {
                        self.packed(packed, items, name, &mut list)?;
                    }
                    content => list.push(self.value(content, items, name, depth)?),
                }
                Ok(Value::Array(list))
            }
            (Form::Map, known) => {
                let mut map = match known {
                    Some(Value::Object(map)) => map,
                    _ => Map::new(),
                };
                if let Additional::Values(values) = &schema.additional {
                    let (key, value) = self.entry(content, values, name, depth)?;
                    map.insert(key, value);
                }
                Ok(Value::Object(map))
            }
            (Form::Struct, Some(Value::Object(mut object))) => {
                self.message(bytes(content, name)?, schema, None, &mut object, depth)?;
                Ok(Value::Object(object))
            }
            _ => self.value(content, schema, name, depth),
        }
    }

    fn packed(
        &mut self,
        packed: &[u8],
        items: &Schema,
        name: &str,
        list: &mut Vec<Value>,
    ) -> Result<(), Malformed> {
        let mut reader = Reader(packed);
        while !reader.0.is_empty() {
            let content = match form(items) {
                Form::Float => {
                    let bits = reader.take(8)?.try_into().map_err(|_| Malformed::truncated())?;
                    Wire::Fixed64(u64::from_le_bytes(bits))
                }
                _ => Wire::Varint(reader.varint()?),
            };
            list.push(self.value(content, items, name, 1)?);
        }
        Ok(())
    }

    fn entry(
        &mut self,
        content: Wire<'_>,
        values: &Schema,
        name: &str,
        depth: u32,
    ) -> Result<(String, Value), Malformed> {
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader(bytes(content, name)?);
        while let Some((number, content)) = reader.field()? {
            match number {
                1 => key = string(bytes(content, name)?),
                2 => value = Some(self.value(content, values, name, depth)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None if is_number(form(values)) => self.value(Wire::Varint(0), values, name, depth)?,
            None => self.value(Wire::Bytes(&[]), values, name, depth)?,
        };
        Ok((key, value))
    }

    fn value(
        &mut self,
        content: Wire<'_>,
        schema: &Schema,
        name: &str,
        depth: u32,
    ) -> Result<Value, Malformed> {
        let exhausted = || Malformed::new("proto: message has too many values");
        self.values_left = self.values_left.checked_sub(1).ok_or_else(exhausted)?;
        Ok(match (form(schema), content) {
            (Form::Bool, Wire::Varint(value)) => (value != 0).into(),
            #[expect(clippy::cast_possible_truncation, reason = "Go cuts off what does not fit")]
            (Form::Int32, Wire::Varint(value)) => (value as i32).into(),
            (Form::Int64, Wire::Varint(value)) => value.cast_signed().into(),
            (Form::Float, Wire::Fixed64(bits)) => float(bits)?,
            (Form::String, Wire::Bytes(text)) => string(text).into(),
            (Form::Bytes, Wire::Bytes(bytes)) => BASE64.encode(bytes).into(),
            (Form::Struct, Wire::Bytes(message)) => {
                self.messages_left = self.messages_left.checked_sub(1).ok_or_else(exhausted)?;
                let mut object = Map::new();
                self.message(message, schema, None, &mut object, depth)?;
                Value::Object(object)
            }
            (Form::WrappedList, Wire::Bytes(message)) => self.wrapped(message, schema, name, depth)?,
            (Form::Quantity, Wire::Bytes(message)) => quantity(message)?,
            (Form::IntOrString, Wire::Bytes(message)) => int_or_string(message)?,
            (Form::Time, Wire::Bytes(message)) => timestamp(message, Precision::Second)?,
            (Form::MicroTime, Wire::Bytes(message)) => timestamp(message, Precision::Microsecond)?,
            (Form::Raw, Wire::Bytes(message)) => raw(message)?,
            (Form::SchemaOrArray | Form::SchemaOrBool | Form::SchemaOrStringArray, Wire::Bytes(message)) => {
                self.schema_or(message, form(schema), name, depth)?
            }
            (_, content) => return Err(wrong_type(content, name)),
        })
    }

    fn wrapped(
        &mut self,
        message: &[u8],
        schema: &Schema,
        name: &str,
        depth: u32,
    ) -> Result<Value, Malformed> {
        let mut list = Vec::new();
        let mut reader = Reader(message);
        while let Some((number, content)) = reader.field()? {
            if let (1, Some(items)) = (number, &schema.items) {
                list.push(self.value(content, items, name, depth)?);
            }
        }
        Ok(Value::Array(list))
    }

    /// The types that are a JSON schema or something else: field 1 or 2 holds the one, the other the rest.
    fn schema_or(&mut self, message: &[u8], form: Form, name: &str, depth: u32) -> Result<Value, Malformed> {
        let depth = depth.checked_sub(1).ok_or_else(Malformed::too_deep)?;
        let Some(props) = tables::definition(JSON_SCHEMA_PROPS).map(SchemaRef::Builtin) else {
            return Ok(Value::Null);
        };
        let (mut schema, mut allows, mut list) = (None, false, Vec::new());
        let mut reader = Reader(message);
        while let Some((number, content)) = reader.field()? {
            match (form, number, content) {
                (Form::SchemaOrBool, 1, Wire::Varint(value)) => allows = value != 0,
                (Form::SchemaOrBool, 2, content) | (_, 1, content) => {
                    schema = Some(self.value(content, &props, name, depth)?);
                }
                (Form::SchemaOrStringArray, 2, content) => list.push(string(bytes(content, name)?).into()),
                (_, 2, content) => list.push(self.value(content, &props, name, depth)?),
                _ => {}
            }
        }
        Ok(match (form, schema) {
            (Form::SchemaOrBool, schema) => schema.unwrap_or(Value::Bool(allows)),
            (_, _) if !list.is_empty() => Value::Array(list),
            (_, schema) => schema.unwrap_or(Value::Null),
        })
    }
}

fn form(schema: &Schema) -> Form {
    // Only built-in schemas come here; a custom one has no protobuf form and reads as nothing.
    schema.go.map_or(Form::Raw, |go| go.form)
}

const fn is_number(form: Form) -> bool {
    matches!(form, Form::Bool | Form::Int32 | Form::Int64 | Form::Float)
}

fn wrong_type(content: Wire<'_>, name: &str) -> Malformed {
    Malformed::new(format!("proto: wrong wireType = {} for field {name}", content.kind()))
}

fn bytes<'a>(content: Wire<'a>, name: &str) -> Result<&'a [u8], Malformed> {
    match content {
        Wire::Bytes(bytes) => Ok(bytes),
        other => Err(wrong_type(other, name)),
    }
}

/// Go does not check what it reads, but replaces what is not UTF-8 when it writes JSON.
fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
