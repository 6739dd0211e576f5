//! The rules of a kind, read from the OpenAPI v3 document that an API server publishes for its group and
//! version.
//!
//! Only what decides how objects are compared is kept of a schema; [`Document::rules`]
//! follows a kind's references, each of them once, so that schemas which contain themselves are fine.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::lists::{ListRule, MapKey, Node, Place, Rules};
use crate::Kind;

/// The OpenAPI v3 document of one group and version. Its schemas are read when a kind needs them: a document has
/// hundreds, of which an operator asks for a few.
#[derive(Debug, Deserialize)]
pub struct Document {
    #[serde(default)]
    components: Components,
}

/// A document that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the OpenAPI document")]
pub struct DocumentError(#[source] serde_json::Error);

#[derive(Debug, Default, Deserialize)]
struct Components {
    #[serde(default)]
    schemas: BTreeMap<String, Box<RawValue>>,
}

/// Schemas that have been read, by name.
#[derive(Debug, Default)]
struct Schemas(BTreeMap<String, Schema>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Schema {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "allOf")]
    all_of: Vec<Schema>,
    properties: BTreeMap<String, Schema>,
    #[serde(rename = "additionalProperties", deserialize_with = "schema_or_bool")]
    additional: Option<Box<Schema>>,
    items: Option<Box<Schema>>,
    default: Option<Value>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    preserves_unknown: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-map-type")]
    map_type: Option<MapType>,
    #[serde(rename = "x-kubernetes-patch-strategy")]
    patch_strategy: Option<String>,
    #[serde(rename = "x-kubernetes-patch-merge-key")]
    patch_merge_key: Option<String>,
    #[serde(rename = "x-kubernetes-group-version-kind")]
    kinds: Kinds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MapType {
    Atomic,
    #[serde(other)]
    Granular,
}

#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
struct Kinds(Vec<GroupVersionKind>);

#[derive(Debug, Deserialize)]
struct GroupVersionKind {
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
}

/// What a schema that says nothing of its own stands for.
enum Alias<'a> {
    Reference(&'a str),
    Schema(&'a Schema),
}

/// How references to the document's own schemas begin.
const REFERENCE: &str = "#/components/schemas/";

/// What is added to the status of parents whether or not their authors thought of it.
const ADDED_TO_STATUS: [&str; 2] = ["conditions", "observedGeneration"];

/// What conditions of the standard shape have, and those of some older kinds don't.
pub(crate) const CONDITIONS_GENERATION: &str = "conditions[*].observedGeneration";

impl Schema {
    /// The names of the schemas that it refers to.
    fn collect_names(&self, names: &mut Vec<String>) {
        names.extend(
            self.reference
                .iter()
                .filter_map(|reference| reference.strip_prefix(REFERENCE))
                .map(str::to_owned),
        );
        let within = self.all_of.iter().chain(self.properties.values());
        let within = within.chain(self.additional.as_deref()).chain(self.items.as_deref());
        within.for_each(|schema| schema.collect_names(names));
    }

    /// Whether an object may have a field of this name. A server refuses to apply what has no place.
    fn takes(&self, name: &str) -> bool {
        self.preserves_unknown || self.additional.is_some() || self.properties.contains_key(name)
    }

    fn stands_for(&self) -> Option<Alias<'_>> {
        match (&self.reference, self.all_of.as_slice()) {
            (Some(reference), _) => Some(Alias::Reference(reference)),
            (None, [only]) if self.properties.is_empty() => Some(Alias::Schema(only)),
            _ => None,
        }
    }
}

/// `additionalProperties` is a schema or a bool; the bool says nothing about comparison.
fn schema_or_bool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Schema>>, D::Error> {
    struct Either;

    impl<'de> Visitor<'de> for Either {
        type Value = Option<Box<Schema>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a schema or a bool")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            let schema = Schema::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
            Ok(Some(Box::new(schema)))
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }

    deserializer.deserialize_any(Either)
}

impl Document {
    /// Where a server publishes the document that describes a kind.
    pub fn path(kind: &Kind) -> String {
        let root = if kind.group().is_empty() { "api" } else { "apis" };
        format!("/openapi/v3/{root}/{}", kind.api_version())
    }

    /// Reads a document.
    pub fn parse(json: &[u8]) -> Result<Self, DocumentError> {
        serde_json::from_slice(json).map_err(DocumentError)
    }

    /// The rules of a kind, if the document describes it.
    pub fn rules(&self, kind: &Kind) -> Option<Rules> {
        let name = self.find(kind)?;
        let schemas = self.read(name);
        let schema = schemas.0.get(name)?;
        let mut reading = Reading { schemas: &schemas, nodes: Vec::new(), known: BTreeMap::new() };
        let root = reading.reserve();
        // An object's own metadata follows rules of its own.
        reading.fill(root, schema, schema.map_type, |name| name != "metadata");
        // What is not known of a status is thought to have a place for everything.
        let status = schema.properties.get("status").and_then(|status| reading.behind(status));
        let lacks =
            ADDED_TO_STATUS.into_iter().filter(|name| status.is_some_and(|status| !status.takes(name)));
        let condition = status
            .and_then(|status| reading.behind(status.properties.get("conditions")?))
            .and_then(|conditions| reading.behind(conditions.items.as_deref()?));
        let bare = condition.is_some_and(|condition| !condition.takes("observedGeneration"));
        let lacks = lacks.chain(bare.then_some(CONDITIONS_GENERATION)).map(Into::into).collect();
        Some(prune(reading.nodes, Place::Node(root)).without_in_status(lacks))
    }

    /// The name of a kind's schema.
    fn find(&self, kind: &Kind) -> Option<&str> {
        #[derive(Deserialize)]
        struct Named {
            #[serde(rename = "x-kubernetes-group-version-kind", default)]
            kinds: Kinds,
        }
        let is_it = |found: &GroupVersionKind| {
            found.group == kind.group() && found.version == kind.version() && found.kind == kind.kind()
        };
        let quoted = format!("\"{}\"", kind.kind());
        let named = self.components.schemas.iter().find(|(_, text)| {
            text.get().contains(&quoted)
                && serde_json::from_str(text.get()).is_ok_and(|named: Named| named.kinds.0.iter().any(is_it))
        });
        named.map(|(name, _)| name.as_str())
    }

    /// A schema and all that it refers to.
    fn read(&self, name: &str) -> Schemas {
        let mut schemas = Schemas::default();
        let mut pending = vec![name.to_owned()];
        while let Some(name) = pending.pop() {
            if schemas.0.contains_key(&name) {
                continue;
            }
            let text = self.components.schemas.get(&name);
            let Some(schema) = text.and_then(|text| serde_json::from_str::<Schema>(text.get()).ok()) else {
                continue;
            };
            schema.collect_names(&mut pending);
            schemas.0.insert(name, schema);
        }
        schemas
    }
}

impl Schemas {
    /// The schema that a reference means, and its name.
    fn resolve(&self, reference: &str) -> Option<(&str, &Schema)> {
        let (name, schema) = self.0.get_key_value(reference.strip_prefix(REFERENCE)?)?;
        Some((name.as_str(), schema))
    }
}

struct Reading<'a> {
    schemas: &'a Schemas,
    nodes: Vec<Node>,
    /// Schemas that have a place, by name and by the map type that the reference to them insists on.
    known: BTreeMap<(&'a str, Option<MapType>), Place>,
}

impl<'a> Reading<'a> {
    /// The place of a schema. A map type beside a reference goes before the one of the schema it means.
    fn place(&mut self, schema: &'a Schema, map_type: Option<MapType>) -> Place {
        let map_type = map_type.or(schema.map_type);
        match schema.stands_for() {
            Some(Alias::Reference(reference)) => self.referred(reference, map_type),
            Some(Alias::Schema(only)) => self.place(only, map_type),
            None => {
                let index = self.reserve();
                self.fill(index, schema, map_type, |_| true);
                Place::Node(index)
            }
        }
    }

    /// The place of a named schema. It is known before it is read, because it may contain itself. One that is
    /// not there or can't be read says nothing, as without a document.
    fn referred(&mut self, reference: &str, map_type: Option<MapType>) -> Place {
        let Some((name, schema)) = self.schemas.resolve(reference) else {
            return Place::Unknown;
        };
        if let Some(place) = self.known.get(&(name, map_type)) {
            return *place;
        }
        let index = self.reserve();
        self.known.insert((name, map_type), Place::Node(index));
        if name.ends_with("api.resource.Quantity") {
            self.nodes[index as usize].quantity = true;
        } else if schema.stands_for().is_some() {
            let place = self.place(schema, map_type);
            self.known.insert((name, map_type), place);
            return place;
        } else {
            self.fill(index, schema, map_type, |_| true);
        }
        Place::Node(index)
    }

    fn reserve(&mut self) -> u32 {
        self.nodes.push(Node::default());
        // A document of four billion schemas would not have fitted into memory.
        u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX)
    }

    fn fill(
        &mut self,
        index: u32,
        schema: &'a Schema,
        map_type: Option<MapType>,
        counts: impl Fn(&str) -> bool,
    ) {
        let fields = schema
            .properties
            .iter()
            .filter(|(name, _)| counts(name))
            .map(|(name, property)| (name.as_str().into(), self.place(property, None)))
            .collect();
        let others = schema.additional.as_deref().map_or(Place::Plain, |values| self.place(values, None));
        let item = schema.items.as_deref().map_or(Place::Plain, |items| self.place(items, None));
        let atomic = map_type.or(schema.map_type) == Some(MapType::Atomic);
        let list = self.list_rule(schema);
        self.nodes[index as usize] = Node { fields, others, atomic, list, item, quantity: false };
    }

    /// As a server decides it: by the list type, or else by the older patch strategy.
    fn list_rule(&self, schema: &Schema) -> ListRule {
        let keys = |names: &[String]| -> ListRule {
            let item = schema.items.as_deref().and_then(|items| self.behind(items));
            let key = |name: &String| {
                let default = item.and_then(|item| item.properties.get(name)?.default.clone());
                MapKey::new(name, default.unwrap_or_default())
            };
            if names.is_empty() { ListRule::Atomic } else { ListRule::Map(names.iter().map(key).collect()) }
        };
        match (schema.list_type.as_deref(), schema.patch_strategy.as_deref()) {
            (Some("map"), _) => keys(&schema.list_map_keys),
            (Some("set"), _) => ListRule::Set,
            (None, Some("merge" | "merge,retainKeys")) if schema.items.is_some() => {
                schema.patch_merge_key.as_ref().map_or(ListRule::Set, |key| keys(std::slice::from_ref(key)))
            }
            _ => ListRule::Atomic,
        }
    }

    /// The schema that has the properties: this one, or the one it refers to, if that can be read.
    fn behind(&self, schema: &'a Schema) -> Option<&'a Schema> {
        match schema.stands_for() {
            Some(Alias::Reference(reference)) => self.schemas.resolve(reference).map(|(_, schema)| schema),
            Some(Alias::Schema(only)) => self.behind(only),
            None => Some(schema),
        }
    }
}

/// Leaves only the nodes that something special can be reached from.
fn prune(nodes: Vec<Node>, root: Place) -> Rules {
    let mut special: Vec<bool> =
        nodes.iter().map(|node| node.atomic || node.quantity || node.list != ListRule::Atomic).collect();
    let leads = |special: &[bool], place: Place| match place {
        Place::Node(index) => special[index as usize],
        Place::Plain => false,
        // Where lists are guessed they are not one value.
        Place::Unknown => true,
    };
    // Schemas refer to later ones more often than to earlier ones, so going backwards few rounds are needed.
    loop {
        let before = special.iter().filter(|special| **special).count();
        for (index, node) in nodes.iter().enumerate().rev() {
            special[index] = special[index]
                || leads(&special, node.others)
                || leads(&special, node.item)
                || node.fields.iter().any(|(_, place)| leads(&special, *place));
        }
        if special.iter().filter(|special| **special).count() == before {
            break;
        }
    }
    let mut next = 0;
    let renumbered: Vec<Place> = special
        .iter()
        .map(|special| {
            next += u32::from(*special);
            if *special { Place::Node(next - 1) } else { Place::Plain }
        })
        .collect();
    let moved = |place: Place| match place {
        Place::Node(index) => renumbered[index as usize],
        other => other,
    };
    let kept = nodes.into_iter().zip(&special).filter(|(_, special)| **special).map(|(node, _)| Node {
        fields: node
            .fields
            .into_iter()
            .map(|(name, place)| (name, moved(place)))
            // A field that falls to `others` by not being listed must not get the rule of the others.
            .filter(|(_, place)| *place != Place::Plain || moved(node.others) != Place::Plain)
            .collect(),
        others: moved(node.others),
        item: moved(node.item),
        ..node
    });
    Rules::new(kept.collect(), moved(root))
}
