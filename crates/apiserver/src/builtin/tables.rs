//! The generated tables of the built-in kinds.
//!
//! `data/definitions.tsv` has one line per definition: its name, the kind it is, facts of its Go type, its
//! `OpenAPI` schema. `data/resources.json` has what discovery says of the kinds' resources. Both are made
//! by `make tables` and compiled in. The index over the definitions is made once per process, and each
//! definition is read when first looked at, so a server that starts pays for what it uses.

use crate::schema::{
    Additional, Checks, Definition, Embedded, Field, Form, GoType, ListType, Member, PatchStrategy, Presence,
    Schema, SchemaRef, Type,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const DEFINITIONS: &str = include_str!("../../data/definitions.tsv");
const RESOURCES: &str = include_str!("../../data/resources.json");

/// The definition of `JSONSchemaProps`, which three forms of value refer to beside any schema.
pub(crate) const JSON_SCHEMA_PROPS: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// The definition of `DeleteOptions`, which is registered in every group-version.
pub(crate) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// A resource that serves one of the built-in kinds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Resource {
    /// API group, empty for the core one.
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub namespaced: bool,
    pub verbs: Vec<&'static str>,
    pub short_names: Vec<&'static str>,
    pub categories: Vec<&'static str>,
    /// `storageVersionHash` of legacy discovery; empty for kinds that are not stored.
    pub storage_hash: &'static str,
    pub subresources: Vec<Subresource>,
}

/// A part of a resource with a path of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subresource {
    /// The last element of the path: `status`, `scale`.
    pub name: &'static str,
    /// Group, version and kind of what is sent there.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub verbs: Vec<&'static str>,
}

/// The resources of the built-in kinds: groups in the order of discovery, names in the order of the
/// alphabet.
pub(crate) fn resources() -> &'static [Resource] {
    // The table is generated, and a test reads it, so it is well-formed.
    static PARSED: LazyLock<Vec<Resource>> =
        LazyLock::new(|| serde_json::from_str(RESOURCES).unwrap_or_default());
    &PARSED
}

/// All definitions, in the order of their names.
#[cfg(test)]
pub(crate) fn definitions() -> &'static [Definition] {
    &INDEX.definitions
}

/// The definition of this name (`io.k8s.api.core.v1.PodSpec`).
pub(crate) fn definition(name: &str) -> Option<&'static Definition> {
    let definitions = &INDEX.definitions;
    definitions.binary_search_by(|d| d.name.as_str().cmp(name)).ok().map(|at| &definitions[at])
}

/// The definition of a built-in kind, list kinds included. `DeleteOptions` is one of every group-version.
pub(crate) fn definition_of(group: &str, version: &str, kind: &str) -> Option<&'static Definition> {
    let kinds = &INDEX.kinds;
    let found = kinds.binary_search_by(|&(g, v, k, _)| (g, v, k).cmp(&(group, version, kind)));
    match found {
        Ok(at) => Some(&INDEX.definitions[kinds[at].3]),
        Err(_) if kind == "DeleteOptions" => definition(DELETE_OPTIONS),
        Err(_) => None,
    }
}

/// The schema of a built-in kind; see [`definition_of`].
pub(crate) fn schema_of(group: &str, version: &str, kind: &str) -> Option<SchemaRef> {
    definition_of(group, version, kind).map(SchemaRef::Builtin)
}

/// The `OpenAPI` schema of a definition as JSON text, descriptions left out; references point into
/// `#/components/schemas/`.
pub(crate) fn openapi(definition: &Definition) -> &'static str {
    definition.source().rsplit('\t').next().unwrap_or_default()
}

struct Index {
    definitions: Vec<Definition>,
    /// Group, version, kind and place in `definitions`; sorted.
    kinds: Vec<(&'static str, &'static str, &'static str, usize)>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index { definitions: Vec::with_capacity(512), kinds: Vec::with_capacity(128) };
    for line in DEFINITIONS.lines() {
        let Some((name, source)) = line.split_once('\t') else { continue };
        let kind = source.split('\t').next().unwrap_or_default();
        if let Some((group_version, kind)) = kind.rsplit_once('/') {
            let (group, version) = group_version.rsplit_once('/').unwrap_or(("", group_version));
            index.kinds.push((group, version, kind, index.definitions.len()));
        }
        index.definitions.push(Definition::new(name.to_owned(), source, read));
    }
    index.kinds.sort_unstable();
    index
});

