//! Values for objects, maps and lists: the smallest that is valid, and others than the present one.

use serde_json::{Map, Value, json};

use super::super::compare::shorten;
use super::judge::{has_twins, validates};
use super::meaning;
use super::scalars::{self, Proposal, TEXT};
use super::schema::{Schema, Type, Unique};

/// How deep a value is made up.
const DEPTH_MAX: usize = 12;

/// The smallest valid value for a field of this name. None if none could be made up.
pub(super) fn smallest(schema: &Schema, name: &str) -> Option<Value> {
    smallest_within(schema, name, DEPTH_MAX)
}

fn smallest_within(schema: &Schema, name: &str, depth: usize) -> Option<Value> {
    let fits = |value: &Value| validates(schema, &schema.complete(value));
    let told = schema.default.iter().chain(&schema.example).find(|value| fits(value));
    if depth == 0 || told.is_some() {
        return told.cloned();
    }
    match schema.kind {
        _ if !schema.choices.is_empty() => schema.choices.iter().find(|choice| fits(choice)).cloned(),
        Type::Object | Type::Any => {
            smallest_object(schema, name, depth).or_else(|| Some(json!(TEXT)).filter(fits))
        }
        Type::Array => {
            let mut items = Vec::new();
            while items.len() < schema.item_count.min {
                items.push(fresh_item_within(schema, name, &items, depth)?);
            }
            Some(Value::Array(items)).filter(fits)
        }
        _ => scalars::proposals(schema, name, None).into_iter().filter_map(|found| found.value).find(fits),
    }
}

fn smallest_object(schema: &Schema, name: &str, depth: usize) -> Option<Value> {
    let mut fields = Map::new();
    if schema.embedded {
        fields.insert("apiVersion".to_owned(), json!("v1"));
        fields.insert("kind".to_owned(), json!("ConfigMap"));
        fields.insert("metadata".to_owned(), json!({"name": TEXT}));
    }
    for required in &schema.required {
        let value = match schema.properties.get(required).or(schema.additional.as_deref()) {
            Some(below) => smallest_within(below, required, depth - 1)?,
            None => json!(TEXT),
        };
        fields.insert(required.clone(), value);
    }
    let fits = |fields: &Map<String, Value>| {
        let object = Value::Object(fields.clone());
        validates(schema, &schema.complete(&object)).then_some(object)
    };
    if let Some(object) = fits(&fields) {
        return Some(object);
    }
    // A choice of fields (oneOf, anyOf, a number of fields) asks for more: each alone, then all one after the other.
    let mut all = fields.clone();
    for (optional, below) in &schema.properties {
        let Some(value) = smallest_within(below, optional, depth - 1) else { continue };
        let mut one = fields.clone();
        one.insert(optional.clone(), value.clone());
        all.entry(optional.clone()).or_insert(value);
        if let Some(object) = fits(&one).or_else(|| fits(&all)) {
            return Some(object);
        }
    }
    while all.len() < schema.fields.min {
        let (entry, value) = fresh_entry_within(schema, name, &all, depth)?;
        all.insert(entry, value);
    }
    fits(&all)
}

/// An item that may be added to a list. None if none could be made up.
pub(super) fn fresh_item(schema: &Schema, name: &str, items: &[Value]) -> Option<Value> {
    fresh_item_within(schema, name, items, DEPTH_MAX)
}

fn fresh_item_within(schema: &Schema, name: &str, items: &[Value], depth: usize) -> Option<Value> {
    let below = schema.items.as_deref()?;
    let model = match items.last() {
        Some(last) => last.clone(),
        None => smallest_within(below, name, depth - 1)?,
    };
    let is_fresh = |item: &Value| {
        let all: Vec<Value> = items.iter().chain([item]).cloned().collect();
        // Items that are told apart by nothing but their name should not share it, whatever the schema says.
        let by_name = below.properties.contains_key("name") && item.get("name").is_some();
        let identity = if by_name && schema.unique == Unique::Nothing {
            Unique::Keys(vec!["name".to_owned()])
        } else {
            schema.unique.clone()
        };
        !has_twins(&identity, &all) && validates(below, &below.complete(item))
    };
    let keys = match &schema.unique {
        Unique::Keys(keys) => keys.clone(),
        _ => vec!["name".to_owned()],
    };
    let mut tried = vec![model.clone()];
    for _ in 0..=items.len() {
        if let Some(fresh) = tried.iter().find(|item| is_fresh(item)) {
            return Some(fresh.clone());
        }
        tried = tried.iter().flat_map(|item| relatives(below, name, &keys, item)).take(200).collect();
    }
    tried.into_iter().find(is_fresh)
}

