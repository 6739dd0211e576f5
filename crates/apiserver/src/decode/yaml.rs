//! YAML, converted to JSON as Kubernetes converts it.
//!
//! Plain scalars have the types of YAML 1.1: `yes` and `on` are booleans, `010` is eight. Keys are made
//! text. Only the first document of a stream is read.

use super::{Decoded, MAX_DEPTH, Unreadable};
use crate::bounds::BODY_BYTES_MAX;
use crate::field::go_quote;
use base64::Engine as _;
use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Tag};
use std::collections::HashMap;

/// How many bytes of JSON anchors may hold, and aliases may stand for, together. A few lines of YAML can ask for billions, and
/// no object of more than a body's length can be stored.
const EXPANDED_BYTES_MAX: usize = BODY_BYTES_MAX;

/// Reads a body.
pub(super) fn parse(body: &[u8]) -> Result<Decoded, Unreadable> {
    if let Some(value) = super::json::parse_plain(body) {
        return Ok(Decoded { value, ..Decoded::default() });
    }
    parse_yaml(body)
}

fn parse_yaml(body: &[u8]) -> Result<Decoded, Unreadable> {
    let text = String::from_utf8_lossy(body);
    let mut reader = Reader { anchors: HashMap::new(), expanded_bytes: 0, duplicates: Vec::new() };
    let mut events = Events { parser: Parser::new_from_str(&text) };
    let value = reader.document(&mut events).map_err(Unreadable::Syntax)?;
    let strict_errors = if reader.duplicates.is_empty() {
        Vec::new()
    } else {
        vec![format!("yaml: unmarshal errors:\n  {}", reader.duplicates.join("\n  "))]
    };
    Ok(Decoded { value, strict_errors, warnings: reader.duplicates })
}

struct Events<'t> {
    parser: Parser<'t, serde_saphyr::granit_parser::StrInput<'t>>,
}

impl<'t> Events<'t> {
    /// The next event that means something, with its line.
    fn next(&mut self) -> Result<(Event<'t>, usize), String> {
        loop {
            match self.parser.next() {
                None => return Ok((Event::StreamEnd, 0)),
                Some(Err(error)) => {
                    let line = error.marker().line();
                    return Err(format!("yaml: line {line}: {}", error.info()));
                }
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok((event, span))) => return Ok((event, span.start.line())),
            }
        }
    }
}

/// A value, and how large it is.
#[derive(Clone)]
struct Node {
    value: Value,
    /// About as many as it has as JSON.
    bytes: usize,
    /// Levels of objects and lists.
    depth: usize,
}

impl Node {
    /// A scalar that was written as `text`.
    fn scalar(value: Value, text: &str) -> Node {
        Node { value, bytes: text.len() + SYNTAX_BYTES, depth: 0 }
    }
}

/// What quotes, colons, commas and braces take up, about.
const SYNTAX_BYTES: usize = 4;

struct Reader {
    anchors: HashMap<usize, Node>,
    expanded_bytes: usize,
    duplicates: Vec<String>,
}

impl Reader {
    fn document(&mut self, events: &mut Events<'_>) -> Result<Value, String> {
        loop {
            match events.next()? {
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(Value::Null),
                (event, _) => return self.node(event, events, 0).map(|node| node.value),
            }
        }
    }

