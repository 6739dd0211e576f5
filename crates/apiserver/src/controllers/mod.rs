//! The controllers that belong to the API: without them objects would not go when their owner does, nor
//! namespaces end, nor definitions become kinds.
//!
//! One task follows every change in revision order and hands it to each of them. What they write goes
//! the way of every write, admission included.
//!
//! ```text
//! store events ─▶ garbage  (owner graph: delete, orphan, release)
//!              ─▶ namespaces (empty and finalize the terminating ones; default account and CA)
//!              ─▶ definitions (names, conditions, serving; empty the terminating ones)
//!              ─▶ protection (release volumes and claims that nobody uses)
//! ```

mod bootstrap;
mod definitions;
mod garbage;
mod namespaces;
mod protection;

use crate::builtin::rules::json::text_at;
use crate::delete::{self, DeleteOptions, Propagation};
use crate::kind::Kind;
use crate::negotiate::Accept;
use crate::options::{FieldValidation, WriteOptions};
use crate::request::Query;
use crate::server::{Call, Server, User};
use crate::status::ApiError;
use crate::store::{CollectionId, Event, Key, Object, Revision};
use crate::strategy::Part;
use crate::write::{self, Change};
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// After how long something that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Makes what every cluster has, serves the kinds that are defined, and follows the store from there on
/// until the server is gone.
pub(crate) async fn start(server: &Arc<Server>) {
    let mut state = Controllers::default();
    let mut position = state.start(server).await;
    if let Err(error) = bootstrap::run(server).await {
        tracing::error!(%error, "cannot make what every cluster has");
    }
    // The default account is part of what every cluster has: without it the first pod would be refused.
    while state.catch_up(server, &mut position).await {}
    tokio::spawn(run(Arc::downgrade(server), state, position));
}

async fn run(server: Weak<Server>, mut state: Controllers, mut position: Revision) {
    let Some(strong) = server.upgrade() else { return };
    let mut changes = strong.store.changes();
    drop(strong);
    loop {
        let Some(strong) = server.upgrade() else { return };
        if state.catch_up(&strong, &mut position).await {
            continue;
        }
        let retrying = state.is_retrying();
        drop(strong);
        tokio::select! {
            biased;
            more = changes.changed() => if more.is_err() { return },
            () = tokio::time::sleep(RETRY), if retrying => state.due = true,
        }
    }
}

#[derive(Default)]
struct Controllers {
    garbage: garbage::Garbage,
    namespaces: namespaces::Namespaces,
    definitions: definitions::Definitions,
    protection: protection::Protection,
    /// Something failed and its time has come.
    due: bool,
}

impl Controllers {
    /// Takes in the state as it is; tells the revision of it.
    async fn start(&mut self, server: &Arc<Server>) -> Revision {
        let revision = server.store.revision();
        // Definitions first: what the other collections hold is only known once their kinds are.
        let mut collections = server.store.collections();
        collections.sort_by_key(|id| (id.parts().1 != "customresourcedefinitions", id.clone()));
        for id in collections {
            let Ok(listing) = server.store.list(&id, None, Some(revision), None) else { continue };
            for object in listing.items {
                self.see(server, &id, &object);
            }
            if id.parts().1 == "customresourcedefinitions" {
                self.definitions.act(server).await;
            }
        }
        self.act(server).await;
        revision
    }

    /// Observes what has happened since, and does what follows from it; false if there was nothing.
    async fn catch_up(&mut self, server: &Arc<Server>, position: &mut Revision) -> bool {
        let Ok(events) = server.store.events_after(*position) else {
            // Too far behind: look at everything afresh.
            *self = Controllers::default();
            *position = self.start(server).await;
            return true;
        };
        if events.is_empty() && !self.due {
            return false;
        }
        for (id, event) in &events {
            *position = event.revision;
            self.observe(server, id, event);
        }
        self.due = false;
        self.act(server).await;
        true
    }

    fn observe(&mut self, server: &Arc<Server>, id: &CollectionId, event: &Event) {
        if event.kind() == "DELETED" {
            self.garbage.forget(id, &event.object);
            self.namespaces.gone(id, &event.object);
            self.definitions.gone(server, id, &event.object);
            self.protection.gone(id, &event.object);
        } else {
            self.see(server, id, &event.object);
        }
    }