/// Reads a definition's columns behind the name. They are generated and a test reads every one, so what
/// is malformed here can only be a defect of this function, and reads as a value of any shape.
fn read(source: &'static str) -> Schema {
    let mut columns = source.splitn(3, '\t').skip(1);
    let mut facts = columns.next().unwrap_or_default().split(';');
    let openapi: Value = serde_json::from_str(columns.next().unwrap_or_default()).unwrap_or_default();
    let mut head = facts.next().unwrap_or_default().split('|');
    let mut part = || head.next().unwrap_or_default();
    let (name, form, stored) = (part(), form_named(part()), part());

    let mut schema = node(&openapi, &mut std::iter::empty());
    schema.go = Some(GoType { name, form, as_protobuf: stored == "protobuf" });
    match form {
        Form::Struct => {
            schema.kind = Some(Type::Object);
            let mut members = BTreeMap::new();
            let mut fields: Vec<Field> = Vec::with_capacity(facts.clone().count());
            for fact in facts {
                let (field, member) = read_field(fact, &openapi["properties"]);
                schema.properties.insert(field.name.to_owned(), field.shape.clone());
                members.insert(field.name.to_owned(), member);
                fields.push(field);
            }
            fields.sort_unstable_by_key(|field| field.name);
            schema.fields = fields.into();
            schema.members = Some(Box::new(members));
        }
        Form::Quantity => schema.kind = Some(Type::String),
        Form::IntOrString => schema.int_or_string = true,
        Form::Raw | Form::SchemaOrArray | Form::SchemaOrBool | Form::SchemaOrStringArray => {
            schema.preserve_unknown = true;
        }
        _ => {}
    }
    schema
}

fn form_named(name: &str) -> Form {
    match name {
        "quantity" => Form::Quantity,
        "int-or-string" => Form::IntOrString,
        "time" => Form::Time,
        "micro-time" => Form::MicroTime,
        "raw" => Form::Raw,
        "schema-or-array" => Form::SchemaOrArray,
        "schema-or-bool" => Form::SchemaOrBool,
        "schema-or-string-array" => Form::SchemaOrStringArray,
        _ => Form::Struct,
    }
}

