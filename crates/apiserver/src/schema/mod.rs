//! What a kind's objects look like.
//!
//! One [`Schema`] type serves built-in kinds (read from the generated tables) and custom ones (read
//! from a `CustomResourceDefinition`). Pruning, defaulting, validation, ownership of fields, strategic
//! merge, `OpenAPI` publication and protobuf decoding all walk it.

mod cel;
mod coerce;
mod correlate;
mod defaults;
mod email;
mod embedded;
mod findings;
mod formats;
mod go_time;
mod lists;
mod meta_shape;
mod numbers;
mod openapi;
mod patterns;
mod prune;
mod read;
mod structural;
mod validate;
mod values;

#[cfg(test)]
mod tests;

// The facade: what the rest of the server uses of custom kinds' schemas.
pub(crate) use cel::EXPRESSION_COST_MAX;
pub(crate) use coerce::{Malformed, fit};
pub(crate) use defaults::{
    TooManyDefaults, apply_defaults, apply_defaults_to_applied, apply_defaults_within,
};
pub(crate) use openapi::{PublishedKind, model_name, publish};
pub(crate) use patterns::Compiled;
pub(crate) use prune::prune;
pub(crate) use read::read;
pub(crate) use structural::check_crd_schema;

pub(crate) use validate::{Verdict, validate, validate_status};

use crate::builtin::tables;
use mainstay_cel::go_regex as regexes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type and the bounds that rules on a schema see, for the suite that compares rules with Kubernetes; none if
/// they see nothing of it.
#[doc(hidden)]
pub fn declare_schema(schema: &Value) -> Option<(mainstay_cel::Type, mainstay_cel::estimate::Bounds)> {
    cel::declare(&read(schema), false)
}

/// A custom kind's schema with its rules compiled. Made once per version of a definition, used by every
/// write; [`Deref`]s to the plain schema.
#[derive(Debug)]
pub(crate) struct CompiledSchema {
    schema: Schema,
    rules: Option<cel::Rules>,
    /// The schema by which ownership of fields is tracked.
    owned: SchemaRef,
}

impl CompiledSchema {
    /// Compiles the rules of a schema. Those that do not compile were refused with the definition; should
    /// one be met all the same, it fails every object.
    pub(crate) fn new(schema: Schema, owned: Schema) -> Self {
        let rules = cel::Rules::compile(&schema, true);
        CompiledSchema { schema, rules, owned: SchemaRef::new(owned) }
    }

    /// Reads and compiles a version's `openAPIV3Schema`.
    pub(crate) fn read(json: &Value) -> Self {
        let mut owned = read(json);
        // Metadata is checked apart from the schema, but its fields are owned one by one.
        if let Some(metadata) = tables::definition(OBJECT_META) {
            owned.properties.insert("metadata".into(), SchemaRef::Builtin(metadata));
        }
        Self::new(read(json), owned)
    }

    /// The schema by which ownership of fields is tracked, to hold on to.
    pub(crate) fn owned(&self) -> &SchemaRef {
        &self.owned
    }

    /// Whether objects are checked by rules, whose evaluation can take long.
    pub(crate) const fn has_rules(&self) -> bool {
        self.rules.is_some()
    }

    fn rules(&self) -> Option<&cel::Rules> {
        self.rules.as_ref()
    }
}

impl Deref for CompiledSchema {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        &self.schema
    }
}

