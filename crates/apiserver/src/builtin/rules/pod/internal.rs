//! Pod specs as the real server's own types print them.
//!
//! Some refusals quote a whole pod spec, or the difference between two, and the real server quotes its
//! internal types there: other names, other order, and every unset field. `internal_types.txt` lists them,
//! a line per type: `Name=json:default`, where the default says what stands there when the field is unset.

use super::super::unified_diff::unified_diff;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;
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

/// A printed value: text, or something with lines of its own.
enum Node {
    Text(String),
    Object(Vec<(String, Node)>),
    List(Vec<Node>),
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
    let mut out = String::new();
    write_compact(&build(type_name, value, &Value::Null), &mut out);
    out
}

/// What differs between two values of an internal type, line by line.
pub(super) fn diff(type_name: &str, old: &Value, new: &Value) -> String {
    let render = |value| {
        let mut out = String::new();
        write_indented(&build(type_name, value, &Value::Null), 0, &mut out);
        out
    };
    unified_diff(&render(old), &render(new))
}

fn build(type_name: &str, value: &Value, around: &Value) -> Node {
    let mut out = Vec::new();
    for field in TYPES.get(type_name).map_or(&[][..], Vec::as_slice) {
        let holder = if field.json.starts_with('^') { around } else { value };
        let given = holder.get(field.json.trim_start_matches('^')).filter(|v| !v.is_null());
        if field.name == "+" {
            let set = METADATA.iter().filter_map(|name| Some((*name, given?.get(name)?)));
            out.extend(set.map(|(name, value)| (name.to_owned(), plain(value))));
            continue;
        }
        out.push((field.name.to_owned(), build_field(field, given, value)));
    }
    Node::Object(out)
}

fn build_field(field: &Field, given: Option<&Value>, around: &Value) -> Node {
    match (&field.shape, given) {
        (Shape::Plain(unset), None) => Node::Text((*unset).to_owned()),
        (Shape::Inline(of), given) => build(of, given.unwrap_or(&Value::Null), around),
        (_, None) => Node::Text("null".to_owned()),
        (Shape::Plain(_), Some(value)) => plain(value),
        (Shape::Pointer(of), Some(value)) => build(of, value, around),
        (Shape::List(of), Some(value)) => {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            Node::List(items.iter().map(|item| build(of, item, &Value::Null)).collect())
        }
        (Shape::Selector, Some(selector)) => {
            let fields = ["matchLabels", "matchExpressions"];
            let set = fields.iter().filter_map(|f| Some(((*f).to_owned(), plain(selector.get(f)?))));
            Node::Object(set.collect())
        }
    }
}

/// Maps print in the order of their keys, which is the order they have here.
fn plain(value: &Value) -> Node {
    match value {
        Value::Object(map) => Node::Object(map.iter().map(|(k, v)| (k.clone(), plain(v))).collect()),
        Value::Array(items) => Node::List(items.iter().map(plain).collect()),
        Value::String(text) => Node::Text(quote(text)),
        other => Node::Text(other.to_string()),
    }
}

/// Quotes like Go's JSON, which keeps text safe to stand in a web page.
fn quote(text: &str) -> String {
    Value::from(text).to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn write_compact(node: &Node, out: &mut String) {
    match node {
        Node::Text(text) => out.push_str(text),
        Node::Object(fields) => {
            out.push('{');
            for (index, (name, value)) in fields.iter().enumerate() {
                // Writing to a String cannot fail.
                let _ = write!(out, "{}{}:", if index == 0 { "" } else { "," }, quote(name));
                write_compact(value, out);
            }
            out.push('}');
        }
        Node::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_compact(item, out);
            }
            out.push(']');
        }
    }
}

fn write_indented(node: &Node, depth: usize, out: &mut String) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth));
    };
    match node {
        Node::Text(text) => out.push_str(text),
        Node::Object(fields) if fields.is_empty() => out.push_str("{}"),
        Node::List(items) if items.is_empty() => out.push_str("[]"),
        Node::Object(fields) => {
            out.push('{');
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                let _ = write!(out, "{}: ", quote(name));
                write_indented(value, depth + 1, out);
            }
            line(out, depth);
            out.push('}');
        }
        Node::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write_indented(item, depth + 1, out);
            }
            line(out, depth);
            out.push(']');
        }
    }
}
