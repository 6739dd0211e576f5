//! One object's tree, with only what is the same in every run of a script.

use std::fmt::Write as _;

use mainstay::diff::APPLIED;
use serde_json::{Map, Value};

use super::super::state::Place;
use super::ignored::Ignored;
use super::text::Lexicon;

/// What the server writes into `metadata` on its own account.
const BOOKKEEPING: [&str; 5] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink"];

/// Where an object speaks of a generated name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mention {
    /// Its index.
    pub(super) node: usize,
    /// The same in every run.
    pub(super) path: String,
}

/// The tree to compare of an object. Where it speaks of generated names is added to `mentions`.
pub(super) fn normal_tree(
    lexicon: &Lexicon<'_>,
    place: &Place,
    object: &Value,
    ignored: &[Ignored],
    mentions: &mut Vec<Mention>,
) -> Value {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let mut walk = Walk { lexicon, generation, path: String::new(), mentions };
    let mut tree = walk.tree("", object);
    if let Some(metadata) = tree.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !BOOKKEEPING.contains(&name.as_str()));
        // It is a hash of the desired object, in which the owner's uid is.
        if let Some(hash) =
            metadata.get_mut("annotations").and_then(|annotations| annotations.get_mut(APPLIED))
        {
            *hash = Value::from("<hash>");
        }
    }
    match &*place.resource {
        "services" => hide_ports(&mut tree),
        "customresourcedefinitions.apiextensions.k8s.io" => {
            tree.as_object_mut().map(|fields| fields.remove("status"));
        }
        _ => {}
    }
    Ignored::remove(ignored, &place.resource, &mut tree);
    tree
}

/// The server draws node ports like uids. What was asked for and what was drawn look the same.
fn hide_ports(service: &mut Value) {
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let hide = |port: Option<&mut Value>| {
        if let Some(port) = port.filter(|port| port.as_i64().is_some_and(|port| port != 0)) {
            *port = Value::from("<port>");
        }
    };
    hide(spec.get_mut("healthCheckNodePort"));
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    ports.for_each(|port| hide(port.get_mut("nodePort")));
}

struct Walk<'a, 's> {
    lexicon: &'a Lexicon<'s>,
    generation: Option<i64>,
    path: String,
    mentions: &'a mut Vec<Mention>,
}

impl Walk<'_, '_> {
    /// The tree of a field of this name.
    fn tree(&mut self, field: &str, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => self.list(field, items),
            Value::Object(fields) => Value::Object(self.fields(fields)),
            Value::Number(number) if field == "observedGeneration" => {
                match (number.as_i64(), self.generation) {
                    (Some(observed), Some(generation)) => Value::from(how_current(observed, generation)),
                    _ => value.clone(),
                }
            }
            _ => value.clone(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let (path, mentions) = (&self.path, &mut *self.mentions);
        self.lexicon.text(text, &mut |node| mentions.push(Mention { node, path: path.clone() })).into_owned()
    }

    fn list(&mut self, field: &str, items: &[Value]) -> Value {
        let set = order_of(field, items);
        let length = self.path.len();
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match set {
                // Which index it will have is not known yet.
                Some(_) => self.path.push_str("[]"),
                None => {
                    let _ = write!(self.path, "[{index}]");
                }
            }
            list.push(self.tree("", item));
            self.path.truncate(length);
        }
        if let Some(names) = set {
            list.sort_by_cached_key(|item| {
                let named = names.iter().map(|name| item.get(name).map(Value::to_string)).collect::<Vec<_>>();
                (named, item.to_string())
            });
        }
        Value::Array(list)
    }

    fn fields(&mut self, fields: &Map<String, Value>) -> Map<String, Value> {
        let length = self.path.len();
        let mut pairs = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            if name == "resourceVersion" && !value.is_object() && !value.is_array() {
                continue;
            }
            let key = self.text(name);
            self.path.push('.');
            self.path.push_str(&key);
            pairs.push((key, self.tree(name, value)));
            self.path.truncate(length);
        }
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        if pairs.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            tell_keys_apart(&mut pairs);
        }
        pairs.into_iter().collect()
    }
}

/// Several keys can stand for the same, for things that are gone. None of their values may be lost.
fn tell_keys_apart(pairs: &mut [(String, Value)]) {
    pairs.sort_by_cached_key(|(key, value)| (key.clone(), value.to_string()));
    let (mut last, mut count) = (String::new(), 0_usize);
    for (key, _) in pairs {
        if *key == last {
            count += 1;
            let _ = write!(key, " {count}");
        } else {
            last.clone_from(key);
            count = 1;
        }
    }
}

fn how_current(observed: i64, generation: i64) -> String {
    match generation - observed {
        0 => "<current>".to_owned(),
        behind if behind > 0 => format!("<{behind} behind>"),
        ahead => format!("<{} ahead>", -ahead),
    }
}

/// By what a list is ordered that is a set by its meaning. The order of all others counts.
fn order_of(field: &str, items: &[Value]) -> Option<&'static [&'static str]> {
    let (names, is_item): (&[&str], fn(&Value) -> bool) = match field {
        "conditions" => (&["type"], |item| item.get("type").is_some_and(Value::is_string)),
        "ownerReferences" => (&["kind", "name"], |item| item.get("kind").is_some_and(Value::is_string)),
        "finalizers" => (&[], Value::is_string),
        _ => return None,
    };
    items.iter().all(is_item).then_some(names)
}