/// Items like this one that differ from it in what items are told apart by.
fn relatives(schema: &Schema, name: &str, keys: &[String], item: &Value) -> Vec<Value> {
    let Value::Object(fields) = item else {
        let others = scalars::proposals(schema, name, Some(item));
        return others.into_iter().filter_map(|other| other.value).collect();
    };
    let mut found = Vec::new();
    for key in keys {
        let Some(below) = schema.properties.get(key) else { continue };
        for other in
            scalars::proposals(below, key, fields.get(key)).into_iter().filter_map(|other| other.value)
        {
            let mut fields = fields.clone();
            fields.insert(key.clone(), other);
            found.push(Value::Object(fields));
        }
    }
    found
}

/// An entry that may be added to a map, or a field that nobody has described.
pub(super) fn fresh_entry(
    schema: &Schema,
    name: &str,
    present: &Map<String, Value>,
) -> Option<(String, Value)> {
    fresh_entry_within(schema, name, present, DEPTH_MAX)
}

fn fresh_entry_within(
    schema: &Schema,
    name: &str,
    present: &Map<String, Value>,
    depth: usize,
) -> Option<(String, Value)> {
    let known = meaning::entries(name).iter().map(|entry| (*entry).to_owned());
    let numbered = (4..).map(|number| format!("{TEXT}-{number}"));
    let entry = known
        .chain(numbered)
        .find(|entry| !present.contains_key(entry) && !schema.properties.contains_key(entry))?;
    let value = match &schema.additional {
        Some(below) => smallest_within(below, &entry, depth - 1)?,
        None if schema.open => json!(TEXT),
        None => return None,
    };
    Some((entry, value))
}

/// Other values for an object, a map or a list as a whole, best first. What is below them is changed on its own.
pub(super) fn proposals(schema: &Schema, name: &str, present: Option<&Value>) -> Vec<Proposal> {
    let mut found = Vec::new();
    match present {
        Some(Value::Array(items)) => {
            if let Some(item) = fresh_item(schema, name, items) {
                let why = format!("{} added", shorten(&item));
                found.push(Proposal::new(items.iter().cloned().chain([item]).collect::<Vec<_>>(), &why));
            }
            if let Some((last, others)) = items.split_last() {
                found.push(Proposal::new(others.to_vec(), &format!("{} removed", shorten(last))));
                found.push(Proposal::new(json!([]), "emptied"));
            }
        }
        Some(Value::Object(fields)) => {
            if let Some((entry, value)) = fresh_entry(schema, name, fields) {
                let mut more = fields.clone();
                let why = format!("{entry} added as {}", shorten(&value));
                more.insert(entry, value);
                found.push(Proposal::new(more, &why));
            }
            if schema.additional.is_some() && !fields.is_empty() {
                found.push(Proposal::new(json!({}), "emptied"));
            }
        }
        Some(other) if schema.kind == Type::Any => {
            found.push(Proposal::new(
                format!("{}-{TEXT}", other.as_str().unwrap_or_default()),
                "another text",
            ));
        }
        _ => {
            let filled = match schema.kind {
                Type::Array => fresh_item(schema, name, &[]).map(|item| json!([item])),
                _ => fresh_entry(schema, name, &Map::new()).map(|(entry, value)| json!({entry: value})),
            };
            for value in filled.into_iter().chain(smallest(schema, name)) {
                let why = format!("set to {}", shorten(&value));
                found.push(Proposal::new(value, &why));
            }
        }
    }
    found
}
