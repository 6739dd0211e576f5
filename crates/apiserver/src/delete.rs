//! Deletion: preconditions, grace periods, finalizers and propagation.
//!
//! An object with finalizers, or with a grace period, is only marked; it is removed by the write that
//! takes the last finalizer away, or by a deletion with no grace. Dependents are not touched here: the
//! garbage collector sees the owner go.

mod decide;
mod outline;

pub(crate) use decide::is_complete;
pub(crate) use outline::outline;

use crate::admit;
use crate::builtin::rules::json::text_at;
use crate::field::{FieldError, Path};
use crate::incoming;
use crate::kind::Kind;
use crate::options::{self, ListOptions};
use crate::read;
use crate::respond::{self, Reply};
use crate::server::{Call, Server};
use crate::status::{ApiError, Subject};
use crate::store::{Fate, Key, Object, Refused};
use decide::{Decision, ORPHANED_PODS, decide, is_decided_on_metadata, orphans_by_default};
use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::sync::Arc;

/// The deletions of a collection that are under way at one time: they share the disk's waits, and those for webhooks overlap.
const DELETIONS_AT_ONCE: usize = 32;

/// What becomes of an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// `DeleteOptions`, checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub grace_seconds: Option<i64>,
    pub uid: Option<String>,
    pub version: Option<String>,
    pub propagation: Option<Propagation>,
    /// The client used the old `orphanDependents: false`, which is answered with 202.
    pub accepted_code: bool,
    pub dry_run: bool,
    /// Admission had its say in the request that this deletion is part of.
    pub admitted: bool,
    /// As received, for admission webhooks.
    pub raw: Value,
}

impl DeleteOptions {
    /// From a request's body, or from its query when it has none.
    pub(crate) fn read(call: &Call) -> Result<DeleteOptions, ApiError> {
        if call.body.is_empty() {
            let query = &call.query;
            let grace = query.number("gracePeriodSeconds").map_err(ApiError::bad_request)?;
            let mut given = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
            let text = |value: &str| Value::from(value);
            for (field, value) in [
                ("gracePeriodSeconds", grace.map(Value::from)),
                ("orphanDependents", query.flag("orphanDependents").map(Value::from)),
                ("propagationPolicy", query.get("propagationPolicy").map(text)),
                ("dryRun", (!query.all("dryRun").is_empty()).then(|| json!(query.all("dryRun")))),
            ] {
                if let Some(value) = value {
                    given[field] = value;
                }
            }
            return DeleteOptions::check(given);
        }
        DeleteOptions::check(incoming::delete_options(call)?)
    }

    fn check(raw: Value) -> Result<DeleteOptions, ApiError> {
        let mut errors = Vec::new();
        let orphan = raw.get("orphanDependents").and_then(Value::as_bool);
        let policy = raw.get("propagationPolicy").and_then(Value::as_str);
        let propagation = match policy {
            None => None,
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let path = Path::of("propagationPolicy");
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, &other.into(), &supported));
                None
            }
        };
        if let (Some(_), Some(policy)) = (orphan, policy) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&Path::of("propagationPolicy"), &policy.into(), why));
        }
        let dry: Vec<&str> = raw
            .get("dryRun")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let dry_run = options::dry_run(&dry, &mut errors);
        if !errors.is_empty() {
            let subject = Subject { group: "meta.k8s.io", kind: "DeleteOptions" };
            return Err(ApiError::invalid(&subject, "", &errors));
        }
        let propagation = match orphan {
            Some(true) => Some(Propagation::Orphan),
            Some(false) => Some(Propagation::Foreground),
            None => propagation,
        };
        let precondition = |pointer| raw.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Ok(DeleteOptions {
            grace_seconds: raw
                .get("gracePeriodSeconds")
                .and_then(Value::as_i64)
                .map(|s| if s < 0 { 1 } else { s }),
            uid: precondition("/preconditions/uid"),
            version: precondition("/preconditions/resourceVersion"),
            propagation,
            accepted_code: orphan == Some(false),
            dry_run,
            admitted: false,
            raw,
        })
    }
}

/// What a deletion came to.
pub(crate) enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Arc<Object>),
    /// It is marked and waits for finalizers, or for its grace period.
    Marked(Arc<Object>),
    /// A dry run: it would look like this, and would be gone or not.
    DryRun(Value, bool),
}

/// DELETE of one object.
pub(crate) async fn delete(server: &Server, call: &Call) -> Result<Reply, ApiError> {
    let options = DeleteOptions::read(call)?;
    let deleted = delete_object(server, call, call.name(), &options).await?;
    let now = server.clock.now();
    let marked_code = if options.accepted_code { 202 } else { 200 };
    let (object, gone, code) = match &deleted {
        Deleted::Gone(object) => (call.kind.tree(object)?, true, 200),
        Deleted::Marked(object) => (call.kind.tree(object)?, false, marked_code),
        Deleted::DryRun(tree, gone) => (tree.clone(), *gone, 200),
    };
    if gone && !call.kind.builtin().is_some_and(|b| b.returns_deleted) {
        return Ok(respond::encode(call.accept, 200, &success(&call.kind, &object)));
    }
    respond::tree(call, code, &object, now)
}

