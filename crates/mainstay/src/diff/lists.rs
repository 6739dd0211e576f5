//! Which lists are what, which maps are one value, and which strings are quantities, for one kind.
//!
//! [`Rules`] hold only what departs from the rule "objects are compared field by field, lists are one value":
//! most of a schema leaves nothing behind. They are made from an OpenAPI document (see
//! [`Document`](super::Document)); without one, [`Rules::unknown`] guesses. An object's own `metadata` always
//! follows Kubernetes' rules.
//!
//! A field that may be a number or a string needs no mark: the server keeps which of the two it was given,
//! and a port `80` is not the port that is named `"80"`.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// How the items of a list are told apart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum ListRule {
    /// Not at all: the list is one value, in its order.
    #[default]
    Atomic,
    /// By value: every item is there once.
    Set,
    /// By the values of these fields of each item.
    Map(Box<[MapKey]>),
}

/// A field that tells items of a list apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MapKey {
    name: Box<str>,
    /// What it is for an item that doesn't name it, as the protocol of a port.
    default: Value,
}

impl MapKey {
    /// A key. `default` is its value for items that don't name it, or null.
    pub fn new(name: &str, default: Value) -> Self {
        Self { name: name.into(), default }
    }

    /// The field's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key's value in an item.
    pub(super) fn of<'a>(&'a self, item: &'a Value) -> &'a Value {
        match item.get(&*self.name) {
            None | Some(Value::Null) => &self.default,
            Some(value) => value,
        }
    }
}

/// What is special about the fields of one kind. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    #[serde(serialize_with = "write_nodes", deserialize_with = "read_nodes")]
    nodes: Arc<[Node]>,
    root: Place,
    /// What the schema has no place for among the fields that are added to the status of parents.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    not_in_status: Box<[Box<str>]>,
}

fn write_nodes<S: Serializer>(nodes: &Arc<[Node]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(nodes.iter())
}

fn read_nodes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[Node]>, D::Error> {
    Vec::deserialize(deserializer).map(Arc::from)
}

/// What is known of the values at one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Node {
    /// Sorted by name.
    pub(super) fields: Box<[(Box<str>, Place)]>,
    /// Fields with other names.
    pub(super) others: Place,
    /// Whether an object here is one value.
    pub(super) atomic: bool,
    pub(super) list: ListRule,
    pub(super) item: Place,
    pub(super) quantity: bool,
}

/// Where a schema goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Place {
    /// Nothing special from here on.
    #[default]
    Plain,
    /// No schema: lists are guessed.
    Unknown,
    /// At this node.
    Node(u32),
}

/// The object's own metadata: what of it can be desired, and how.
static METADATA: LazyLock<[Node; 3]> = LazyLock::new(|| {
    let by_uid = ListRule::Map([MapKey::new("uid", Value::Null)].into());
    let plain = ["annotations", "labels", "name", "namespace"].map(|name| (name.into(), Place::Plain));
    let mut fields =
        Vec::from([("finalizers".into(), Place::Node(1)), ("ownerReferences".into(), Place::Node(2))]);
    fields.extend(plain);
    fields.sort();
    [
        Node { fields: fields.into(), ..Node::default() },
        Node { list: ListRule::Set, ..Node::default() },
        Node { list: by_uid, ..Node::default() },
    ]
});

static BY_NAME: LazyLock<ListRule> =
    LazyLock::new(|| ListRule::Map([MapKey::new("name", Value::Null)].into()));

impl Rules {
    /// Nothing is known. Lists whose desired items are all objects with a string `name` are matched by name,
    /// all other lists are one value.
    pub fn unknown() -> Self {
        Self { nodes: Arc::default(), root: Place::Unknown, not_in_status: Box::default() }
    }

    /// Nothing is special: all lists are one value.
    pub fn plain() -> Self {
        Self { nodes: Arc::default(), root: Place::Plain, not_in_status: Box::default() }
    }

    pub(super) fn new(nodes: Vec<Node>, root: Place) -> Self {
        Self { nodes: nodes.into(), root, not_in_status: Box::default() }
    }

    pub(super) fn without_in_status(self, names: Box<[Box<str>]>) -> Self {
        Self { not_in_status: names, ..self }
    }

    /// Whether `conditions`, what conditions have, or `observedGeneration` has a place in the status. Without a schema it has.
    pub(crate) fn has_in_status(&self, name: &str) -> bool {
        !self.not_in_status.iter().any(|lacking| **lacking == *name)
    }

