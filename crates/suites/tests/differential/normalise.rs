//! Takes out of answers what is the server's own choice, and keeps what is equal equal: the first uid of a run is called
//! `uid-1` wherever it appears, so an answer that repeats a uid differs from one that brings a new one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::{Timestamp, ToSpan as _};
use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// Names in the order of first appearance.
#[derive(Debug)]
struct Names {
    prefix: &'static str,
    seen: BTreeMap<String, usize>,
}

impl Names {
    fn new(prefix: &'static str) -> Self {
        Self { prefix, seen: BTreeMap::new() }
    }

    fn name(&mut self, value: &str) -> String {
        let next = self.seen.len() + 1;
        let number = *self.seen.entry(value.to_string()).or_insert(next);
        format!("<{}-{number}>", self.prefix)
    }
}

/// Normalises the answers of one run of one trace.
#[derive(Debug)]
pub(crate) struct Normaliser {
    /// Texts that this run chose, with what they are called.
    literals: Vec<(String, String)>,
    uids: Names,
    versions: Names,
    addresses: Names,
    ports: Names,
    generated: Names,
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.96\.\d{1,3}\.\d{1,3}\b"));
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+[smhdy])+$"));
/// Revisions that messages speak of.
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(ResourceVersion in (?:the )?(?:precondition|object meta|record)(?:: | \())(\d+)")
});
/// Texts whose variable part carries no fact worth keeping.
static CHANCE: LazyLock<[(Regex, &str); 5]> = LazyLock::new(|| {
    [
        (pattern(r"kube-api-access-[a-z0-9]{5}\b"), "kube-api-access-<suffix>"),
        // Some refusals of a patch quote the whole patched object in the order of the server's own structures.
        (pattern(r#"Invalid value: "\{\\"apiVersion.*\}": "#), "Invalid value: <object>: "),
        (pattern(r"\bhash=[0-9A-F]+"), "hash=<hash>"),
        (pattern(r"(too old resource version: \d+) \(\d+\)"), "$1 (<now>)"),
        (pattern(r"(Too large resource version: \d+, current: )\d+"), "$1<now>"),
    ]
});

impl Normaliser {
    /// `literals` are texts that this run chose, with what they are to be called.
    pub(crate) fn new(literals: Vec<(String, String)>) -> Self {
        Self {
            literals,
            uids: Names::new("uid"),
            versions: Names::new("version"),
            addresses: Names::new("address"),
            ports: Names::new("port"),
            generated: Names::new("generated"),
        }
    }

    /// Normalises an answer's body.
    pub(crate) fn normalise(&mut self, value: Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(self.object(map)),
            Value::Array(list) => list.into_iter().map(|value| self.normalise(value)).collect(),
            Value::String(text) => Value::String(self.text(&text)),
            other => other,
        }
    }

    fn object(&mut self, mut map: Map<String, Value>) -> Map<String, Value> {
        self.learn_generated_name(&map);
        let is_list = map.contains_key("items") || map.contains_key("columnDefinitions");
        if is_list && let Some(version) = map.get_mut("metadata").and_then(list_version) {
            *version = "<list-version>".into();
        }
        if map.get("type").is_some_and(|kind| kind == "BOOKMARK") {
            map.values_mut().for_each(mask_versions);
        }
        map.into_iter().map(|(key, value)| (self.text(&key), self.field(&key, value))).collect()
    }

    fn field(&mut self, key: &str, value: Value) -> Value {
        match (key, &value) {
            ("resourceVersion", Value::String(text))
                if text != "0" && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                self.versions.name(text).into()
            }
            ("continue", Value::String(text)) if !text.is_empty() => "<continue>".into(),
            ("serverAddress", Value::String(_)) => "<server>".into(),
            ("nodePort" | "healthCheckNodePort", Value::Number(number)) => {
                self.ports.name(&number.to_string()).into()
            }
            ("columnDefinitions", Value::Array(_)) => described(self.normalise(value)),
            ("managedFields", Value::Array(_)) => sorted_managers(self.normalise(value)),
            ("cells", Value::Array(cells)) => cells.iter().map(|cell| self.cell(cell)).collect(),
            _ => self.normalise(value),
        }
    }

    fn cell(&mut self, cell: &Value) -> Value {
        match cell {
            Value::String(text) if AGE.is_match(text) => "<age>".into(),
            other => self.normalise(other.clone()),
        }
    }

    fn learn_generated_name(&mut self, map: &Map<String, Value>) {
        let field = |name| map.get(name).and_then(Value::as_str);
        if let (Some(prefix), Some(name)) = (field("generateName"), field("name"))
            && name.len() > prefix.len()
            && name.starts_with(prefix)
            && self.literals.iter().all(|(known, _)| known != name)
        {
            let called = format!("{}{}", self.text(prefix), self.generated.name(name));
            self.literals.push((name.to_string(), called));
        }
    }

    /// Normalises a text: a value, a key or a header.
    pub(crate) fn text(&mut self, text: &str) -> String {
        let mut text = text.to_string();
        // Later ones first: a generated name may hold the run's name.
        for (literal, called) in self.literals.iter().rev() {
            if text.contains(literal.as_str()) {
                text = text.replace(literal.as_str(), called);
            }
        }
        for (pattern, replacement) in CHANCE.iter() {
            text = pattern.replace_all(&text, *replacement).into_owned();
        }
        let versions = &mut self.versions;
        text = VERSION
            .replace_all(&text, |found: &Captures<'_>| format!("{}{}", &found[1], versions.name(&found[2])))
            .into_owned();
        let uids = &mut self.uids;
        text = UID.replace_all(&text, |found: &Captures<'_>| uids.name(&found[0])).into_owned();
        let addresses = &mut self.addresses;
        text = ADDRESS.replace_all(&text, |found: &Captures<'_>| addresses.name(&found[0])).into_owned();
        TIME.replace_all(&text, |found: &Captures<'_>| normalise_time(&found[0])).into_owned()
    }
}

/// Now is chance, but a time that the trace itself has written is not. The precision is kept.
fn normalise_time(text: &str) -> String {
    let recent = text.parse::<Timestamp>().is_ok_and(|time| {
        let now = Timestamp::now();
        now - 24.hours() < time && time < now + 24.hours()
    });
    match (recent, text.contains('.')) {
        (false, _) => text.to_string(),
        (true, false) => "<now>".into(),
        (true, true) => "<now.micros>".into(),
    }
}

/// What a column's description says is documentation, which the embedded server leaves out.
fn described(mut columns: Value) -> Value {
    for column in columns.as_array_mut().into_iter().flatten() {
        if let Some(description) = column.get_mut("description") {
            *description = "<description>".into();
        }
    }
    columns
}

/// Managers are kept in the order of their times, so whether a second passed between two writes shows in it.
fn sorted_managers(mut managers: Value) -> Value {
    if let Value::Array(list) = &mut managers {
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_string();
        list.sort_by_key(|entry| {
            ["operation", "manager", "subresource", "apiVersion"].map(|key| text(entry, key))
        });
    }
    managers
}

fn list_version(metadata: &mut Value) -> Option<&mut Value> {
    metadata
        .get_mut("resourceVersion")
        .filter(|version| version.as_str().is_some_and(|text| !text.is_empty()))
}

/// A bookmark carries no object, only how far the server has come; where it does depends on the form.
fn mask_versions(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key == "resourceVersion" {
                    *value = "<list-version>".into();
                } else {
                    mask_versions(value);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(mask_versions),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn normaliser() -> Normaliser {
        Normaliser::new(vec![("test-1".into(), "{ns}".into())])
    }

    #[test]
    fn equal_choices_stay_equal_and_different_ones_different() {
        let (a, b) = ("01234567-89ab-cdef-0123-456789abcdef", "11234567-89ab-cdef-0123-456789abcdef");
        let normalised = normaliser().normalise(json!({
            "a": {"uid": a, "resourceVersion": "17"},
            "b": {"uid": b, "resourceVersion": "17"},
            "message": format!("object {a} in test-1"),
        }));
        assert_eq!(
            normalised,
            json!({
                "a": {"uid": "<uid-1>", "resourceVersion": "<version-1>"},
                "b": {"uid": "<uid-2>", "resourceVersion": "<version-1>"},
                "message": "object <uid-1> in {ns}",
            })
        );
    }

    #[test]
    fn a_lists_version_is_no_objects_version() {
        let normalised = normaliser().normalise(json!({
            "items": [{"metadata": {"resourceVersion": "5"}}], "metadata": {"resourceVersion": "5"},
        }));
        assert_eq!(
            normalised,
            json!({
                "items": [{"metadata": {"resourceVersion": "<version-1>"}}],
                "metadata": {"resourceVersion": "<list-version>"},
            })
        );
    }

    #[test]
    fn a_generated_name_is_recognised_later() {
        let mut normaliser = normaliser();
        normaliser.normalise(json!({"metadata": {"generateName": "a-", "name": "a-x7k2p"}}));
        assert_eq!(normaliser.text("no a-x7k2p here"), "no a-<generated-1> here");
    }

    #[test]
    fn only_times_near_now_are_chance() {
        let mut normaliser = normaliser();
        assert_eq!(normaliser.text("2001-02-03T04:05:06Z"), "2001-02-03T04:05:06Z");
        assert_eq!(normaliser.text(&Timestamp::now().strftime("%FT%TZ").to_string()), "<now>");
    }
}
