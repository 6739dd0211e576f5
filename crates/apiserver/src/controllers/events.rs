//! Events are kept for a time after they were last written, and then go, as with `--event-ttl` of kube-apiserver.

use super::engine::{Controller, Shared};
use super::queue::{Outcome, Queue};
use super::read;
use crate::server::Server;
use crate::store::{CollectionId, Fate, Key, Object, Refused};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde::Deserialize;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::time::Instant;

static EVENTS: LazyLock<CollectionId> = LazyLock::new(|| CollectionId::new("", "events"));

/// An event that is kept longer than this is looked at in between: the clock cannot tell every time that a duration leads to.
const LOOK_AGAIN_MAX: Duration = Duration::from_hours(24 * 365);

/// When an event was last written, as far as it says itself: so a restart changes nothing.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    creation_timestamp: Option<Timestamp>,
    managed_fields: Vec<Manager>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Manager {
    time: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Metadata,
}

/// The time of an event's last write; none if it does not say.
fn written(object: &Object) -> Option<Timestamp> {
    let Head { metadata } = serde_json::from_slice(&object.json).ok()?;
    let managed = metadata.managed_fields.iter().filter_map(|manager| manager.time);
    managed.chain(metadata.creation_timestamp).max()
}

/// How long an event has left at `now`. What does not say when it was written has its whole time left.
fn remaining(object: &Object, keep: Duration, now: Timestamp) -> Duration {
    let age = written(object).map_or(Duration::ZERO, |time| {
        Duration::try_from(now.duration_since(time)).unwrap_or(Duration::ZERO)
    });
    keep.saturating_sub(age)
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Expiry {
    queue: Queue<Key>,
}

impl Expiry {
    /// Looks at an event again when its time is over.
    fn mark_after(&mut self, key: Key, left: Duration) {
        self.queue.mark_at(key, Instant::now() + left.min(LOOK_AGAIN_MAX));
    }
}

impl Controller for Expiry {
    type Key = Key;
    const NAME: &'static str = "event expiry";
    const AT_ONCE: usize = 32;

    fn see(&mut self, server: &Server, id: &CollectionId, object: &Arc<Object>) {
        // A key that waits already is looked at in time: what is written again only lives longer.
        if *id == *EVENTS && !server.event_ttl.is_zero() && !self.queue.is_known(&object.key) {
            let left = remaining(object, server.event_ttl, server.clock.now());
            self.mark_after(object.key.clone(), left);
        }
    }

    fn gone(&mut self, _: &Server, id: &CollectionId, object: &Object) {
        if *id == *EVENTS {
            self.queue.forget(&object.key);
        }
    }

    fn queue(&mut self) -> &mut Queue<Key> {
        &mut self.queue
    }

    fn work(server: Arc<Server>, shared: Shared<Self>, key: Key) -> BoxFuture<'static, Outcome> {
        async move {
            let Some(object) = server.store.get(&EVENTS, &key) else { return Outcome::Done };
            let left = remaining(&object, server.event_ttl, server.clock.now());
            if !left.is_zero() {
                shared.lock().mark_after(key, left);
                return Outcome::Done;
            }
            // Nobody is asked: what is only kept for a time was never promised to stay.
            let Some(last) = read(&object) else { return Outcome::Done };
            match server.store.commit(&EVENTS, &key, Some(object.revision), &last, Fate::Removed).await {
                Ok(_) | Err(Refused::Changed(None)) => Outcome::Done,
                Err(_) => Outcome::Failed,
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn left(metadata: &Value) -> u64 {
        let json = json!({"metadata": metadata}).to_string().into();
        let object = Object::new(Key::new("ns", "e"), 1, json);
        remaining(&object, Duration::from_hours(1), "2001-01-01T01:00:00Z".parse().unwrap()).as_secs()
    }

    #[test]
    fn the_last_write_counts() {
        let created = json!({"creationTimestamp": "2001-01-01T00:10:00Z"});
        assert_eq!(left(&created), 600);
        let managed = json!({
            "creationTimestamp": "2001-01-01T00:10:00Z",
            "managedFields": [{"time": "2001-01-01T00:40:00Z"}, {"time": "2001-01-01T00:20:00Z"}, {}],
        });
        assert_eq!(left(&managed), 2400);
        assert_eq!(left(&json!({"creationTimestamp": "2000-01-01T00:00:00Z"})), 0);
        assert_eq!(left(&json!({"creationTimestamp": "2002-01-01T00:00:00Z"})), 3600);
        assert_eq!(left(&json!({})), 3600);
    }
}