    /// What is known of the object as a whole.
    /// Whether the conditions of a status have several owners: the server tells them apart by a key.
    pub(crate) fn shares_conditions(&self, conditions: &[Value]) -> bool {
        let rule = self.root().field("status").field("conditions");
        matches!(rule.list(conditions), ListRule::Map(_))
    }

    pub(super) fn root(&self) -> Rule<'_> {
        Rule { nodes: &self.nodes, place: self.root, part: Part::Object }
    }

    /// How many places are special: a measure of what these rules cost.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no place is special.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

/// What is known of one place, while an object is walked.
#[derive(Clone, Copy)]
pub(super) struct Rule<'a> {
    nodes: &'a [Node],
    place: Place,
    part: Part,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Object,
    Metadata,
    Inside,
}

impl<'a> Rule<'a> {
    fn node(self) -> Option<&'a Node> {
        match self.place {
            Place::Node(index) => self.nodes.get(index as usize),
            Place::Plain | Place::Unknown => None,
        }
    }

    fn at(self, place: Place) -> Self {
        Self { nodes: self.nodes, place, part: Part::Inside }
    }

    /// What is known of a field of an object.
    pub(super) fn field(self, name: &str) -> Self {
        if self.part == Part::Object && name == "metadata" {
            return Rule { nodes: &*METADATA, place: Place::Node(0), part: Part::Metadata };
        }
        let place = match (self.place, self.node()) {
            (_, Some(node)) => match node.fields.binary_search_by(|(known, _)| (**known).cmp(name)) {
                Ok(found) => node.fields[found].1,
                Err(_) => node.others,
            },
            (place, None) => place,
        };
        self.at(place)
    }

    /// What is known of the items of a list.
    pub(super) fn item(self) -> Self {
        match self.node() {
            Some(node) => self.at(node.item),
            None => self.at(self.place),
        }
    }

    /// How the items of a list are told apart. Without a schema the items that are desired decide.
    pub(super) fn list(self, desired: &[Value]) -> &'a ListRule {
        const ATOMIC: &ListRule = &ListRule::Atomic;
        let named = |item: &Value| item.get("name").is_some_and(Value::is_string);
        match self.node() {
            Some(node) => &node.list,
            None if self.place == Place::Unknown && !desired.is_empty() && desired.iter().all(named) => {
                &BY_NAME
            }
            None => ATOMIC,
        }
    }

    /// The keys of a list here, or keys of these names where the schema has none.
    pub(super) fn keys<'n>(self, names: impl Iterator<Item = &'n str>) -> Cow<'a, [MapKey]> {
        match self.node().map(|node| &node.list) {
            Some(ListRule::Map(keys)) => Cow::Borrowed(keys),
            _ => names.map(|name| MapKey::new(name, Value::Null)).collect(),
        }
    }

    /// Whether an object here is one value.
    pub(super) fn is_atomic_map(self) -> bool {
        self.node().is_some_and(|node| node.atomic)
    }

    /// Whether strings and numbers here are quantities.
    pub(super) fn is_quantity(self) -> bool {
        self.node().is_some_and(|node| node.quantity)
    }

    /// Whether this is the object itself.
    pub(super) fn is_object(self) -> bool {
        self.part == Part::Object
    }

    /// Whether this is the object's own metadata.
    pub(super) fn is_metadata(self) -> bool {
        self.part == Part::Metadata
    }

    /// Whether a field says what an object is to be: not which one it is, nor what the server keeps about it.
    pub(super) fn can_be_desired(self, name: &str) -> bool {
        match self.part {
            Part::Object => !matches!(name, "apiVersion" | "kind"),
            Part::Metadata => {
                self.node().is_some_and(|node| node.fields.iter().any(|(known, _)| **known == *name))
            }
            Part::Inside => true,
        }
    }
}

#[cfg(test)]
impl Rules {
    /// What is known at each special place, one line each, for tests to read.
    pub(super) fn describe(&self, path: &[&str]) -> String {
        let mut rule = self.root();
        for name in path {
            rule = if *name == "[]" { rule.item() } else { rule.field(name) };
        }
        let list = match rule.list(&[]) {
            ListRule::Atomic => "atomic list".to_owned(),
            ListRule::Set => "set".to_owned(),
            ListRule::Map(keys) => {
                let keys: Vec<String> = keys
                    .iter()
                    .map(|key| match &key.default {
                        Value::Null => key.name.to_string(),
                        default => format!("{}={default}", key.name),
                    })
                    .collect();
                format!("map by {}", keys.join(","))
            }
        };
        let mut text = list;
        if rule.is_atomic_map() {
            text += ", atomic map";
        }
        if rule.is_quantity() {
            text += ", quantity";
        }
        text
    }
}
