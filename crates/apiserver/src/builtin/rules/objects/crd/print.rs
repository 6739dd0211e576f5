//! `spec.versions` as the real server prints it in a refusal: its internal form, Go field names and all,
//! without what is shared by all versions.

use super::Shared;
use crate::builtin::rules::json::{list, set};
use serde_json::Value;

/// How a field prints when it is absent.
#[derive(Clone, Copy)]
enum Absent {
    Null,
    Text,
    False,
    Zero,
}

/// What stands in a field.
#[derive(Clone, Copy)]
enum Holds {
    Plain,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrArray,
    SchemaOrBool,
    Rules,
}

use Absent::{False, Null, Text, Zero};
use Holds::{Plain, Rules, Schema, SchemaMap, SchemaOrArray, SchemaOrBool, Schemas};

type Field = (&'static str, &'static str, Absent, Holds);

const SCHEMA: &[Field] = &[
    ("ID", "id", Text, Plain),
    ("Schema", "$schema", Text, Plain),
    ("Ref", "$ref", Null, Plain),
    ("Description", "description", Text, Plain),
    ("Type", "type", Text, Plain),
    ("Nullable", "nullable", False, Plain),
    ("Format", "format", Text, Plain),
    ("Title", "title", Text, Plain),
    ("Default", "default", Null, Plain),
    ("Maximum", "maximum", Null, Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", False, Plain),
    ("Minimum", "minimum", Null, Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", False, Plain),
    ("MaxLength", "maxLength", Null, Plain),
    ("MinLength", "minLength", Null, Plain),
    ("Pattern", "pattern", Text, Plain),
    ("MaxItems", "maxItems", Null, Plain),
    ("MinItems", "minItems", Null, Plain),
    ("UniqueItems", "uniqueItems", False, Plain),
    ("MultipleOf", "multipleOf", Null, Plain),
    ("Enum", "enum", Null, Plain),
    ("MaxProperties", "maxProperties", Null, Plain),
    ("MinProperties", "minProperties", Null, Plain),
    ("Required", "required", Null, Plain),
    ("Items", "items", Null, SchemaOrArray),
    ("AllOf", "allOf", Null, Schemas),
    ("OneOf", "oneOf", Null, Schemas),
    ("AnyOf", "anyOf", Null, Schemas),
    ("Not", "not", Null, Schema),
    ("Properties", "properties", Null, SchemaMap),
    ("AdditionalProperties", "additionalProperties", Null, SchemaOrBool),
    ("PatternProperties", "patternProperties", Null, SchemaMap),
    ("Dependencies", "dependencies", Null, Plain),
    ("AdditionalItems", "additionalItems", Null, SchemaOrBool),
    ("Definitions", "definitions", Null, SchemaMap),
    ("ExternalDocs", "externalDocs", Null, Plain),
    ("Example", "example", Null, Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Null, Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False, Plain),
    ("XIntOrString", "x-kubernetes-int-or-string", False, Plain),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Null, Plain),
    ("XListType", "x-kubernetes-list-type", Null, Plain),
    ("XMapType", "x-kubernetes-map-type", Null, Plain),
    ("XValidations", "x-kubernetes-validations", Null, Rules),
];

const RULE: &[Field] = &[
    ("Rule", "rule", Text, Plain),
    ("Message", "message", Text, Plain),
    ("MessageExpression", "messageExpression", Text, Plain),
    ("Reason", "reason", Null, Plain),
    ("FieldPath", "fieldPath", Text, Plain),
    ("OptionalOldSelf", "optionalOldSelf", Null, Plain),
];

const COLUMN: &[Field] = &[
    ("Name", "name", Text, Plain),
    ("Type", "type", Text, Plain),
    ("Format", "format", Text, Plain),
    ("Description", "description", Text, Plain),
    ("Priority", "priority", Zero, Plain),
    ("JSONPath", "jsonPath", Text, Plain),
];

const SCALE: &[Field] = &[
    ("SpecReplicasPath", "specReplicasPath", Text, Plain),
    ("StatusReplicasPath", "statusReplicasPath", Text, Plain),
    ("LabelSelectorPath", "labelSelectorPath", Null, Plain),
];

const SELECTABLE: &[Field] = &[("JSONPath", "jsonPath", Text, Plain)];

const VERSION: &[Field] = &[
    ("Name", "name", Text, Plain),
    ("Served", "served", False, Plain),
    ("Storage", "storage", False, Plain),
    ("Deprecated", "deprecated", False, Plain),
    ("DeprecationWarning", "deprecationWarning", Null, Plain),
];

/// The versions of a definition.
pub(super) fn versions(crd: &Value) -> String {
    let shared = Shared::of(crd);
    let part = |hidden: bool, version: &Value, field: &str, render: &dyn Fn(&Value) -> String| {
        set(version, field).filter(|_| !hidden).map_or_else(|| "null".to_owned(), render)
    };
    let render = |version: &Value| {
        let mut out = fields(version, VERSION);
        let schema = part(shared.schema, version, "schema", &|value| {
            format!("{{\"OpenAPIV3Schema\":{}}}", optional(&value["openAPIV3Schema"], SCHEMA))
        });
        let subresources = part(shared.subresources, version, "subresources", &|value| {
            let status = if value["status"].is_null() { "null" } else { "{}" };
            format!("{{\"Status\":{status},\"Scale\":{}}}", optional(&value["scale"], SCALE))
        });
        let columns =
            part(shared.columns, version, "additionalPrinterColumns", &|value| items(value, COLUMN));
        let selectable =
            part(shared.selectable, version, "selectableFields", &|value| items(value, SELECTABLE));
        out.push(format!("\"Schema\":{schema}"));
        out.push(format!("\"Subresources\":{subresources}"));
        out.push(format!("\"AdditionalPrinterColumns\":{columns}"));
        out.push(format!("\"SelectableFields\":{selectable}"));
        format!("{{{}}}", out.join(","))
    };
    if set(&crd["spec"], "versions").is_none() {
        return "null".to_owned();
    }
    let versions: Vec<String> = list(&crd["spec"], "versions").iter().map(render).collect();
    format!("[{}]", versions.join(","))
}

fn object(value: &Value, table: &[Field]) -> String {
    format!("{{{}}}", fields(value, table).join(","))
}

fn optional(value: &Value, table: &[Field]) -> String {
    if value.is_null() { "null".to_owned() } else { object(value, table) }
}

fn items(value: &Value, table: &[Field]) -> String {
    let items: Vec<String> = value.as_array().into_iter().flatten().map(|item| object(item, table)).collect();
    format!("[{}]", items.join(","))
}

fn fields(value: &Value, table: &[Field]) -> Vec<String> {
    table
        .iter()
        .map(|(go, json, absent, holds)| match (set(value, json), absent) {
            (Some(value), _) => format!("\"{go}\":{}", content(value, *holds)),
            (None, Null) => format!("\"{go}\":null"),
            (None, Text) => format!("\"{go}\":\"\""),
            (None, False) => format!("\"{go}\":false"),
            (None, Zero) => format!("\"{go}\":0"),
        })
        .collect()
}

fn content(value: &Value, holds: Holds) -> String {
    match (holds, value) {
        (Schema, _) => object(value, SCHEMA),
        (Schemas, _) => items(value, SCHEMA),
        (Rules, _) => items(value, RULE),
        (SchemaMap, Value::Object(map)) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), object(value, SCHEMA)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        (SchemaOrArray, Value::Array(_)) => {
            format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", items(value, SCHEMA))
        }
        (SchemaOrArray, _) => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", object(value, SCHEMA)),
        (SchemaOrBool, Value::Bool(allows)) => format!("{{\"Allows\":{allows},\"Schema\":null}}"),
        (SchemaOrBool, _) => format!("{{\"Allows\":true,\"Schema\":{}}}", object(value, SCHEMA)),
        _ => value.to_string(),
    }
}
