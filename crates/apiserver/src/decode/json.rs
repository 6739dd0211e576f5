//! JSON, read as Go reads it.

use super::scan::{Scan, scan};
use super::{Decoded, MAX_DEPTH, Unreadable};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

/// Reads a body. The usual body is read in one pass; only a body with something wrong is looked at again
/// for what to say about it.
pub(super) fn parse(body: &[u8]) -> Result<Decoded, Unreadable> {
    // Checking is cheaper than repairing, and there is hardly ever something to repair.
    let text = std::str::from_utf8(body).map_or_else(|_| String::from_utf8_lossy(body), Cow::Borrowed);
    if let Ok((value, false)) = read(&text) {
        return Ok(Decoded { value, ..Decoded::default() });
    }
    let found = scan(body).map_err(|error| {
        Unreadable::Syntax(format!("couldn't get version/kind; json parse error: {error}"))
    })?;
    if let Some(number) = &found.too_big {
        let text = format!("json: cannot unmarshal number {number} into Go value of type float64");
        return Err(Unreadable::Value(text));
    }
    let repaired = without_lone_surrogates(&text, &found);
    let (value, _) = read(&repaired).map_err(|error| {
        Unreadable::Syntax(format!("couldn't get version/kind; json parse error: {error}"))
    })?;
    let strict_errors: Vec<String> =
        found.duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
    Ok(Decoded { value, warnings: strict_errors.clone(), strict_errors })
}

/// The tree of a YAML body that is JSON, as most are, and means the same read as either. Left to the YAML
/// reader is what the two may see differently: escapes beyond the simple ones, tabs and other control
/// characters, repeated fields.
pub(super) fn parse_plain(body: &[u8]) -> Option<Value> {
    let odd = |byte: &u8| *byte < b' ' && !matches!(byte, b'\n' | b'\r') || *byte == 0x7f;
    if body.first() != Some(&b'{') || body.iter().any(odd) || memchr::memmem::find(body, b"\\u").is_some() {
        return None;
    }
    read(std::str::from_utf8(body).ok()?).ok().filter(|(_, repeated)| !repeated).map(|(value, _)| value)
}

/// The tree, and whether a field stood twice.
fn read(text: &str) -> Result<(Value, bool), serde_json::Error> {
    let repeated = Cell::new(false);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Tree { repeated: &repeated, depth_left: MAX_DEPTH }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, repeated.get()))
}

/// Go takes half of a surrogate pair for U+FFFD where the parser refuses it.
fn without_lone_surrogates<'t>(text: &'t str, found: &Scan) -> Cow<'t, str> {
    if found.lone_surrogates.is_empty() || !text.is_ascii() && text.contains('\u{fffd}') {
        return Cow::Borrowed(text);
    }
    let mut out = text.to_owned();
    for start in &found.lone_surrogates {
        if out.is_char_boundary(*start) && out.is_char_boundary(start + 6) {
            out.replace_range(*start..start + 6, "\\ufffd");
        }
    }
    Cow::Owned(out)
}

/// Builds a [`Value`], noting repeated fields; the last one wins.
#[derive(Clone, Copy)]
struct Tree<'r> {
    repeated: &'r Cell<bool>,
    /// How many more levels there may be.
    depth_left: usize,
}

impl Tree<'_> {
    /// What builds the values one level down.
    fn below<E: serde::de::Error>(&self) -> Result<Self, E> {
        let too_deep = || E::custom("exceeded max depth");
        Ok(Tree { depth_left: self.depth_left.checked_sub(1).ok_or_else(too_deep)?, ..*self })
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, int: i64) -> Result<Value, E> {
        Ok(int.into())
    }

    fn visit_u64<E>(self, int: u64) -> Result<Value, E> {
        Ok(unsigned(int))
    }

    fn visit_f64<E>(self, float: f64) -> Result<Value, E> {
        Ok(number(float))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        let below: Self = self.below()?;
        while let Some(item) = items.next_element_seed(below)? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        let below: Self = self.below()?;
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(below)?;
            if out.insert(key, value).is_some() {
                self.repeated.set(true);
            }
        }
        Ok(Value::Object(out))
    }
}

/// What fits no signed integer is a float to Go.
#[expect(clippy::cast_precision_loss, reason = "as in Go")]
pub(super) fn unsigned(int: u64) -> Value {
    i64::try_from(int).map_or_else(|_| Value::from(int as f64), Value::from)
}

/// A float as Go keeps it: `1.0` is written as `1` and so is an integer when read again.
pub(super) fn number(float: f64) -> Value {
    whole(float).map_or_else(|| Number::from_f64(float).map_or(Value::Null, Value::Number), Value::from)
}

fn whole(float: f64) -> Option<i64> {
    // Up to here floats and integers correspond one to one.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "in range, and whole")]
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}