    fn see(&mut self, _server: &Arc<Server>, id: &CollectionId, object: &Arc<Object>) {
        self.garbage.see(id, object);
        self.namespaces.see(id, object);
        self.definitions.see(id, object);
        self.protection.see(id, object);
    }

    async fn act(&mut self, server: &Arc<Server>) {
        self.definitions.act(server).await;
        self.garbage.act(server).await;
        self.namespaces.act(server).await;
        self.protection.act(server).await;
    }

    fn is_retrying(&self) -> bool {
        self.definitions.is_waiting()
            || self.garbage.is_waiting()
            || self.namespaces.is_waiting()
            || self.protection.is_waiting()
    }
}

/// Keys of one kind of work, each at most once, in order.
type Work = BTreeSet<(CollectionId, Key)>;

/// A request that a controller makes.
fn call(kind: Arc<Kind>, key: &Key, who: &str) -> Call {
    let mut headers = HeaderMap::new();
    // What kube-apiserver does itself it does under its own name.
    let agent = if who.starts_with("apiserver") { "kube-apiserver" } else { "kube-controller-manager" };
    headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    let user = User {
        name: format!("system:serviceaccount:kube-system:{who}"),
        groups: vec![
            "system:serviceaccounts".into(),
            "system:serviceaccounts:kube-system".into(),
            "system:authenticated".into(),
        ],
    };
    let mut call = Call::new(kind, Accept::default(), user, Query::default(), headers);
    call.namespace = (!key.namespace.is_empty()).then(|| key.namespace.to_string());
    call.name = Some(key.name.to_string());
    call
}

fn write_options() -> WriteOptions {
    WriteOptions { dry_run: false, field_validation: FieldValidation::Ignore, manager: None, force: None }
}

/// Creates an object; that it exists already is fine.
async fn create(
    server: &Server,
    kind: Arc<Kind>,
    key: &Key,
    object: Value,
    who: &str,
) -> Result<(), ApiError> {
    let call = call(kind, key, who);
    match write::create_object(server, &call, &write_options(), object).await {
        Err(error) if error.reason != "AlreadyExists" => Err(error),
        _ => Ok(()),
    }
}

/// A stored object, or nothing if it cannot be read, which is logged. Nothing may be done on account of that.
fn read(object: &Object) -> Option<Value> {
    object.value().inspect_err(|error| tracing::error!("{error}")).ok()
}

/// Whether an object is marked for deletion, as far as it can be read.
fn is_deleting(object: &Object) -> bool {
    read(object).is_some_and(|tree| tree.pointer("/metadata/deletionTimestamp").is_some())
}

/// Changes an object by a function of its newest state; that it is gone is fine.
async fn change(
    server: &Server,
    kind: Arc<Kind>,
    key: &Key,
    part: Part,
    who: &str,
    edit: &(dyn Fn(&mut Value) + Sync),
) -> Result<(), ApiError> {
    let call = call(kind, key, who);
    let patch = |live: &Value| {
        let mut new = live.clone();
        edit(&mut new);
        Ok(new)
    };
    match write::update(server, &call, &write_options(), part, Change::Patch(&patch), false).await {
        Err(error) if error.code != 404 => Err(error),
        _ => Ok(()),
    }
}

/// Deletes those of these objects that are not on their way out already. False if one could not be.
async fn delete_all(server: &Server, kind: &Arc<Kind>, objects: &[Arc<Object>], who: &str) -> bool {
    let mut deleted = true;
    for object in objects {
        // What cannot be read is not deleted unseen: it may have finalizers.
        let Some(tree) = read(object) else {
            deleted = false;
            continue;
        };
        if tree.pointer("/metadata/deletionTimestamp").is_none() {
            let options = DeleteOptions {
                uid: Some(text_at(&tree, "/metadata/uid").to_owned()),
                propagation: Some(Propagation::Background),
                ..DeleteOptions::default()
            };
            deleted &= delete(server, kind.clone(), &object.key, who, &options).await.is_ok();
        }
    }
    deleted
}

/// Deletes an object if it still is the one meant; that it is gone, or another, is fine.
async fn delete(
    server: &Server,
    kind: Arc<Kind>,
    key: &Key,
    who: &str,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let call = call(kind, key, who);
    match delete::delete_object(server, &call, &key.name, options).await {
        Err(error) if error.code != 404 && error.code != 409 => Err(error),
        _ => Ok(()),
    }
}
