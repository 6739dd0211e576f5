//! Deletion: preconditions, grace periods, finalizers and propagation.
//!
//! An object with finalizers, or with a grace period, is only marked; it is removed by the write that
//! takes the last finalizer away, or by a deletion with no grace. Dependents are not touched here: the
//! garbage collector sees the owner go.

use crate::admit;
use crate::builtin::rules::objects::crd;
use crate::builtin::rules::pod::deletion::grace_period_seconds;
use crate::field::{FieldError, Path};
use crate::incoming;
use crate::kind::Kind;
use crate::options::{self, ListOptions};
use crate::read;
use crate::respond::{self, Reply};
use crate::server::{Call, Server, format_time};
use crate::status::{ApiError, Subject};
use crate::store::{Fate, Key, Object, Refused};
use crate::write::text;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

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
        Deleted::Gone(object) => {
            server.shown(object.revision).await?;
            (call.kind.tree(object), true, 200)
        }
        Deleted::Marked(object) => {
            server.shown(object.revision).await?;
            (call.kind.tree(object), false, marked_code)
        }
        Deleted::DryRun(tree, gone) => (tree.clone(), *gone, 200),
    };
    if gone && !call.kind.builtin().is_some_and(|b| b.returns_deleted) {
        return Ok(respond::encode(call.accept, 200, &success(&call.kind, &object)));
    }
    respond::tree(call, code, &object, now)
}

fn success(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({
        "name": text(object, "/metadata/name"),
        "kind": kind.plural,
        "uid": text(object, "/metadata/uid"),
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
    for object in &page.items {
        match delete_key(server, call, &object.key, &options).await {
            Ok(_) => {}
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    server.shown(server.store.revision()).await?;
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
        let live = kind.tree(&stored);
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
        let (tree, fate) = match decision {
            Decision::Nothing => return Ok(Deleted::Marked(stored)),
            Decision::Mark(tree) if tree == live => return Ok(Deleted::Marked(stored)),
            Decision::MarkThenRemove(tree) if !options.dry_run => {
                // The mark is a write of its own, which watches see; the next round removes.
                match server.store.commit(&kind.collection, key, Some(stored.revision), &tree, Fate::Kept) {
                    Ok(_) => marked = true,
                    Err(Refused::Changed(_)) => {}
                    Err(Refused::Disk(why)) => return Err(ApiError::internal(why)),
                }
                continue;
            }
            Decision::MarkThenRemove(tree) => (tree, Fate::Removed),
            Decision::Mark(tree) => (tree, Fate::Kept),
            Decision::Remove(tree) => (tree, Fate::Removed),
        };
        if options.dry_run {
            return Ok(Deleted::DryRun(tree, fate == Fate::Removed));
        }
        match server.store.commit(&kind.collection, key, Some(stored.revision), &kind.stored(&tree), fate) {
            Ok(object) if fate == Fate::Removed => return Ok(Deleted::Gone(object)),
            Ok(object) => return Ok(Deleted::Marked(object)),
            Err(Refused::Changed(_)) => {}
            Err(Refused::Disk(why)) => return Err(ApiError::internal(why)),
        }
    }
}

fn check_preconditions(kind: &Kind, live: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let name = text(live, "/metadata/name");
    let conflict = |why: &str| Err(ApiError::conflict(&kind.subject(), name, why));
    let uid = text(live, "/metadata/uid");
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        return conflict(&format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object \
             might have been deleted and then recreated"
        ));
    }
    let version = text(live, "/metadata/resourceVersion");
    if let Some(wanted) = options.version.as_deref().filter(|wanted| *wanted != version) {
        return conflict(&format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        ));
    }
    Ok(())
}

/// What a deletion does to an object.
#[derive(Debug, PartialEq)]
enum Decision {
    /// It is on its way out already.
    Nothing,
    /// It becomes this, and waits.
    Mark(Value),
    /// It is marked for good, and goes.
    MarkThenRemove(Value),
    /// It goes; this is its last state.
    Remove(Value),
}

/// Kinds whose dependents stay when a deletion does not say.
fn orphans_by_default(kind: &Kind) -> bool {
    kind.kind == "Job" && kind.builtin().is_some()
}

const ORPHANED_PODS: &str = "child pods are preserved by default when jobs are deleted; set \
     propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

fn decide(kind: &Kind, mut live: Value, options: &DeleteOptions, now: Timestamp) -> Decision {
    let deleting = live.pointer("/metadata/deletionTimestamp").is_some();
    if kind.builtin().is_some() && kind.kind == "Namespace" {
        return decide_namespace(live, options, deleting, now);
    }
    if kind.kind == "CustomResourceDefinition" && kind.builtin().is_some() && !deleting {
        set_propagation(&mut live, options.propagation);
        bump_generation(&mut live);
        live["metadata"]["deletionTimestamp"] = format_time(now).into();
        crd::begin_deletion(&mut live, &format_time(now));
        return Decision::Mark(live);
    }
    let grace = if kind.builtin().is_some() && kind.kind == "Pod" {
        match pod_grace(&mut live, options, deleting, now) {
            Grace::Pending => return Decision::Nothing,
            Grace::Marked(seconds) => Some(seconds),
            Grace::None => None,
        }
    } else {
        None
    };
    let held = finalizers(&live).iter().any(|f| f == ORPHAN || f == FOREGROUND);
    let orphans = orphans_by_default(kind) && !held;
    set_propagation(&mut live, options.propagation.or(orphans.then_some(Propagation::Orphan)));
    let waits = !finalizers(&live).is_empty();
    match grace {
        Some(seconds) if seconds > 0 || waits => Decision::Mark(live),
        Some(_) => Decision::MarkThenRemove(live),
        None if waits
            && deleting
            && live.pointer("/metadata/deletionGracePeriodSeconds") == Some(&json!(0)) =>
        {
            Decision::Mark(live)
        }
        None if waits => {
            mark(&mut live, now);
            Decision::Mark(live)
        }
        None => Decision::Remove(live),
    }
}