/// The shape of a value.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "keywords of the schema language, independent of each other"
)]
pub(crate) struct Schema {
    /// The JSON type; none where any type, or int-or-string, may stand.
    pub kind: Option<Type>,
    /// Whether `null` is a value of its own here rather than an absent one.
    pub nullable: bool,
    /// The fields of an object.
    pub properties: BTreeMap<String, SchemaRef>,
    /// What an object may hold beside `properties`.
    pub additional: Additional,
    /// The items of a list.
    pub items: Option<SchemaRef>,
    /// The value of an absent field.
    pub default: Option<Value>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`, or the built-in `IntOrString`.
    pub int_or_string: bool,
    /// Whether a list is one value, a set, or keyed.
    pub list: ListType,
    /// Whether an object is one value (`x-kubernetes-map-type: atomic`).
    pub atomic_map: bool,
    /// Value checks; boxed because most nodes have none.
    pub checks: Option<Box<Checks>>,
    /// What the built-in Go type says of each field beyond its shape, by JSON name.
    #[expect(clippy::box_collection, reason = "most nodes have none, and there are thousands of nodes")]
    pub members: Option<Box<BTreeMap<String, Member>>>,
    /// The built-in Go type; none in custom kinds.
    pub go: Option<GoType>,
    /// The fields of a built-in struct once more, in the order of their names: for walks over every object
    /// of a request, which look nowhere else.
    pub fields: Box<[Field]>,
}

/// A field of a built-in struct: what `properties` and `members` have of it.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    pub shape: SchemaRef,
    pub presence: Presence,
    pub proto: Option<u32>,
    pub embedded: Option<Embedded>,
}

/// The Go type that kube-apiserver reads a built-in value into and writes it from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoType {
    /// As Go prints it: `int32`, `v1.PodSpec`, `[]v1.Container`.
    pub name: &'static str,
    /// How values are read and written.
    pub form: Form,
    /// Whether it is a kind that is stored as protobuf, which does not tell an empty list from none.
    pub as_protobuf: bool,
}

/// How a Go type reads and writes its values, in JSON and in protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Struct,
    Map,
    List,
    /// A list that is a message of its own in protobuf.
    WrappedList,
    String,
    Bool,
    Int32,
    Int64,
    Float,
    /// Base64 in JSON.
    Bytes,
    Quantity,
    IntOrString,
    /// RFC 3339 to the second.
    Time,
    /// RFC 3339 to the microsecond.
    MicroTime,
    /// Any JSON value, kept as it is.
    Raw,
    SchemaOrArray,
    SchemaOrBool,
    SchemaOrStringArray,
}

/// A JSON type of the schema language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    /// The type that the schema language calls so.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Type::Object,
            "array" => Type::Array,
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            _ => return None,
        })
    }

    /// As the schema language spells it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
        }
    }
}

/// What an object may hold beside its named properties.
#[derive(Debug, Default)]
pub(crate) enum Additional {
    /// Nothing: unknown fields are pruned.
    #[default]
    None,
    /// `additionalProperties: true`.
    Any,
    /// A map with values of one shape.
    Values(SchemaRef),
}

/// How a list's items are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// The list is one value.
    #[default]
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects told apart by these fields.
    Map(Vec<String>),
}

/// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchStrategy {
    /// Lists are merged rather than replaced.
    pub merge: bool,
    /// Fields absent from the patch are cleared unless listed in `$retainKeys`.
    pub retain_keys: bool,
    /// The field that tells list items apart.
    pub merge_key: Option<String>,
}

/// Value checks of `OpenAPI` and `x-kubernetes-validations`.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub required: Vec<String>,
    pub format: Option<String>,
    pub pattern: Option<String>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub enumeration: Vec<Value>,
    pub all_of: Vec<SchemaRef>,
    pub any_of: Vec<SchemaRef>,
    pub one_of: Vec<SchemaRef>,
    pub not: Option<SchemaRef>,
    pub rules: Vec<Rule>,
    /// What is worked out of these checks when first needed.
    pub compiled: Compiled,
}

/// One `x-kubernetes-validations` entry.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the names are those of Kubernetes")]
pub(crate) struct Rule {
    pub rule: String,
    pub message: Option<String>,
    pub message_expression: Option<String>,
    pub reason: Option<String>,
    pub field_path: Option<String>,
    pub optional_old_self: bool,
}

/// A field of a built-in type: how it is written when unset, sent as protobuf, and patched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    /// What stands in the object when the field is unset or zero.
    pub presence: Presence,
    /// Its protobuf number; none for types that have no protobuf form.
    pub proto: Option<u32>,
    /// The embedded struct that the field stands in, if in JSON it stands among its owner's fields.
    pub embedded: Option<Embedded>,
    /// How a strategic merge patch treats it.
    pub patch: PatchStrategy,
    /// The value that an absent field stands for (keys of keyed lists need it).
    pub default: Option<Value>,
}

/// A Go struct whose fields stand among those of its owner in JSON, but in a message of its own in protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Embedded {
    /// The Go field's name, which paths in type errors mention.
    pub name: &'static str,
    /// Its protobuf number; none for `TypeMeta`, which travels apart from the message.
    pub proto: Option<u32>,
}

/// How a Go field's JSON tag and type treat an unset value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    /// A pointer: absent when unset, kept when set to a zero value.
    #[default]
    Pointer,
    /// Dropped when zero or empty (`omitempty` on a scalar, list or map; `omitzero`).
    OmitZero,
    /// Written always; the zero value when unset (`{}` with what is always in it for structs).
    Always,
    /// Written always; `null` when unset (lists, maps and pointers without `omitempty`).
    Null,
}

/// A schema, or the name of one in the built-in tables that is read when first looked at.
///
/// Built-in definitions refer to each other, some (`JSONSchemaProps`) to themselves; they are read once
/// per process and shared by every server in it.
#[derive(Clone, Debug)]
pub(crate) enum SchemaRef {
    /// Of a custom kind.
    Owned(Arc<Schema>),
    /// Of the built-in tables.
    Builtin(&'static Definition),
}

impl SchemaRef {
    /// Wraps a schema made at run time.
    pub(crate) fn new(schema: Schema) -> Self {
        SchemaRef::Owned(Arc::new(schema))
    }
}

impl Deref for SchemaRef {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match self {
            SchemaRef::Owned(schema) => schema,
            SchemaRef::Builtin(definition) => definition.schema(),
        }
    }
}

/// A named schema of the built-in tables.
pub(crate) struct Definition {
    /// Its name in `OpenAPI`, e.g. `io.k8s.api.core.v1.PodSpec`.
    pub name: String,
    source: &'static str,
    read: fn(&'static str) -> Schema,
    cell: OnceLock<Schema>,
}

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The schema may refer to itself, so only its name is printed.
        f.write_str(&self.name)
    }
}

impl Definition {
    /// A definition whose text is read by `read` when first needed.
    pub(crate) const fn new(name: String, source: &'static str, read: fn(&'static str) -> Schema) -> Self {
        Definition { name, source, read, cell: OnceLock::new() }
    }

    /// The text it was generated as.
    pub(crate) const fn source(&self) -> &'static str {
        self.source
    }

    fn schema(&self) -> &Schema {
        self.cell.get_or_init(|| (self.read)(self.source))
    }
}
