//! A child as its handler wants it, in the one form in which it is compared, hashed and sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::canonical;

/// The annotation that keeps the hash of the desired child that was applied last.
pub const APPLIED: &str = "mainstay.dev/applied";

/// A desired child in its canonical form.
///
/// - Null fields are gone: they desire nothing.
/// - What the server keeps in the metadata is gone, as when a handler returns what it read: it can't be
///   desired, and would make every sync differ. So is our own annotation.
/// - What a Secret has in `stringData` is in `data`. The server does the same and forgets the former, so that
///   a change by somebody else could not be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    object: Value,
    hash: String,
}

/// A child that can't be desired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DesiredError {
    /// The child is no JSON object.
    #[error("a desired child must be an object, and this one is {found}")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// A field that every child needs is missing, empty, or no string.
    #[error("the desired child {child} has no {field}")]
    Missing {
        /// As much as is known of which child.
        child: String,
        /// `apiVersion`, `kind` or `metadata.name`.
        field: &'static str,
    },
    /// The child has a status, which only its own controller may write.
    #[error("the desired child {child} has a status, which only the controller of its kind may set")]
    Status {
        /// Which child.
        child: String,
    },
}

/// What the server alone writes into an object's metadata.
const KEPT_BY_SERVER: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

impl Desired {
    /// Brings a handler's child into its canonical form.
    pub fn new(mut child: Value) -> Result<Self, DesiredError> {
        canonical::drop_nulls(&mut child);
        let Value::Object(object) = &mut child else {
            return Err(DesiredError::NotAnObject { found: type_of(&child) });
        };
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.retain(|name, _| !KEPT_BY_SERVER.contains(&name.as_str()));
            drop_own_annotation(metadata);
        }
        if is_secret(object) {
            fold_string_data(object);
        }
        for field in ["apiVersion", "kind", "metadata.name"] {
            if text(&child, field).is_empty() {
                return Err(DesiredError::Missing { child: name_of(&child), field });
            }
        }
        if child.get("status").is_some() {
            return Err(DesiredError::Status { child: name_of(&child) });
        }
        let hash = canonical::content_hash(&child);
        Ok(Self { object: child, hash })
    }

    /// The canonical object, without our annotation.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// The object as it is sent: with the annotation that remembers the hash.
    pub fn to_apply(&self) -> Value {
        self.clone().into_apply().0
    }

    /// The object as it is sent, and the hash in its annotation.
    pub fn into_apply(self) -> (Value, String) {
        let Self { mut object, hash } = self;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(APPLIED.to_owned(), Value::from(hash.as_str()));
            }
        }
        (object, hash)
    }

    /// A hash of the content, whatever the order of its keys: 16 hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Whether a live object was last applied from just this.
    pub fn was_applied_to(&self, live: &Value) -> bool {
        let annotation = live.get("metadata").and_then(|metadata| metadata.get("annotations")?.get(APPLIED));
        annotation.and_then(Value::as_str) == Some(&self.hash)
    }

    /// The group and version: `apps/v1`.
    pub fn api_version(&self) -> &str {
        text(&self.object, "apiVersion")
    }

    /// The kind: `Deployment`.
    pub fn kind(&self) -> &str {
        text(&self.object, "kind")
    }

    /// The name.
    pub fn name(&self) -> &str {
        text(&self.object, "metadata.name")
    }

    /// The namespace, if it names one.
    pub fn namespace(&self) -> Option<&str> {
        Some(text(&self.object, "metadata.namespace")).filter(|namespace| !namespace.is_empty())
    }

    /// Whether it says nothing but which object it is: that object is to be kept as it is.
    pub fn is_only_named(&self) -> bool {
        let Value::Object(object) = &self.object else { return false };
        object.iter().all(|(name, value)| match (name.as_str(), value) {
            ("apiVersion" | "kind", _) => true,
            ("metadata", Value::Object(metadata)) => {
                metadata.keys().all(|name| name == "name" || name == "namespace")
            }
            _ => false,
        })
    }
}

/// The text of a field, or none. Unlike a JSON pointer this allocates nothing.
fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    field.split('.').fold(object, |value, name| &value[name]).as_str().unwrap_or_default()
}

/// As much of `Deployment shop/web` as is there.
fn name_of(child: &Value) -> String {
    let kind = Some(text(child, "kind")).filter(|kind| !kind.is_empty()).unwrap_or("of no kind");
    match (text(child, "metadata.namespace"), text(child, "metadata.name")) {
        (_, "") => kind.to_owned(),
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Takes our annotation away, and the map that held nothing else.
fn drop_own_annotation(metadata: &mut Map<String, Value>) {
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else { return };
    if annotations.remove(APPLIED).is_some() && annotations.is_empty() {
        metadata.remove("annotations");
    }
}

fn is_secret(object: &Map<String, Value>) -> bool {
    let is = |field: &str, value: &str| object.get(field).and_then(Value::as_str) == Some(value);
    is("apiVersion", "v1") && is("kind", "Secret")
}

/// Moves `stringData` into `data`. Where it holds anything but strings it stays, for the server to refuse.
fn fold_string_data(secret: &mut Map<String, Value>) {
    let Some(Value::Object(strings)) = secret.get("stringData") else { return };
    let encoded: Option<Vec<(String, Value)>> = strings
        .iter()
        .map(|(name, value)| Some((name.clone(), Value::from(BASE64.encode(value.as_str()?)))))
        .collect();
    let Some(encoded) = encoded else { return };
    let data = secret.entry("data").or_insert_with(|| Value::Object(Map::new()));
    let Some(data) = data.as_object_mut() else { return };
    data.extend(encoded);
    secret.remove("stringData");
}
