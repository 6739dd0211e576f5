//! Where two values differ.

use serde_json::Value;

/// The paths of all fields that differ: `spec.template.spec.containers[name=feed].image`. Items of lists that have names are told
/// apart by them, others by their place. What differs is not told: it may be nobody's business.
pub fn changed_paths(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(before, after, "", &mut found);
    found
}

fn compare(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let field =
                    |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
                compare(&field(old), &field(new), &path, found);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (mark, old, new) in pairs(old, new) {
                compare(old, new, &format!("{path}[{mark}]"), found);
            }
        }
        (old, new) if old == new => {}
        _ => found.push(path.to_owned()),
    }
}

/// Items that are the same in both lists, with what they are known by.
fn pairs<'a>(old: &'a [Value], new: &'a [Value]) -> Vec<(String, &'a Value, &'a Value)> {
    fn name(item: &Value) -> Option<&str> {
        item["name"].as_str()
    }
    if old.iter().chain(new).all(|item| name(item).is_some()) {
        let added = new.iter().filter(|item| !old.iter().any(|known| name(known) == name(item)));
        return old
            .iter()
            .chain(added)
            .map(|item| {
                let find = |items: &'a [Value]| {
                    items.iter().find(|other| name(other) == name(item)).unwrap_or(&Value::Null)
                };
                (format!("name={}", name(item).unwrap_or_default()), find(old), find(new))
            })
            .collect();
    }
    (0..old.len().max(new.len()))
        .map(|place| {
            let item = |items: &'a [Value]| items.get(place).unwrap_or(&Value::Null);
            (place.to_string(), item(old), item(new))
        })
        .collect()
}
