//! The steps of which the path to a field is made.

use crate::field::go_quote;
use crate::gotext;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt;

/// One step from a value to a value inside it. Ordered as the API writes a set of steps.
#[derive(Clone, Debug)]
pub(crate) enum Element {
    /// A field of an object or an entry of a map: `f:name`.
    Field(String),
    /// The item of a keyed list with these key fields, which are sorted by name: `k:{"name":"a"}`.
    Key(Vec<(String, Value)>),
    /// The item of a set: `v:"a"`.
    Value(Value),
    /// The item of a list at this place: `i:0`.
    Index(i64),
}

/// Why a text is no step.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ElementError {
    #[error("key must be 2 characters long:")]
    Short,
    #[error("missing colon: {0}")]
    Colon(String),
    #[error("{0}")]
    Content(String),
}

impl Element {
    /// A step to the field `name`.
    pub(crate) fn field(name: &str) -> Self {
        Element::Field(name.to_owned())
    }

    /// Reads a step as it stands in `fieldsV1`. None for kinds of steps that a later version may know.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, ElementError> {
        let &[kind, colon, ..] = text.as_bytes() else { return Err(ElementError::Short) };
        if colon != b':' {
            return Err(ElementError::Colon(text.to_owned()));
        }
        // A step of a kind that is not known may begin with any byte, so `get` rather than a slice.
        let content = text.get(2..).unwrap_or_default();
        let wrong = |e: &dyn fmt::Display| ElementError::Content(e.to_string());
        Ok(Some(match kind {
            b'f' => Element::field(content),
            b'v' => Element::Value(serde_json::from_str(content).map_err(|e| wrong(&e))?),
            b'k' => {
                let keys: serde_json::Map<String, Value> =
                    serde_json::from_str(content).map_err(|e| wrong(&e))?;
                Element::Key(keys.into_iter().collect())
            }
            b'i' => Element::Index(content.parse().map_err(|e| wrong(&e))?),
            _ => return Ok(None),
        }))
    }

    /// The step as it stands in `fieldsV1`.
    pub(super) fn encode(&self) -> String {
        match self {
            Element::Field(name) => ["f:", name].concat(),
            Element::Value(value) => ["v:", &gotext::go_json(value)].concat(),
            Element::Index(index) => format!("i:{index}"),
            Element::Key(keys) => {
                let mut out = String::from("k:");
                for (i, (name, value)) in keys.iter().enumerate() {
                    out.push(if i == 0 { '{' } else { ',' });
                    gotext::write_json_text(name, &mut out);
                    out.push(':');
                    gotext::write_json(value, &mut out);
                }
                out.push_str(if keys.is_empty() { "{}" } else { "}" });
                out
            }
        }
    }

    /// The step as people read it, numbers in the form given.
    pub(super) fn render(&self, number: fn(&Number) -> String) -> String {
        match self {
            Element::Field(name) => format!(".{name}"),
            Element::Value(value) => format!("[={}]", readable(value, number)),
            Element::Index(index) => format!("[{index}]"),
            Element::Key(keys) => {
                let keys: Vec<String> =
                    keys.iter().map(|(name, value)| format!("{name}={}", readable(value, number))).collect();
                format!("[{}]", keys.join(","))
            }
        }
    }

    /// Orders this step against the field `name`, without making a step of it.
    pub(super) fn cmp_field(&self, name: &str) -> Ordering {
        match self {
            Element::Field(own) => own.as_str().cmp(name),
            _ => Ordering::Greater,
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Element::Field(_) => 0,
            Element::Key(_) => 1,
            Element::Value(_) => 2,
            Element::Index(_) => 3,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Element::Field(a), Element::Field(b)) => a.cmp(b),
            (Element::Value(a), Element::Value(b)) => compare_values(a, b),
            (Element::Index(a), Element::Index(b)) => a.cmp(b),
            (Element::Key(a), Element::Key(b)) => compare_fields(a.iter().map(pair), b.iter().map(pair)),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element {}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(gotext::go_number))
    }
}

fn readable(value: &Value, number: fn(&Number) -> String) -> String {
    match value {
        Value::String(text) => go_quote(text),
        Value::Number(value) => number(value),
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| readable(item, number)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(k, v)| format!("{k}={}", readable(v, number))).collect();
            entries.concat()
        }
    }
}

fn pair((name, value): &(String, Value)) -> (&String, &Value) {
    (name, value)
}

/// A total order of values: numbers by size whatever their form, then texts, truths, lists, objects, null.
fn compare_values(a: &Value, b: &Value) -> Ordering {
    const fn rank(value: &Value) -> u8 {
        match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a.iter().zip(b).map(|(a, b)| compare_values(a, b)).find(|o| o.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_fields(a.iter(), b.iter()),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_fields<'a>(
    mut a: impl Iterator<Item = (&'a String, &'a Value)>,
    mut b: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Ordering {
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some((name_a, a)), Some((name_b, b))) => name_a.cmp(name_b).then_with(|| compare_values(a, b)),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Whether two values are the same, `1` and `1.0` being so.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64())
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ka, a), (kb, b))| ka == kb && equal(a, b))
        }
        _ => a == b,
    }
}
