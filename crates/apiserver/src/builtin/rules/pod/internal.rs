//! Pod specs as the real server's own types print them.
//!
//! Some refusals quote a whole pod spec, or the difference between two, and the real server quotes its
//! internal types there: other names, other order, and every unset field. `internal_types.txt` lists them,
//! a line per type: `Name=json:default`, where the default says what stands there when the field is unset.

use super::super::printed::Printed;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

static TYPES: LazyLock<HashMap<&'static str, Vec<Field>>> =
    LazyLock::new(|| include_str!("internal_types.txt").lines().filter_map(read_type).collect());

struct Field {
    /// As it is printed; `+` for metadata, whose fields stand among the others.
    name: &'static str,
    /// As the object has it; behind `^` if the object around this one has it.
    json: &'static str,
    shape: Shape,
}

enum Shape {
    /// Printed as it is, or this if unset.
    Plain(&'static str),
    /// A label selector: printed as it is, in the order of its type.
    Selector,
    Pointer(&'static str),
    Inline(&'static str),
    List(&'static str),
}

fn read_type(line: &'static str) -> Option<(&'static str, Vec<Field>)> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let fields = words.filter_map(|word| {
        let (name, rest) = word.split_once('=')?;
        let (json, shape) = rest.split_once(':').unwrap_or((rest, "null"));
        let shape = match shape.as_bytes().first()? {
            b'~' => Shape::Selector,
            b'*' => Shape::Pointer(&shape[1..]),
            b'[' => Shape::List(shape[1..].strip_suffix(']')?),
            b'A'..=b'Z' => Shape::Inline(shape),
            _ => Shape::Plain(shape),
        };
        Some(Field { name, json, shape })
    });
    Some((name, fields.collect()))
}

/// The fields of metadata in the order of their type.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// A value of an internal type on one line.
pub(crate) fn render(type_name: &str, value: &Value) -> String {
    build(type_name, value, &Value::Null).on_one_line()
}

/// What differs between two values of an internal type, line by line.
pub(super) fn diff(type_name: &str, old: &Value, new: &Value) -> String {
    let printed = |value| build(type_name, value, &Value::Null);
    Printed::diff(&printed(old), &printed(new))
}

fn build(type_name: &str, value: &Value, around: &Value) -> Printed {
    let mut out = Vec::new();
    for field in TYPES.get(type_name).map_or(&[][..], Vec::as_slice) {
        let holder = if field.json.starts_with('^') { around } else { value };
        let given = holder.get(field.json.trim_start_matches('^')).filter(|v| !v.is_null());
        if field.name == "+" {
            let set = METADATA.iter().filter_map(|name| Some((*name, given?.get(name)?)));
            out.extend(set.map(|(name, value)| (name.to_owned(), Printed::of(value))));
            continue;
        }
        out.push((field.name.to_owned(), build_field(field, given, value)));
    }
    Printed::Object(out)
}

fn build_field(field: &Field, given: Option<&Value>, around: &Value) -> Printed {
    match (&field.shape, given) {
        (Shape::Plain(unset), None) => Printed::Text((*unset).to_owned()),
        (Shape::Inline(of), given) => build(of, given.unwrap_or(&Value::Null), around),
        (_, None) => Printed::null(),
        (Shape::Plain(_), Some(value)) => Printed::of(value),
        (Shape::Pointer(of), Some(value)) => build(of, value, around),
        (Shape::List(of), Some(value)) => {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            Printed::List(items.iter().map(|item| build(of, item, &Value::Null)).collect())
        }
        (Shape::Selector, Some(selector)) => {
            let fields = ["matchLabels", "matchExpressions"];
            let set = fields.iter().filter_map(|f| Some(((*f).to_owned(), Printed::of(selector.get(f)?))));
            Printed::Object(set.collect())
        }
    }
}