fn success(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({
        "name": text_at(object, "/metadata/name"),
        "kind": kind.plural,
        "uid": text_at(object, "/metadata/uid"),
    });
    if !kind.group.is_empty() {
        details["group"] = kind.group.as_str().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// DELETE of everything a selection names.
pub(crate) async fn delete_collection(server: &Server, call: &Call) -> Result<Reply, ApiError> {
    let list_options = ListOptions::read(&call.query, &call.kind, None)?;
    let options = DeleteOptions::read(call)?;
    let page = read::select(server, call, &list_options)?;
    let mut deletions = Vec::with_capacity(page.items.len());
    for object in &page.items {
        deletions.push(delete_key(server, call, &object.key, &options).boxed());
    }
    let mut deletions = futures::stream::iter(deletions).buffered(DELETIONS_AT_ONCE);
    while let Some(deleted) = deletions.next().await {
        match deleted {
            Err(error) if error.code != 404 => return Err(error),
            _ => {}
        }
    }
    drop(deletions);
    respond::list(call, &page.items, &page.meta, server.clock.now())
}

/// Deletes, or marks for deletion, one object.
pub(crate) async fn delete_object(
    server: &Server,
    call: &Call,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    delete_key(server, call, &Key::new(call.namespace(), name), options).await
}

async fn delete_key(
    server: &Server,
    call: &Call,
    key: &Key,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    let kind = &*call.kind;
    let mut marked = false;
    loop {
        let Some(stored) = server.store.get(&kind.collection, key) else {
            return Err(ApiError::not_found(&kind.resource(), &key.name));
        };
        let (live, unreadable) = match kind.tree(&stored) {
            Err(error) if is_decided_on_metadata(kind) => (outline(&stored)?, Some(error)),
            tree => (tree?, None),
        };
        // Our own mark is no change that a precondition speaks of.
        if !marked {
            check_preconditions(kind, &live, options)?;
            if !options.admitted {
                admit::delete(server, call, key, options, &live).await?;
            }
        }
        if orphans_by_default(kind) && options.propagation.is_none() {
            call.warn(ORPHANED_PODS);
        }
        let decision = decide(kind, live.clone(), options, server.clock.now());
        // What cannot be read cannot be marked. If nothing holds it, it can go.
        if let (Some(error), false) = (unreadable, matches!(decision, Decision::Remove(_))) {
            return Err(error.into());
        }
        let (tree, fate) = match decision {
            Decision::Nothing => return Ok(Deleted::Marked(stored)),
            Decision::Mark(tree) if tree == live => return Ok(Deleted::Marked(stored)),
            Decision::MarkThenRemove(tree) if !options.dry_run => {
                // The mark is a write of its own, which watches see; the next round removes.
                let expected = Some(stored.revision);
                match server.store.commit(&kind.collection, key, expected, &tree, Fate::Kept).await {
                    Ok(_) => marked = true,
                    Err(Refused::Changed(_) | Refused::Taken | Refused::Unmet) => {}
                    Err(refused) => return Err(refused.into()),
                }
                continue;
            }
            Decision::MarkThenRemove(tree) | Decision::Remove(tree) => (tree, Fate::Removed),
            Decision::Mark(tree) => (tree, Fate::Kept),
        };
        if options.dry_run {
            return Ok(Deleted::DryRun(tree, fate == Fate::Removed));
        }
        let expected = Some(stored.revision);
        match server.store.commit(&kind.collection, key, expected, &kind.stored(&tree), fate).await {
            Ok(object) if fate == Fate::Removed => return Ok(Deleted::Gone(object)),
            Ok(object) => return Ok(Deleted::Marked(object)),
            Err(Refused::Changed(_) | Refused::Taken | Refused::Unmet) => {}
            Err(refused) => return Err(refused.into()),
        }
    }
}

/// Refuses to delete another object, or another state of it, than the one meant.
pub(crate) fn check_preconditions(
    kind: &Kind,
    live: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let name = text_at(live, "/metadata/name");
    let conflict = |why: &str| Err(ApiError::conflict(&kind.subject(), name, why));
    let uid = text_at(live, "/metadata/uid");
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        return conflict(&format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object \
             might have been deleted and then recreated"
        ));
    }
    let version = text_at(live, "/metadata/resourceVersion");
    if let Some(wanted) = options.version.as_deref().filter(|wanted| *wanted != version) {
        return conflict(&format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictory_options_are_refused() {
        let error = DeleteOptions::check(json!({"orphanDependents": true, "propagationPolicy": "Orphan"}));
        assert_eq!(error.unwrap_err().code, 422);
        assert_eq!(DeleteOptions::check(json!({"propagationPolicy": "x"})).unwrap_err().code, 422);
    }

    #[tokio::test]
    async fn options_in_protobuf_are_of_any_group() {
        let server = crate::ApiServer::builder().build().unwrap();
        let options = |version: &str| {
            let mut names = vec![0x0a, u8::try_from(version.len()).unwrap()];
            names.extend_from_slice(version.as_bytes());
            names.extend_from_slice(b"\x12\x0dDeleteOptions");
            let mut body = b"k8s\0\x0a".to_vec();
            body.push(u8::try_from(names.len()).unwrap());
            body.extend_from_slice(&names);
            body.extend_from_slice(b"\x12\x0c\x22\x0aBackground");
            bytes::Bytes::from(body)
        };
        for version in ["v1", "apps/v1", "apiextensions.k8s.io/v1", "example.invalid/v7"] {
            let request = http::Request::delete("/apis/apps/v1/namespaces/default/deployments/a");
            let request = request.header("content-type", "application/vnd.kubernetes.protobuf");
            let body = http_body_util::Full::new(options(version));
            // There is none of that name, which is found out when the options have been read.
            assert_eq!(server.handle(request.body(body).unwrap()).await.status(), 404, "{version}");
        }
    }
}
