//! What the user of a world does, as data: it is printed, shortened and replayed.

use std::fmt;
use std::time::Duration;

use mainstay::{Key, Kind, Scope};
use serde_json::Value;

use super::state::MAIN;

/// The namespace of objects that name none.
const NAMESPACE: &str = "default";

/// What the user does, one step after the other. After each step the user waits until nothing changes any more, unless
/// told otherwise; the user of a world in which events are held back does not know that, and goes on.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use mainstay::Kind;
/// use mainstay_testkit::simulation::Script;
/// use serde_json::json;
///
/// let paint = Kind::of::<ConfigMap>();
/// Script::new()
///     .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "paint"}, "data": {"colour": "red"}}))
///     .patch(&paint, "paint", json!({"data": {"colour": "blue"}}))
///     .delete(&paint, "paint").at_once()
///     .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "paint"}}));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub(super) steps: Vec<Step>,
}

/// One thing that the user does.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) cluster: String,
    /// The user waits until nothing changes any more before the next step.
    pub(super) settles: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Create(Value),
    Patch { kind: Kind, key: Key, patch: Value },
    PatchStatus { kind: Kind, key: Key, patch: Value },
    Delete { kind: Kind, key: Key },
    Wait(Duration),
}

impl Script {
    /// A user who does nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an object, in the namespace `default` if it names none.
    #[must_use]
    pub fn create(self, object: Value) -> Self {
        self.then(Action::Create(object))
    }

    /// Changes an object by a JSON merge patch. The name is `name` or `namespace/name`.
    #[must_use]
    pub fn patch(self, kind: &Kind, name: &str, patch: Value) -> Self {
        self.then(Action::Patch { kind: kind.clone(), key: key(kind, name), patch })
    }

    /// Changes the status of an object by a JSON merge patch, in the place of whoever reports it: `{"status": …}`.
    #[must_use]
    pub fn patch_status(self, kind: &Kind, name: &str, patch: Value) -> Self {
        self.then(Action::PatchStatus { kind: kind.clone(), key: key(kind, name), patch })
    }

    /// Deletes an object.
    #[must_use]
    pub fn delete(self, kind: &Kind, name: &str) -> Self {
        self.then(Action::Delete { kind: kind.clone(), key: key(kind, name) })
    }

    /// Lets time pass.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.then(Action::Wait(time))
    }

    /// The next step comes right after the last one, whatever has not happened yet.
    #[must_use]
    pub fn at_once(mut self) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.settles = false;
        }
        self
    }

    /// The last step happens in another cluster of the world.
    #[must_use]
    pub fn on(mut self, cluster: &str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            cluster.clone_into(&mut step.cluster);
        }
        self
    }

    /// The calls that make it, for a test.
    pub(super) fn code(&self) -> Vec<String> {
        self.steps.iter().map(Step::code).collect()
    }

    fn then(mut self, action: Action) -> Self {
        self.steps.push(Step { action, cluster: MAIN.to_owned(), settles: true });
        self
    }
}

fn key(kind: &Kind, name: &str) -> Key {
    match (kind.scope(), name.split_once('/')) {
        (Scope::Cluster, _) => Key::cluster(name),
        (Scope::Namespaced, Some((namespace, name))) => Key::namespaced(namespace, name),
        (Scope::Namespaced, None) => Key::namespaced(NAMESPACE, name),
    }
}

/// The namespace that an object is created in, if its kind has one.
pub(super) fn namespace_of(object: &Value) -> &str {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or(NAMESPACE)
}

impl Step {
    fn code(&self) -> String {
        let call = match &self.action {
            Action::Create(object) => format!(".create({})", value_code(object)),
            Action::Patch { kind, key, patch } => {
                format!(".patch(&{}, \"{key}\", {})", kind_code(kind), value_code(patch))
            }
            Action::PatchStatus { kind, key, patch } => {
                format!(".patch_status(&{}, \"{key}\", {})", kind_code(kind), value_code(patch))
            }
            Action::Delete { kind, key } => format!(".delete(&{}, \"{key}\")", kind_code(kind)),
            Action::Wait(time) => format!(".wait(Duration::from_millis({}))", time.as_millis()),
        };
        let cluster = if self.cluster == MAIN { String::new() } else { format!(".on({:?})", self.cluster) };
        let at_once = if self.settles { "" } else { ".at_once()" };
        format!("{call}{cluster}{at_once}")
    }
}

/// A value as Rust code. The macro cannot take everything that JSON can.
fn value_code(value: &Value) -> String {
    let text = value.to_string();
    let odd = |text: &str| {
        text.len() > 2000 || text.contains("\\u") || text.contains("\\b") || text.contains("\\f")
    };
    if odd(&text) || has_large_number(value) {
        format!("serde_json::from_str(r##\"{text}\"##).unwrap()")
    } else {
        format!("json!({text})")
    }
}

fn has_large_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.as_i64().is_none_or(|number| i32::try_from(number).is_err()) && !number.is_f64()
        }
        Value::Array(items) => items.iter().any(has_large_number),
        Value::Object(fields) => fields.values().any(has_large_number),
        _ => false,
    }
}

fn kind_code(kind: &Kind) -> String {
    let (api_version, name, plural) = (kind.api_version(), kind.kind(), kind.plural());
    format!("Kind::new({api_version:?}, {name:?}, {plural:?}, Scope::{:?})", kind.scope())
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            Action::Create(object) => {
                let text = |path| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
                write!(
                    f,
                    "create {} {}{}",
                    text("/kind"),
                    text("/metadata/name"),
                    text("/metadata/generateName")
                )?;
            }
            Action::Patch { kind, key, patch } => write!(f, "patch {} {key} with {patch}", kind.kind())?,
            Action::PatchStatus { kind, key, patch } => {
                write!(f, "patch status of {} {key} with {patch}", kind.kind())?;
            }
            Action::Delete { kind, key } => write!(f, "delete {} {key}", kind.kind())?,
            Action::Wait(time) => write!(f, "wait {time:?}")?,
        }
        if self.cluster != MAIN {
            write!(f, " in {}", self.cluster)?;
        }
        if self.settles { Ok(()) } else { f.write_str(", and go on at once") }
    }
}
