//! Complaints about the fields of a JSON body, in the order in which the fields stand there.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};

/// Sorts `duplicate field "…"` and `unknown field "…"`. Go does not look into a field that it does not know, nor whether it
/// stands twice, so nothing is said of that.
pub(crate) fn in_document_order(body: &[u8], repeated: &[String], unknown: &[String]) -> Vec<String> {
    let by_path = |complaints: &[String]| -> HashMap<String, String> {
        let path = |text: &String| {
            let (_, quoted) = text.split_once('"')?;
            Some((quoted.strip_suffix('"')?.to_owned(), text.clone()))
        };
        complaints.iter().filter_map(path).collect()
    };
    let mut search = Search {
        repeated: by_path(repeated),
        unknown: by_path(unknown),
        path: String::new(),
        found: Vec::new(),
    };
    let text = String::from_utf8_lossy(body);
    let walked = Walk(&mut search).deserialize(&mut serde_json::Deserializer::from_str(&text));
    if walked.is_err() || search.found.is_empty() {
        // Half of a surrogate pair, say, which Go reads and this does not.
        return repeated.iter().chain(unknown).cloned().collect();
    }
    search.found
}

struct Search {
    repeated: HashMap<String, String>,
    unknown: HashMap<String, String>,
    /// Of the field that is looked at.
    path: String,
    found: Vec<String>,
}

struct Walk<'s>(&'s mut Search);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Walk(search) = self;
        let outer = search.path.len();
        for index in 0.. {
            // Writing to a String cannot fail.
            let _ = write!(search.path, "[{index}]");
            let more = items.next_element_seed(Walk(search))?;
            search.path.truncate(outer);
            if more.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Walk(search) = self;
        let outer = search.path.len();
        let mut seen = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if outer > 0 {
                search.path.push('.');
            }
            search.path.push_str(&key);
            let is_first = seen.insert(key);
            if let Some(complaint) = search.unknown.get(&search.path) {
                if is_first {
                    search.found.push(complaint.clone());
                }
                entries.next_value::<IgnoredAny>()?;
            } else {
                if !is_first && let Some(complaint) = search.repeated.remove(&search.path) {
                    search.found.push(complaint);
                }
                entries.next_value_seed(Walk(search))?;
            }
            search.path.truncate(outer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, repeated: &[&str], unknown: &[&str], expected: &[&str]) {
        let say = |word: &str, paths: &[&str]| -> Vec<String> {
            paths.iter().map(|path| format!("{word} field \"{path}\"")).collect()
        };
        let found = in_document_order(body.as_bytes(), &say("duplicate", repeated), &say("unknown", unknown));
        let found: Vec<String> =
            found.iter().map(|text| text.replace(" field ", " ").replace('"', "")).collect();
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn complaints_come_as_the_fields_stand() {
        check(
            r#"{"z":1,"metadata":{"y":1,"name":"n","name":"n","b":2},"data":{"a":"1","a":"2","a":"3"},"c":1,"data":{}}"#,
            &["metadata.name", "data.a", "data"],
            &["c", "metadata.b", "metadata.y", "z"],
            &[
                "unknown z",
                "unknown metadata.y",
                "duplicate metadata.name",
                "unknown metadata.b",
                "duplicate data.a",
                "unknown c",
                "duplicate data",
            ],
        );
        check(
            r#"{"l":[{"b":1},{"b":1,"a":2}]}"#,
            &[],
            &["l[1].a", "l[0].b", "l[1].b"],
            &["unknown l[0].b", "unknown l[1].b", "unknown l[1].a"],
        );
    }

    #[test]
    fn nothing_is_said_of_what_is_inside_of_the_unknown() {
        check(r#"{"z":1,"z":{"a":1,"a":2}}"#, &["z", "z.a"], &["z"], &["unknown z"]);
    }
}
