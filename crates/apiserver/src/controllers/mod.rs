//! The controllers that belong to the API: without them objects would not go when their owner does, nor
//! namespaces end, nor definitions become kinds.
//!
//! One task follows every change in revision order and hands it to each of them; each has a queue of its own ([`engine`]). What
//! they write goes the way of every write, admission included.
//!
//! ```text
//! store events ─▶ definitions (names, conditions, serving; empty the terminating ones)
//!              ─▶ garbage  (owner graph: delete, orphan, release)
//!              ─▶ namespaces (empty and finalize the terminating ones; default account and CA)
//!              ─▶ protection (release volumes and claims that nobody uses)
//!              ─▶ events (expire)
//! ```

mod bootstrap;
mod definitions;
mod engine;
mod events;
mod garbage;
mod namespaces;
mod protection;
mod queue;

use crate::builtin::rules::json::text_at;
use crate::delete::{self, DeleteOptions, Propagation};
use crate::kind::Kind;
use crate::negotiate::Accept;
use crate::options::{FieldValidation, WriteOptions};
use crate::request::Query;
use crate::server::{Call, Server, User};
use crate::status::ApiError;
use crate::store::{CollectionId, Key, Object};
use crate::strategy::Part;
use crate::write::{self, Change};
use engine::Engine;
use futures::{FutureExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;
use std::sync::Arc;

/// The deletions of one piece of work that are under way at one time.
const DELETIONS_AT_ONCE: usize = 20;

/// The controllers at work. They end when this is dropped.
pub(crate) struct Running(tokio::task::AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Makes what every cluster has, serves the kinds that are defined, and follows the store from there on.
pub(crate) async fn start(server: &Arc<Server>) -> Running {
    let mut engine = Engine::new(server);
    engine.load(server).await;
    if let Err(error) = bootstrap::run(server).await {
        tracing::error!(%error, "cannot make what every cluster has");
    }
    // The default account is part of what every cluster has: without it the first pod would be refused.
    engine.settle(server, usize::MAX).await;
    Running(tokio::spawn(engine.run()).abort_handle())
}

/// Where an object is.
type Place = (CollectionId, Key);

fn is_pods(id: &CollectionId) -> bool {
    id.parts() == ("", "pods")
}

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
    let mut deletions = Vec::with_capacity(objects.len());
    for object in objects {
        deletions.push(delete_one(server, kind, object, who).boxed());
    }
    let deletions = futures::stream::iter(deletions).buffer_unordered(DELETIONS_AT_ONCE);
    deletions.fold(true, async |all, deleted| all && deleted).await
}

async fn delete_one(server: &Server, kind: &Arc<Kind>, object: &Arc<Object>, who: &str) -> bool {
    let outline = delete::outline(object).inspect_err(|error| tracing::error!("{error}"));
    let Ok(tree) = outline else { return false };
    if tree.pointer("/metadata/deletionTimestamp").is_some() {
        return true;
    }
    let options = DeleteOptions {
        uid: Some(text_at(&tree, "/metadata/uid").to_owned()),
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    delete(server, kind.clone(), &object.key, who, &options).await.is_ok()
}

/// Deletes an object if it still is the one meant; that it is gone is fine. A conflict is not: the object has changed, or is
/// another, and must be looked at again.
async fn delete(
    server: &Server,
    kind: Arc<Kind>,
    key: &Key,
    who: &str,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let call = call(kind, key, who);
    match delete::delete_object(server, &call, &key.name, options).await {
        Err(error) if error.code != 404 => Err(error),
        _ => Ok(()),
    }
}
