//! Places in a JSON value: JSON Pointer, and beyond it `*` for every element and `[key=value]` for the elements of a list
//! that have this value, as in `/items/[metadata.name=a]/spec`.

use serde_json::Value;

/// The segments of a pointer; a slash within brackets does not separate.
fn segments(pointer: &str) -> Vec<String> {
    let mut segments = Vec::new();
    let mut depth = 0_usize;
    for character in pointer.chars() {
        match character {
            '/' if depth == 0 => {
                segments.push(String::new());
                continue;
            }
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match segments.last_mut() {
            Some(segment) => segment.push(character),
            None => panic!("a pointer starts with a slash: {pointer:?}"),
        }
    }
    segments.iter().map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect()
}

/// Whether an element has the value that `[key=value]` asks for.
fn has_value(element: &Value, condition: &str) -> bool {
    let Some((key, wanted)) = condition.split_once('=') else { return false };
    let found = key.split('.').try_fold(element, |value, key| value.get(key));
    match found {
        Some(Value::String(text)) => text == wanted,
        Some(other) => serde_json::from_str::<Value>(wanted).is_ok_and(|wanted| wanted == *other),
        None => false,
    }
}

fn children<'v>(value: &'v mut Value, segment: &str) -> Vec<&'v mut Value> {
    let condition = segment.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match (value, segment) {
        (Value::Object(map), "*") => map.values_mut().collect(),
        (Value::Array(list), "*") => list.iter_mut().collect(),
        (value, _) => named_children(value, segment, condition),
    }
}

fn named_children<'v>(value: &'v mut Value, segment: &str, condition: Option<&str>) -> Vec<&'v mut Value> {
    match (value, condition) {
        (Value::Object(map), _) => map.get_mut(segment).into_iter().collect(),
        (Value::Array(list), Some(condition)) => {
            list.iter_mut().filter(|element| has_value(element, condition)).collect()
        }
        (Value::Array(list), None) => {
            segment.parse().ok().and_then(|at: usize| list.get_mut(at)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Every value at the pointer.
pub(crate) fn select<'v>(value: &'v mut Value, pointer: &str) -> Vec<&'v mut Value> {
    let mut found = vec![value];
    for segment in segments(pointer) {
        found = found.into_iter().flat_map(|value| children(value, &segment)).collect();
    }
    found
}

/// Whether a plain pointer is at or below a place; `*` in the place stands for any one segment.
pub(crate) fn covers(place: &str, pointer: &str) -> bool {
    let (place, pointer) = (segments(place), segments(pointer));
    place.len() <= pointer.len() && place.iter().zip(&pointer).all(|(a, b)| a == "*" || a == b)
}

#[test]
fn elements_are_found_by_a_value_they_hold() {
    let mut list = serde_json::json!({"r": [{"name": "a/b", "v": 1}, {"name": "c", "v": 2}]});
    assert_eq!(select(&mut list, "/r/[name=a/b]/v"), [&serde_json::json!(1)]);
    assert_eq!(select(&mut list, "/r/*/v").len(), 2);
    assert_eq!(select(&mut list, "/r/1/name"), [&serde_json::json!("c")]);
}

#[test]
fn a_place_covers_what_is_below_it() {
    assert!(covers("/body/*/x", "/body/3/x/y"));
    assert!(!covers("/body/x", "/body"));
}