    fn node(&mut self, event: Event<'_>, events: &mut Events<'_>, depth: usize) -> Result<Node, String> {
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = resolve(&text, style, tag.as_deref())?.into_json()?;
                (Node::scalar(value, &text), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.sequence(events, level(depth)?)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.mapping(events, level(depth)?)?, anchor),
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).ok_or("yaml: unknown anchor referenced")?;
                level((depth + known.depth).saturating_sub(1))?;
                expand(&mut self.expanded_bytes, known.bytes)?;
                return Ok(known.clone());
            }
            Event::UnresolvedAlias(name) => return Err(format!("yaml: unknown anchor '{name}' referenced")),
            _ => return Ok(Node::scalar(Value::Null, "null")),
        };
        self.remember(anchor, &node)?;
        Ok(node)
    }

    /// Keeps what an anchor names for aliases to come.
    fn remember(&mut self, anchor: usize, node: &Node) -> Result<(), String> {
        if anchor != 0 {
            expand(&mut self.expanded_bytes, node.bytes)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(())
    }

    /// Reads a sequence whose items are at `depth`.
    fn sequence(&mut self, events: &mut Events<'_>, depth: usize) -> Result<Node, String> {
        let mut items = Vec::new();
        let (mut bytes, mut deepest) = (SYNTAX_BYTES, 0);
        loop {
            let (event, _) = events.next()?;
            if matches!(event, Event::SequenceEnd | Event::StreamEnd) {
                return Ok(Node { value: Value::Array(items), bytes, depth: deepest + 1 });
            }
            let item = self.node(event, events, depth)?;
            bytes += item.bytes;
            deepest = deepest.max(item.depth);
            items.push(item.value);
        }
    }

    /// Reads a mapping whose values are at `depth`.
    fn mapping(&mut self, events: &mut Events<'_>, depth: usize) -> Result<Node, String> {
        let mut map = Map::new();
        let mut merged = Vec::new();
        let (mut bytes, mut deepest) = (SYNTAX_BYTES, 0);
        loop {
            let (event, line) = events.next()?;
            let (key, key_bytes) = match event {
                Event::MappingEnd | Event::StreamEnd => break,
                Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<" => (None, 0),
                Event::Scalar(text, style, anchor, tag) => {
                    self.remember(anchor, &Node::scalar(Value::String(text.to_string()), &text))?;
                    (Some(resolve(&text, style, tag.as_deref())?), text.len())
                }
                other => match self.node(other, events, depth)? {
                    Node { value: Value::String(text), bytes, .. } => (Some(Scalar::Text(text)), bytes),
                    _ => return Err("yaml: invalid map key".to_owned()),
                },
            };
            let (event, _) = events.next()?;
            let node = self.node(event, events, depth)?;
            bytes += key_bytes + node.bytes;
            deepest = deepest.max(node.depth);
            match key {
                None => merged.push(node.value),
                Some(key) => {
                    let shown = key.shown();
                    if map.insert(key.into_key(&node.value)?, node.value).is_some() {
                        self.duplicates.push(format!("line {line}: key {shown} already set in map"));
                    }
                }
            }
        }
        for value in merged {
            merge(&mut map, value)?;
        }
        Ok(Node { value: Value::Object(map), bytes, depth: deepest + 1 })
    }
}

/// One level further down, if there may be one.
fn level(depth: usize) -> Result<usize, String> {
    if depth >= MAX_DEPTH {
        return Err(format!("yaml: exceeded max depth of {MAX_DEPTH}"));
    }
    Ok(depth + 1)
}

/// Counts bytes that are kept or given a second time.
fn expand(expanded_bytes: &mut usize, bytes: usize) -> Result<(), String> {
    *expanded_bytes = expanded_bytes.saturating_add(bytes);
    if *expanded_bytes > EXPANDED_BYTES_MAX {
        return Err("yaml: document contains excessive aliasing".to_owned());
    }
    Ok(())
}

/// `<<`: fields of another mapping, or of several, that are not given here.
fn merge(map: &mut Map<String, Value>, value: Value) -> Result<(), String> {
    match value {
        Value::Object(other) => {
            for (key, value) in other {
                map.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(items) if items.iter().all(Value::is_object) => {
            items.into_iter().try_for_each(|item| merge(map, item))
        }
        _ => Err("yaml: map merge requires map or sequence of maps as the value".to_owned()),
    }
}

/// A scalar with the type YAML 1.1 gives it.
#[derive(Debug, PartialEq)]
enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(String),
}

impl Scalar {
    fn into_json(self) -> Result<Value, String> {
        Ok(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(flag) => flag.into(),
            Scalar::Int(int) => int.into(),
            Scalar::Uint(uint) => super::json::unsigned(uint),
            Scalar::Float(float) if float.is_finite() => super::json::number(float),
            Scalar::Float(float) => {
                let shown = if float.is_nan() {
                    "NaN"
                } else if float > 0.0 {
                    "+Inf"
                } else {
                    "-Inf"
                };
                return Err(format!("json: unsupported value: {shown}"));
            }
            Scalar::Text(text) => Value::String(text),
        })
    }

    fn into_key(self, value: &Value) -> Result<String, String> {
        Ok(match self {
            Scalar::Text(text) => text,
            Scalar::Null => {
                let value = match value {
                    Value::String(text) => go_quote(text),
                    other => other.to_string(),
                };
                return Err(format!("unsupported map key of type: %!s(<nil>), key: <nil>, value: {value}"));
            }
            other => other.shown(),
        })
    }

    fn shown(&self) -> String {
        match self {
            Scalar::Null => "<nil>".to_owned(),
            Scalar::Bool(flag) => flag.to_string(),
            Scalar::Int(int) => int.to_string(),
            Scalar::Uint(uint) => uint.to_string(),
            Scalar::Float(float) => crate::gotext::go_float(*float),
            Scalar::Text(text) => go_quote(text),
        }
    }
}

fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Scalar, String> {
    let string = || Scalar::Text(text.to_owned());
    let Some(tag) = tag else {
        return Ok(if style == ScalarStyle::Plain { resolve_plain(text) } else { string() });
    };
    if tag.handle() != "tag:yaml.org,2002:" {
        return Ok(string());
    }
    let resolved = resolve_plain(text);
    match (tag.suffix(), resolved) {
        ("int", int @ (Scalar::Int(_) | Scalar::Uint(_))) => Ok(int),
        ("float", float @ Scalar::Float(_)) => Ok(float),
        #[expect(clippy::cast_precision_loss, reason = "a float is what was asked for")]
        ("float", Scalar::Int(int)) => Ok(Scalar::Float(int as f64)),
        ("bool", flag @ Scalar::Bool(_)) => Ok(flag),
        ("null", _) => Ok(Scalar::Null),
        ("binary", _) => {
            let compact: String = text.split_whitespace().collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(compact);
            let bytes = bytes.map_err(|_| "yaml: !!binary value contains invalid base64 data")?;
            Ok(Scalar::Text(String::from_utf8_lossy(&bytes).into_owned()))
        }
        (suffix @ ("int" | "float" | "bool"), _) => {
            Err(format!("yaml: cannot decode !!str `{text}` as a !!{suffix}"))
        }
        _ => Ok(string()),
    }
}

fn resolve_plain(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return Scalar::Text(text.to_owned());
    }
    let plain = text.replace('_', "");
    if let Some(int) = parse_int(&plain) {
        return i64::try_from(int)
            .map(Scalar::Int)
            .or_else(|_| u64::try_from(int).map(Scalar::Uint))
            .unwrap_or_else(|_| Scalar::Text(text.to_owned()));
    }
    match plain.parse::<f64>() {
        Ok(float) if float.is_finite() && is_float(&plain) => Scalar::Float(float),
        _ => Scalar::Text(text.to_owned()),
    }
}

/// Digits in base 2, 8 (with `0` or `0o`), 10 or 16, within 64 bits.
fn parse_int(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let size = i128::from_str_radix(digits, radix).ok()?;
    let value = if negative { -size } else { size };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value).then_some(value)
}

fn is_float(text: &str) -> bool {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    body.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
        && body.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_same_tree_read_as_json_or_as_yaml() {
        for body in [
            r#"{"a": 1, "b": -0, "c": 1.0, "d": 1.5, "e": 1e3, "f": 1E-7, "g": 18446744073709551615, "h": [true, null]}"#,
            "{\n  \"k\": \"on\",\r\n  \"l\": \"a\\nb\\t\\\"\\\\\\/\", \"m\": {}, \"n\": [], \"o\": \"é→\"\n}",
            r##"{"010": "010", "true": "yes", "x": "# no comment", "y": "a: b, [c]", "z": ""}"##,
            r#"{"big": 123456789012345678901234567890, "small": -9223372036854775808}"#,
        ] {
            let plain = super::super::json::parse_plain(body.as_bytes()).expect("plain JSON");
            let yaml = parse_yaml(body.as_bytes()).expect("YAML");
            assert_eq!(plain, yaml.value, "{body}");
        }
        for left in ["a: 1", "{\"a\":\t1}", r#"{"a":"\u0041"}"#, r#"{"a":1,"a":2}"#, "[1]", "{a: 1}"] {
            assert!(super::super::json::parse_plain(left.as_bytes()).is_none(), "{left}");
        }
    }
}
