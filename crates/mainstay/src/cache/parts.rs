//! Single parts of a JSON text, found without building a tree of the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::wire::Text;

/// A map of texts, or nothing if it is something else.
pub(super) fn text_map(json: &str) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
    let map: Option<BTreeMap<Text<'_>, Text<'_>>> = serde_json::from_str(json).unwrap_or_default();
    map.into_iter().flatten().map(|(Text(name), Text(value))| (name, value)).collect()
}

/// One entry of a map of texts.
pub(super) fn text_entry(json: &str, name: &str) -> Option<String> {
    let raw = child(json, name)?;
    serde_json::from_str(raw).ok()
}

/// What a JSON pointer points at.
pub(super) fn pointed_at(json: &str, pointer: &str) -> Option<Value> {
    let mut raw = json;
    if !pointer.is_empty() {
        for name in pointer.strip_prefix('/')?.split('/') {
            raw = child(raw, &name.replace("~1", "/").replace("~0", "~"))?;
        }
    }
    serde_json::from_str(raw).ok()
}

/// The text of an entry of a map, or of an item of a list.
fn child<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    if !json.starts_with(['{', '[']) {
        return None;
    }
    let found = Child(name).deserialize(&mut serde_json::Deserializer::from_str(json)).ok()?;
    found.map(RawValue::get)
}

struct Child<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Child<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Child<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(Text(name)) = map.next_key()? {
            if name == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let wanted: Option<usize> = self.0.parse().ok();
        let mut found = None;
        let mut index = 0;
        while let Some(raw) = items.next_element::<&RawValue>()? {
            if wanted == Some(index) {
                found = Some(raw);
            }
            index += 1;
        }
        Ok(found)
    }
}