/// `name:presence:number:embedded:types`, as the generator writes it.
fn read_field(fact: &'static str, openapi: &Value) -> (Field, Member) {
    let mut parts = fact.split(':');
    let mut part = || parts.next().unwrap_or_default();
    let (name, presence, number, embedded, types) = (part(), part(), part(), part(), part());
    let property = &openapi[name];
    let strategy = property["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
    let member = Member {
        presence: match presence {
            "o" => Presence::OmitZero,
            "a" => Presence::Always,
            "n" => Presence::Null,
            _ => Presence::Pointer,
        },
        proto: number.parse().ok(),
        embedded: embedded
            .split_once('/')
            .map(|(name, number)| Embedded { name, proto: number.parse().ok() }),
        patch: PatchStrategy {
            merge: strategy.split(',').any(|s| s == "merge"),
            retain_keys: strategy.split(',').any(|s| s == "retainKeys"),
            merge_key: text(&property["x-kubernetes-patch-merge-key"]),
        },
        default: property.get("default").cloned(),
    };
    let field = Field {
        name,
        shape: shape(property, &mut types.split(',')),
        presence: member.presence,
        proto: member.proto,
        embedded: member.embedded,
    };
    (field, member)
}

/// The schema of a property, of list items or of map values: a reference or one of its own.
fn shape(openapi: &Value, types: &mut dyn Iterator<Item = &'static str>) -> SchemaRef {
    let reference = openapi.get("$ref").or_else(|| openapi["allOf"][0].get("$ref"));
    let target = reference.and_then(Value::as_str).and_then(|r| r.rsplit('/').next());
    match target.and_then(definition) {
        // The field says of a struct that is one value elsewhere that here it is not.
        Some(found) if openapi["x-kubernetes-map-type"] == "granular" => {
            SchemaRef::new(Schema { atomic_map: false, ..read(found.source()) })
        }
        Some(found) => SchemaRef::Builtin(found),
        None => SchemaRef::new(node(openapi, types)),
    }
}

/// A schema that is written out, apart from the fields of a struct. `types` are the Go types of the value,
/// its elements, and so on.
fn node(openapi: &Value, types: &mut dyn Iterator<Item = &'static str>) -> Schema {
    let name = types.next().unwrap_or_default();
    let format = openapi["format"].as_str();
    let (kind, form) = match openapi["type"].as_str() {
        Some("object") => (Some(Type::Object), Form::Map),
        Some("array") if name.starts_with('@') => (Some(Type::Array), Form::WrappedList),
        Some("array") => (Some(Type::Array), Form::List),
        Some("string") if format == Some("byte") => (Some(Type::String), Form::Bytes),
        Some("string") => (Some(Type::String), Form::String),
        Some("integer") if format == Some("int32") => (Some(Type::Integer), Form::Int32),
        Some("integer") => (Some(Type::Integer), Form::Int64),
        Some("number") => (Some(Type::Number), Form::Float),
        Some("boolean") => (Some(Type::Boolean), Form::Bool),
        _ => (None, Form::Raw),
    };
    Schema {
        kind,
        items: openapi.get("items").map(|items| shape(items, types)),
        additional: match openapi.get("additionalProperties") {
            Some(values) => Additional::Values(shape(values, types)),
            None => Additional::None,
        },
        list: match openapi["x-kubernetes-list-type"].as_str() {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(texts(&openapi["x-kubernetes-list-map-keys"])),
            _ => ListType::Atomic,
        },
        atomic_map: openapi["x-kubernetes-map-type"] == "atomic",
        checks: checks(openapi),
        go: Some(GoType { name: name.trim_start_matches('@'), form, as_protobuf: false }),
        ..Schema::default()
    }
}

fn checks(openapi: &Value) -> Option<Box<Checks>> {
    let checks = Checks {
        required: texts(&openapi["required"]),
        format: text(&openapi["format"]),
        enumeration: openapi["enum"].as_array().cloned().unwrap_or_default(),
        ..Checks::default()
    };
    let any = !checks.required.is_empty() || checks.format.is_some() || !checks.enumeration.is_empty();
    any.then(|| Box::new(checks))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_read_and_every_reference_leads_somewhere() {
        assert!(definitions().is_sorted_by(|a, b| a.name < b.name));
        for definition in definitions() {
            let schema = SchemaRef::Builtin(definition);
            let openapi: Value = serde_json::from_str(openapi(definition)).expect("OpenAPI is JSON");
            let fields = openapi["properties"].as_object().map_or(0, serde_json::Map::len);
            assert_eq!(schema.properties.len(), fields, "{}", definition.name);
            assert!(schema.fields.iter().map(|f| f.name).eq(schema.properties.keys()), "{}", definition.name);
            for (name, property) in &schema.properties {
                check_go_type(property, &format!("{}.{name}", definition.name));
            }
        }
    }

    fn check_go_type(schema: &SchemaRef, at: &str) {
        let go = schema.go.unwrap_or_else(|| panic!("{at} has no Go type"));
        assert!(!go.name.is_empty(), "{at} has no Go type");
        let referred = matches!(schema, SchemaRef::Builtin(_));
        assert!(referred || schema.kind.is_some(), "{at} refers to nothing");
        assert!(referred || go.form != Form::Raw, "{at} has no form");
        if let Some(items) = schema.items.as_ref().filter(|_| !referred) {
            check_go_type(items, &format!("{at}[]"));
        }
        if let (Additional::Values(values), false) = (&schema.additional, referred) {
            check_go_type(values, &format!("{at}{{}}"));
        }
    }

    #[test]
    fn every_resource_has_the_schema_of_its_kind() {
        assert!(resources().len() > 40);
        for resource in resources() {
            let found = schema_of(resource.group, resource.version, resource.kind);
            assert!(found.is_some(), "{} {}", resource.group, resource.kind);
        }
        let pods = resources().iter().find(|r| r.plural == "pods").expect("pods are served");
        assert!(pods.namespaced && pods.short_names == ["po"] && pods.verbs.contains(&"watch"));
        let eviction = pods.subresources.iter().find(|s| s.name == "eviction").expect("pods/eviction");
        assert_eq!((eviction.group, eviction.kind), ("policy", "Eviction"));
    }

    #[test]
    fn facts_of_go_types_are_known() {
        let spec = schema_of("apps", "v1", "Deployment").expect("a deployment").properties["spec"].clone();
        assert_eq!(spec.go.map(|go| go.name), Some("v1.DeploymentSpec"));
        let members = spec.members.as_ref().expect("a struct");
        assert_eq!((members["replicas"].presence, members["replicas"].proto), (Presence::Pointer, Some(1)));
        assert_eq!(members["selector"].presence, Presence::Null);
        assert_eq!(members["template"].presence, Presence::Always);
        assert!(members["strategy"].patch.retain_keys);

        let volume = SchemaRef::Builtin(definition("io.k8s.api.core.v1.Volume").expect("a volume"));
        let empty_dir = &volume.members.as_ref().expect("a struct")["emptyDir"];
        assert_eq!(empty_dir.embedded, Some(Embedded { name: "VolumeSource", proto: Some(2) }));

        let pod = SchemaRef::Builtin(definition("io.k8s.api.core.v1.PodSpec").expect("a pod's spec"));
        assert_eq!(pod.properties["containers"].list, ListType::Map(vec!["name".into()]));
        let patch = &pod.members.as_ref().expect("a struct")["containers"].patch;
        assert!(patch.merge && patch.merge_key.as_deref() == Some("name"));
    }

    #[test]
    fn a_field_can_undo_that_its_type_is_one_value() {
        let schema = |name| SchemaRef::Builtin(definition(name).expect("a definition"));
        assert!(schema("io.k8s.api.core.v1.ObjectReference").atomic_map);
        let claim = &schema("io.k8s.api.core.v1.PersistentVolumeSpec").properties["claimRef"];
        assert!(!claim.atomic_map && claim.properties.contains_key("uid"));
    }

    #[test]
    fn delete_options_are_of_every_group() {
        let options = definition_of("policy", "v1", "DeleteOptions").expect("delete options");
        assert_eq!(options.name, DELETE_OPTIONS);
        assert!(definition_of("apps", "v1", "Nonsense").is_none());
    }
}