fn decide_namespace(mut live: Value, options: &DeleteOptions, deleting: bool, now: Timestamp) -> Decision {
    if !deleting {
        live["metadata"]["deletionTimestamp"] = format_time(now).into();
        live["status"]["phase"] = "Terminating".into();
        set_propagation(&mut live, options.propagation);
        return Decision::Mark(live);
    }
    let held = live.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty());
    if held || !finalizers(&live).is_empty() { Decision::Nothing } else { Decision::Remove(live) }
}

enum Grace {
    /// Nothing graceful about it.
    None,
    /// A shorter or equal grace period is running.
    Pending,
    /// The object is marked with this many seconds.
    Marked(i64),
}

/// The course of a pod's graceful deletion: only ever shortened once it has begun.
fn pod_grace(live: &mut Value, options: &DeleteOptions, deleting: bool, now: Timestamp) -> Grace {
    let running = live.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    if deleting {
        let Some(running) = running.filter(|seconds| *seconds != 0) else { return Grace::None };
        let Some(mut period) = options.grace_seconds else { return Grace::Pending };
        if period >= running {
            return Grace::Pending;
        }
        let until: Timestamp = text(live, "/metadata/deletionTimestamp").parse().unwrap_or(now);
        let mut moved = until + SignedDuration::from_secs(period - running);
        if moved < now {
            moved = now;
            if period != 0 {
                period = 1;
            }
        }
        live["metadata"]["deletionTimestamp"] = format_time(moved).into();
        live["metadata"]["deletionGracePeriodSeconds"] = period.into();
        return Grace::Marked(period);
    }
    let period = grace_period_seconds(live, options.grace_seconds);
    live["metadata"]["deletionTimestamp"] = format_time(now + SignedDuration::from_secs(period)).into();
    live["metadata"]["deletionGracePeriodSeconds"] = period.into();
    bump_generation(live);
    Grace::Marked(period)
}

fn mark(object: &mut Value, now: Timestamp) {
    if object.pointer("/metadata/deletionTimestamp").is_none() {
        bump_generation(object);
        object["metadata"]["deletionTimestamp"] = format_time(now).into();
    }
    object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
}

fn bump_generation(object: &mut Value) {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    if generation > 0 {
        object["metadata"]["generation"] = (generation + 1).into();
    }
}

fn finalizers(object: &Value) -> &[Value] {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Writes a propagation policy down as the finalizer that the garbage collector acts on.
fn set_propagation(object: &mut Value, propagation: Option<Propagation>) {
    let has = |name: &str| finalizers(object).iter().any(|f| f == name);
    let (orphan, foreground) = match propagation {
        Some(policy) => (policy == Propagation::Orphan, policy == Propagation::Foreground),
        None => (has(ORPHAN), has(FOREGROUND)),
    };
    if orphan == has(ORPHAN) && foreground == has(FOREGROUND) {
        return;
    }
    let mut kept: Vec<Value> =
        finalizers(object).iter().filter(|f| *f != ORPHAN && *f != FOREGROUND).cloned().collect();
    kept.extend(orphan.then(|| ORPHAN.into()));
    kept.extend(foreground.then(|| FOREGROUND.into()));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        if kept.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".into(), kept.into());
        }
    }
}

/// Whether nothing keeps a marked object any longer, so that the write of this state removes it.
pub(crate) fn is_complete(kind: &Kind, object: &Value) -> bool {
    let marked = object.pointer("/metadata/deletionTimestamp").is_some();
    let held_namespace = kind.builtin().is_some()
        && kind.kind == "Namespace"
        && object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty());
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    marked && finalizers(object).is_empty() && grace == 0 && !held_namespace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn propagation_becomes_a_finalizer_and_replaces_the_other() {
        let mut object = json!({"metadata": {"finalizers": ["a/b", "orphan"]}});
        set_propagation(&mut object, Some(Propagation::Foreground));
        assert_eq!(object["metadata"]["finalizers"], json!(["a/b", "foregroundDeletion"]));
        set_propagation(&mut object, None);
        assert_eq!(object["metadata"]["finalizers"], json!(["a/b", "foregroundDeletion"]));
        set_propagation(&mut object, Some(Propagation::Background));
        assert_eq!(object["metadata"]["finalizers"], json!(["a/b"]));
    }

    #[test]
    fn contradictory_options_are_refused() {
        let error = DeleteOptions::check(json!({"orphanDependents": true, "propagationPolicy": "Orphan"}));
        assert_eq!(error.unwrap_err().code, 422);
        assert_eq!(DeleteOptions::check(json!({"propagationPolicy": "x"})).unwrap_err().code, 422);
    }
}
