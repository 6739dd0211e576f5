//! Our own writes while they are under way.
//!
//! The watch is often faster than the answer to a write. If its event were passed on at once, every own write would
//! wake whoever made it. So changes of an object that is being written are put on the shelf but told only when the
//! write has ended: the one that is the write's own goes to the writer, all others to the listeners.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::kind_cache::{KindCache, Listeners};
use super::{Change, Object, Unreadable};
use crate::kind::Key;

/// An own write of one object that is under way. Dropped without an answer, it is as if it had not been announced.
#[must_use = "listeners learn of the object's changes only when it ends"]
pub struct OwnWrite {
    /// None when nobody watches the kind.
    cache: Option<Arc<KindCache>>,
    listeners: Arc<Listeners>,
    key: Key,
}

impl OwnWrite {
    pub(super) fn begin(cache: Option<Arc<KindCache>>, listeners: Arc<Listeners>, key: &Key) -> Self {
        if let Some(cache) = &cache {
            cache.in_flight.begin(key);
        }
        Self { cache, listeners, key: key.clone() }
    }

    /// Takes in the server's answer to a create, update, patch or apply. The returned change is the one that the write
    /// has made, whichever came first, the answer or the watch's event. Listeners are not told of it.
    pub fn written(self, response: &[u8]) -> Result<Change, Unreadable> {
        let Some(cache) = &self.cache else { return Ok(Change::Nothing) };
        let (object, change) = cache.own_write(response)?;
        Ok(self.own_or_claimed(change, |change| match change {
            Change::Deleted { old, .. } => !object.kept && old.uid() == object.uid,
            _ => change.now().is_some_and(|now| {
                now.uid() == object.uid && now.resource_version() == object.resource_version
            }),
        }))
    }

    /// Takes in the server's answer to a delete of `object`: it is gone at once, or it is as the answer shows it because
    /// finalizers or a grace period hold it.
    pub fn deleted(self, object: &Object, response: &[u8]) -> Result<Change, Unreadable> {
        if still_exists(response).map_err(Unreadable::Json)? {
            self.written(response)
        } else {
            Ok(self.gone(object))
        }
    }

    /// Takes in that `object` no longer exists: the server said 404 to a request for it, or 409 because of its uid.
    pub fn gone(self, object: &Object) -> Change {
        let Some(cache) = &self.cache else { return Change::Nothing };
        let change = cache.own_delete(object);
        self.own_or_claimed(
            change,
            |change| matches!(change, Change::Deleted { old, .. } if old.uid() == object.uid()),
        )
    }

    /// The change that the answer made, or the one that the watch made of the same write before.
    fn own_or_claimed(&self, change: Change, is_own: impl Fn(&Change) -> bool) -> Change {
        match &self.cache {
            Some(cache) if change.is_nothing() => cache.in_flight.claim(&self.key, is_own).unwrap_or(change),
            _ => change,
        }
    }
}

impl Drop for OwnWrite {
    fn drop(&mut self) {
        let Some(cache) = &self.cache else { return };
        for change in cache.in_flight.end(&self.key) {
            self.listeners.tell(&cache.kind, &change);
        }
    }
}

impl fmt::Debug for OwnWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnWrite({})", self.key)
    }
}

/// Whether the answer to a delete shows an object that is only marked. Some kinds answer with the object though it is
/// gone; the others then answer with a `Status`. The finalizers of a Namespace are in its `spec`.
pub(super) fn still_exists(response: &[u8]) -> Result<bool, serde_json::Error> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        kind: String,
        #[serde(default)]
        metadata: Metadata,
        #[serde(borrow)]
        spec: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct NamespaceSpec {
        finalizers: Option<Vec<String>>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Metadata {
        deletion_timestamp: Option<String>,
        deletion_grace_period_seconds: Option<i64>,
        finalizers: Option<Vec<String>>,
    }
    let Answer { kind, metadata, spec } = serde_json::from_slice(response)?;
    let is_held_by = |finalizers: Option<Vec<String>>| finalizers.is_some_and(|all| !all.is_empty());
    let mut held = metadata.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0)
        || is_held_by(metadata.finalizers);
    if let Some(spec) = spec.filter(|_| kind == "Namespace") {
        held |= is_held_by(serde_json::from_str::<NamespaceSpec>(spec.get())?.finalizers);
    }
    Ok(kind != "Status" && metadata.deletion_timestamp.is_some() && held)
}
