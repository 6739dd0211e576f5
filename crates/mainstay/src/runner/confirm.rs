//! Reads the parent from the server before a step that deletes. A cache that lags behind must not cost an object that another
//! instance rightly made.

use serde_json::Value;

use super::course::Course;
use super::lock;
use crate::cache::{Change, Object};
use crate::execute::Failure;
use crate::kind::Kind;
use crate::plan::{Action, Step};

/// What the server said about the parent. One answer serves all steps of a sync.
#[derive(Debug, Clone)]
pub(super) enum Confirmation {
    /// The parent is the one that the decision was made on.
    Current,
    /// The parent is gone or has changed. The cache has the server's answer.
    Outdated,
    /// The parent could not be read.
    Failed(Failure),
}

impl Course<'_> {
    /// Asks the server about the parent, unless the step deletes nothing.
    pub(super) async fn confirm(&self, step: &Step, known: &mut Option<Confirmation>) -> Confirmation {
        if !matches!(step.action, Action::Delete | Action::End) {
            return Confirmation::Current;
        }
        if let Some(known) = known {
            return known.clone();
        }
        // Nothing is written here.
        let (wrote, found) = (
            |_: &Kind, _: &Change| {},
            |kind: &Kind, change: &Change| self.runner.changed(kind, change, None),
        );
        let confirmation = match self.executor(&wrote, &found).refresh_parent().await {
            Ok(()) if self.is_parent_current() => Confirmation::Current,
            Ok(()) => Confirmation::Outdated,
            Err(failure) => Confirmation::Failed(failure),
        };
        known.insert(confirmation).clone()
    }

    /// Whether the cache has the parent as the decision saw it, apart from what this sync wrote itself.
    fn is_parent_current(&self) -> bool {
        let live = self.runner.caches.get(&self.id.0, &self.id.1);
        live.is_some_and(|live| is_same(&live, &lock(&self.parent)))
    }
}

/// Whether both have the same content. The server counts up versions for changes of `managedFields` as well.
fn is_same(live: &Object, known: &Object) -> bool {
    let content = |object: &Object| {
        let mut value = object.value();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        value
    };
    live.uid() == known.uid()
        && (live.resource_version() == known.resource_version() || content(live) == content(known))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn object(uid: &str, version: &str, extra: &Value) -> Object {
        let value = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": extra,
            "metadata": {"name": "a", "namespace": "b", "uid": uid, "resourceVersion": version},
        });
        Object::from_value(&Kind::of::<ConfigMap>(), &value).unwrap()
    }

    #[test]
    fn a_parent_is_the_same_if_uid_and_content_are() {
        let known = object("1", "7", &json!({"a": "1"}));
        assert!(is_same(&object("1", "7", &json!({"a": "1"})), &known));
        assert!(is_same(&object("1", "8", &json!({"a": "1"})), &known), "only the version differs");
        assert!(!is_same(&object("1", "8", &json!({"a": "2"})), &known));
        assert!(!is_same(&object("2", "7", &json!({"a": "1"})), &known), "another object of the name");
    }
}
