//! In what two normalised states differ, as lines.
//!
//! Objects with generated names are compared as a multiset: what is the same on both sides is paired whatever its
//! number, so that one object too many reads as just that.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::compare;
use super::super::state::Place;
use super::renamed;

type Objects = BTreeMap<Place, Value>;

/// Expected and found objects of one place, or of one place but for the numbers of generated names.
type Sides<'o> = (Vec<(&'o Place, Value)>, Vec<(&'o Place, Value)>);

/// See [`Normal::differences`](super::Normal::differences).
pub(super) fn report(expected: &Objects, found: &Objects) -> Vec<String> {
    if expected == found {
        return Vec::new();
    }
    let lines = report_with(expected, found, blurred);
    if !lines.is_empty() {
        return lines;
    }
    // Only who refers to whom differs.
    report_with(expected, found, |_| None)
}

fn report_with(
    expected: &Objects,
    found: &Objects,
    blur: impl Fn(&str) -> Option<String> + Copy,
) -> Vec<String> {
    let mut groups: BTreeMap<Place, Sides<'_>> = BTreeMap::new();
    let group = |place: &Place| renamed(place, blur(&place.namespace), blur(&place.name));
    for (place, tree) in expected {
        groups.entry(group(place)).or_default().0.push((place, blurred_tree(tree, blur)));
    }
    for (place, tree) in found {
        groups.entry(group(place)).or_default().1.push((place, blurred_tree(tree, blur)));
    }
    groups.into_values().flat_map(compare_group).collect()
}

fn compare_group((mut expected, mut found): Sides<'_>) -> Vec<String> {
    expected.retain(|(_, tree)| match found.iter().position(|(_, other)| other == tree) {
        Some(index) => {
            found.remove(index);
            false
        }
        None => true,
    });
    let pairs = expected.len().min(found.len());
    let mut lines = Vec::new();
    for ((place, tree), (_, other)) in expected.iter().zip(&found) {
        for difference in compare::differences(tree, other) {
            let shown = difference.render(!is_secret(place, &difference.path));
            lines.push(format!("{place}: {shown}"));
        }
    }
    lines.extend(expected[pairs..].iter().map(|(place, _)| format!("{place}: missing")));
    lines.extend(found[pairs..].iter().map(|(place, _)| format!("{place}: should not exist")));
    lines
}

/// Whether nobody may see the value of a field. Annotations can hold the whole object as it was once applied.
fn is_secret(place: &Place, path: &str) -> bool {
    let is_within = |field: &str| {
        path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    &*place.resource == "secrets" && ["data", "stringData", "metadata.annotations"].into_iter().any(is_within)
}

/// A text without the numbers of generated names; none if it has none.
fn blurred(text: &str) -> Option<String> {
    let mut parts = text.split('*');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        out.push('*');
        out.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    }
    (out != text).then_some(out)
}

fn blurred_tree(tree: &Value, blur: impl Fn(&str) -> Option<String> + Copy) -> Value {
    match tree {
        Value::String(text) => Value::String(blur(text).unwrap_or_else(|| text.clone())),
        Value::Array(items) => items.iter().map(|item| blurred_tree(item, blur)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), blurred_tree(value, blur)));
            Value::Object(fields.collect())
        }
        _ => tree.clone(),
    }
}
