//! From a turn in the queue to a course: is there still a parent, is it ours, and what does its handler get to see?

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::call::Busy;
use super::course::Course;
use super::{Active, CacheLookup, Runner, Trigger};
use crate::cache::Object;
use crate::clock::later;
use crate::handler::SyncRequest;
use crate::kind::{Key, Kind, ObjectRef, Scope};
use crate::queue::{Outcome, Taken};
use crate::snapshot::Snapshot;

/// How long a parent waits whose controller is not ready, should nothing wake it before.
const NOT_READY_WAIT: Duration = Duration::from_secs(1);

/// How a sync ended, as metrics count it.
pub(super) type Ended = (Outcome, &'static str);

impl Runner {
    /// Syncs a parent whose turn it is. Its handler may have been given up and still run.
    pub(super) async fn sync(self: &Arc<Self>, taken: Taken<Kind, Key, Trigger>) -> (Outcome, Option<Busy>) {
        let started = Instant::now();
        let kind = taken.lane.clone();
        self.metrics.sync_started(&kind, started.saturating_duration_since(taken.ready_since));
        let span = tracing::info_span!(
            "sync",
            parent = %taken.key,
            kind = %kind,
            trigger = taken.triggers.first().unwrap_or(&Trigger::Time).as_str(),
            failures = (taken.failures > 0).then_some(taken.failures),
        );
        let mut busy = None;
        let (outcome, result) = self.sync_one(taken, &mut busy).instrument(span).await;
        self.metrics.sync_finished(&kind, result, started.elapsed());
        (outcome, busy)
    }

    async fn sync_one(self: &Arc<Self>, taken: Taken<Kind, Key, Trigger>, busy: &mut Option<Busy>) -> Ended {
        let id = (taken.lane, taken.key);
        let Some(active) = self.active(&id.0) else { return (Outcome::DONE, "gone") };
        // A kind that goes away takes its objects along in the cache before anybody is told; a decision on that would be
        // wrong. When it is back, all parents are found anew.
        let Some(knowledge) = active.knowledge().filter(|_| active.is_ready()) else {
            return (Outcome::Done { again_after: Some(NOT_READY_WAIT) }, "waiting");
        };
        active.look_sometimes();
        let Some(parent) = self.caches.get(&id.0, &id.1) else {
            self.forget(&id);
            return (Outcome::DONE, "gone");
        };
        // Whoever takes the shard over finds all of its parents anew.
        let Ok(turn) = self.fence.begin(active.shard_uid(&parent)) else {
            return (Outcome::DONE, "other-replica");
        };
        let mut triggers: Vec<_> = taken.triggers.iter().map(ToString::to_string).collect();
        if triggers.is_empty() {
            triggers.push(Trigger::Time.to_string());
        }
        let request = self.request(&active, Arc::clone(&parent));
        let deadline = later(Instant::now(), active.controller.options.deadline);
        let course = Course {
            runner: self,
            active: &active,
            knowledge,
            id,
            request,
            parent: Mutex::new(parent),
            basis: Mutex::default(),
            turn,
            triggers,
            deadline,
        };
        course.run(busy).await
    }

    fn request(self: &Arc<Self>, active: &Arc<Active>, parent: Arc<Object>) -> SyncRequest {
        SyncRequest::new(self.snapshot(active, parent), Arc::new(self.lookup(active)))
    }

    /// What the handler is given when nobody acts on its answer.
    pub(crate) fn request_to_plan(
        self: &Arc<Self>,
        active: &Arc<Active>,
        parent: Arc<Object>,
    ) -> SyncRequest {
        SyncRequest::to_plan(self.snapshot(active, parent), Arc::new(self.lookup(active)))
    }

    fn lookup(self: &Arc<Self>, active: &Arc<Active>) -> CacheLookup {
        CacheLookup { runner: Arc::clone(self), active: Arc::clone(active) }
    }

    fn snapshot(&self, active: &Active, parent: Arc<Object>) -> Snapshot {
        let (uid, parent_key) = (parent.uid(), parent.key().clone());
        let kinds = active.controller.children.iter().map(|child| &child.kind);
        let children = kinds.map(|kind| (kind.clone(), self.caches.children_of(kind, uid))).collect();
        let revisions = active.revisions().map_or_else(Vec::new, |kind| self.caches.children_of(&kind, uid));
        Snapshot {
            kind: active.controller.parent.clone(),
            parent,
            children,
            revisions,
            registered: self.registered(&(active.controller.parent.clone(), parent_key)),
            now: self.clock.now(),
        }
    }

    /// Objects that have a desired child's name and another owner, or none.
    pub(crate) fn strangers(
        &self,
        active: &Active,
        parent: &Object,
        children: &[Value],
    ) -> BTreeMap<ObjectRef, Arc<Object>> {
        let named = children.iter().filter_map(|child| name_of(active, parent, child));
        let found = named.filter_map(|object| Some((self.caches.get(&object.kind, &object.key)?, object)));
        let strangers = found.filter(|(found, _)| found.controller_uid() != Some(parent.uid()));
        strangers.map(|(found, object)| (object, found)).collect()
    }
}

/// Which object a child names, if it is one that can be acted on; planning says what is wrong with the others.
fn name_of(active: &Active, parent: &Object, child: &Value) -> Option<ObjectRef> {
    let metadata = child.get("metadata")?;
    let (api_version, kind) = (child.get("apiVersion")?.as_str()?, child.get("kind")?.as_str()?);
    let name = metadata.get("name")?.as_str()?;
    let mut kinds = active.controller.children.iter().map(|child| &child.kind);
    let kind = kinds.find(|known| known.kind() == kind && known.api_version() == api_version)?;
    let namespace = metadata.get("namespace").and_then(Value::as_str).or(parent.key().namespace());
    let namespace = namespace.filter(|_| kind.scope() == Scope::Namespaced);
    Some(ObjectRef { kind: kind.clone(), key: Key::new(namespace, name) })
}
