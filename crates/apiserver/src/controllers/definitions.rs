//! Definitions of custom kinds: their names are accepted or not, their versions served or not, and a
//! definition that is deleted takes its objects along.

mod kinds;

use super::engine::{Controller, Shared};
use super::queue::{Outcome, Queue};
use super::{change, delete_all, garbage, is_deleting, read};
use crate::builtin::rules::json::text_at;
use crate::builtin::rules::objects::crd::{self, CLEANUP, names};
use crate::kind::Kind;
use crate::server::Server;
use crate::store::{CollectionId, Key, Object};
use crate::strategy::Part;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kinds::kinds;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const WHO: &str = "apiserver-definitions";

/// What is remembered of a CRD, so that no other one needs to be read for it.
struct Known {
    object: Arc<Object>,
    group: String,
    /// The names that it has, or is about to get.
    accepted: Value,
    /// Not all names that it wants are its own.
    lacks_names: bool,
}

#[derive(Default)]
pub(super) struct Definitions {
    known: BTreeMap<String, Known>,
    /// By group.
    taken: HashMap<String, names::TakenNames>,
    /// The collections whose CRD is being deleted, and its name.
    terminating: HashMap<CollectionId, String>,
    queue: Queue<String>,
}

/// What the names of a CRD depend on.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    metadata: HeadMetadata,
    spec: HeadSpec,
    status: HeadStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMetadata {
    deletion_timestamp: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HeadSpec {
    group: String,
    names: HeadNames,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HeadNames {
    plural: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadStatus {
    accepted_names: Value,
    /// Null until the first is set.
    conditions: Option<Vec<Value>>,
}

fn is_definition(id: &CollectionId) -> bool {
    id.parts() == ("apiextensions.k8s.io", "customresourcedefinitions")
}

impl Definitions {
    fn learn(&mut self, object: &Arc<Object>) {
        let name = object.key.name.to_string();
        let Ok(head) = object.read::<Head>().inspect_err(|error| tracing::error!("{error}")) else { return };
        self.forget_names(&name);
        let id = CollectionId::new(&head.spec.group, &head.spec.names.plural);
        if head.metadata.deletion_timestamp.is_some() {
            self.terminating.insert(id, name.clone());
        } else {
            self.terminating.remove(&id);
        }
        let accepted = head.status.accepted_names;
        self.taken.entry(head.spec.group.clone()).or_default().add(&name, &accepted);
        let refused =
            |condition: &Value| condition["type"] == "NamesAccepted" && condition["status"] == "False";
        let lacks_names = head.status.conditions.iter().flatten().any(refused);
        let known = Known { object: object.clone(), group: head.spec.group, accepted, lacks_names };
        self.known.insert(name.clone(), known);
        self.queue.mark(name);
    }

    fn forget_names(&mut self, name: &str) -> Option<String> {
        let known = self.known.remove(name)?;
        if let Some(taken) = self.taken.get_mut(&known.group) {
            taken.remove(name, &known.accepted);
        }
        Some(known.group)
    }

    /// The status that a CRD comes to, if it is not there. What it gets is nobody else's from here on.
    fn settle_names(&mut self, name: &str, definition: &Value, now: &str) -> Option<Value> {
        let group = text_at(definition, "/spec/group");
        let taken = self.taken.entry(group.to_owned()).or_default();
        let status = names::settle(definition, taken, now)?;
        if let Some(known) = self.known.get_mut(name) {
            taken.remove(name, &known.accepted);
            known.accepted = status["acceptedNames"].clone();
            taken.add(name, &known.accepted);
        }
        Some(status)
    }
}

impl Controller for Definitions {
    type Key = String;
    const NAME: &'static str = "custom resource definitions";
    const AT_ONCE: usize = 10;

    fn see(&mut self, _: &Server, id: &CollectionId, object: &Arc<Object>) {
        if is_definition(id) {
            self.learn(object);
        } else if !self.terminating.is_empty()
            && let Some(name) = self.terminating.get(id)
            && !is_deleting(object)
        {
            // An object of a CRD that waits for its objects to go, and nobody has deleted this one.
            self.queue.mark(name.clone());
        }
    }

    fn gone(&mut self, server: &Server, id: &CollectionId, object: &Object) {
        if !is_definition(id) {
            if let Some(name) = self.terminating.get(id)
                && server.store.count(id) == 0
            {
                self.queue.mark(name.clone());
            }
            return;
        }
        let name = object.key.name.to_string();
        self.queue.forget(&name);
        self.terminating.retain(|_, terminating| *terminating != name);
        server.registry.serve(&name, Vec::new());
        let Some(group) = self.forget_names(&name) else { return };
        // Names that were taken may be free now.
        let waiting = self.known.iter().filter(|(_, other)| other.lacks_names && other.group == group);
        waiting.map(|(name, _)| name.clone()).for_each(|name| self.queue.mark(name));
    }

    fn queue(&mut self) -> &mut Queue<String> {
        &mut self.queue
    }

    fn work(server: Arc<Server>, shared: Shared<Self>, name: String) -> BoxFuture<'static, Outcome> {
        async move {
            let object = shared.lock().known.get(&name).map(|known| known.object.clone());
            let Some(object) = object else { return Outcome::Done };
            Outcome::of(settle(&server, &shared, &name, &object).await)
        }
        .boxed()
    }
}

/// Brings one CRD where it belongs. False if it must be tried again.
async fn settle(server: &Server, shared: &Shared<Definitions>, name: &str, object: &Object) -> bool {
    let Some(kind) = server.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
        return true;
    };
    let Some(definition) = read(object) else { return true };
    let deleting = definition.pointer("/metadata/deletionTimestamp").is_some();
    let now = server.timestamp();
    let status = if deleting { None } else { shared.lock().settle_names(name, &definition, &now) };
    // The event of our own write brings the CRD here again, with its new status.
    if let Some(status) = status {
        let edit = |object: &mut Value| object["status"] = status.clone();
        return change(server, kind, &object.key, Part::Status, WHO, &edit).await.is_ok();
    }
    let established = crd::condition_is_true(&definition, "Established")
        && crd::condition_is_true(&definition, "NamesAccepted");
    let kinds = if established { kinds(&definition, object.revision, server).await } else { Vec::new() };
    server.registry.serve(name, kinds);
    !deleting || clean_up(server, kind, &definition, &object.key).await
}

/// Deletes the objects of a definition, and lets it go when none is left. False if it must be tried again.
async fn clean_up(server: &Server, definitions: Arc<Kind>, definition: &Value, key: &Key) -> bool {
    let id = CollectionId::new(text_at(definition, "/spec/group"), text_at(definition, "/spec/names/plural"));
    let Ok(listing) = server.store.list(&id, None, None, None) else { return false };
    let Some(kind) = server.registry.of_collection(&id) else {
        let edit = |object: &mut Value| garbage::retain(object, "finalizers", |f| f != CLEANUP);
        return change(server, definitions, key, Part::Main, WHO, &edit).await.is_ok();
    };
    if !is_in_progress(definition) {
        let now = server.timestamp();
        let edit = |object: &mut Value| {
            let message = "CustomResource deletion is in progress";
            names::set_condition(
                &mut object["status"],
                "Terminating",
                "True",
                "InstanceDeletionInProgress",
                message,
                &now,
            );
        };
        // The event of this write brings the definition here again.
        return change(server, definitions, key, Part::Status, WHO, &edit).await.is_ok();
    }
    let deleted = delete_all(server, &kind, &listing.items, WHO).await;
    if server.store.count(&id) > 0 {
        return deleted;
    }
    let edit = |object: &mut Value| garbage::retain(object, "finalizers", |f| f != CLEANUP);
    change(server, definitions, key, Part::Main, WHO, &edit).await.is_ok()
}

fn is_in_progress(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|c| c["reason"] == "InstanceDeletionInProgress")
}
