//! Create, replace and patch: from a request's body to a committed revision.
//!
//! Every write is the same sequence, and nothing is changed before its last step:
//!
//! ```text
//! decode ─▶ fit to the kind ─▶ default ─▶ record managers ─▶ mutating admission
//!        ─▶ prepare ─▶ validate ─▶ validating admission ─▶ commit if unchanged since read
//! ```
//!
//! A change computed from a state that is no longer the newest is computed again, unless the client
//! insisted on that state with a resource version; then it is refused with 409.

mod create;
mod track;

pub(crate) use create::{create, create_object};
pub(crate) use track::{manager_name, track_new, track_sent};

use crate::admit::{self, Sent};
use crate::allocate;
use crate::apply;
use crate::builtin::rules::Env;
use crate::builtin::rules::json::text_at;
use crate::field::{FieldError, Path};
use crate::incoming;
use crate::kind::Kind;
use crate::options::WriteOptions;
use crate::respond::{self, Reply};
use crate::server::{Call, Server};
use crate::status::ApiError;
use crate::store::{Fate, Key, Object, Refused, Require, Revision, Unreadable};
use crate::strategy::{self, Part};
use create::create_by_update;
use serde_json::Value;
use std::sync::Arc;
use track::{applied, track};

/// How often a write is computed again because somebody else was faster.
const TRIES: usize = 32;
const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// What a write came to.
pub(crate) enum Written {
    /// It is stored.
    Stored(Arc<Object>),
    /// It would be stored like this, were it not a dry run.
    DryRun(Value),
    /// It was the last write: the object is gone.
    Removed(Value),
}

impl Written {
    pub(crate) fn reply(&self, server: &Server, call: &Call, code: u16) -> Result<Reply, ApiError> {
        match self {
            Written::Stored(object) => {
                if call.kind.custom().is_some_and(|custom| custom.storage_schema.is_some()) {
                    // A write in a version that is not stored is answered without that version's defaults.
                    return respond::tree(call, code, &call.kind.written_tree(object)?, server.clock.now());
                }
                respond::object(call, code, object, server.clock.now())
            }
            Written::DryRun(tree) | Written::Removed(tree) => {
                respond::tree(call, code, tree, server.clock.now())
            }
        }
    }

    /// The object as a tree.
    pub(crate) fn tree(&self, kind: &Kind) -> Result<Value, Unreadable> {
        match self {
            Written::Stored(object) => kind.tree(object),
            Written::DryRun(tree) | Written::Removed(tree) => Ok(tree.clone()),
        }
    }
}

/// Makes the new state of an object from the one that is stored.
pub(crate) type Edit<'a> = &'a (dyn Fn(&Value) -> Result<Value, ApiError> + Sync);

/// How a changed object is made from the one that is stored.
pub(crate) enum Change<'a> {
    /// The client sends the whole object.
    Replace(Value),
    /// The client says what to change.
    Patch(Edit<'a>),
    /// As a patch, but the result says itself who manages what, and admission had its say in what it comes from.
    Tracked(Edit<'a>),
    /// The client writes a part as an object of its own.
    Viewed(&'a dyn View),
    /// The client says which fields it wants, and gives up those it no longer names.
    Apply {
        /// What the client applies.
        wanted: Value,
        force: bool,
    },
}

/// A part of an object that clients see and write as an object of its own.
pub(crate) trait View: Sync {
    /// What it is sent as.
    fn sent(&self) -> Sent;
    /// The part of an object.
    fn of(&self, object: &Value) -> Value;
    /// The part as it is and as the client wants it, both with their managers.
    fn propose(&self, live: &Value) -> Result<(Value, Value), ApiError>;
    /// The object with its part changed.
    fn merge(&self, live: &Value, part: &Value) -> Result<Value, ApiError>;
}

/// PUT of an object, or of a part of it.
pub(crate) async fn replace(server: &Server, call: &Call, part: Part) -> Result<Reply, ApiError> {
    let options = WriteOptions::read(&call.query, "UpdateOptions", false)?;
    let object = incoming::object(call, &options)?;
    incoming::check_name(call, &object)?;
    let creates = part == Part::Main && call.kind.builtin().is_some_and(|b| b.created_by_update);
    let (written, new) = update(server, call, &options, part, Change::Replace(object), creates).await?;
    written.reply(server, call, if new { 201 } else { 200 })
}

/// PATCH of an object, or of a part of it.
pub(crate) async fn patch(server: &Server, call: &Call, part: Part) -> Result<Reply, ApiError> {
    let form = incoming::PatchForm::of(call)?;
    let is_apply = form == incoming::PatchForm::Apply;
    let options = WriteOptions::read(&call.query, "PatchOptions", is_apply)?;
    let (written, created) = if is_apply {
        let wanted = incoming::applied(call, &options)?;
        let force = options.force.unwrap_or(false);
        update(server, call, &options, part, Change::Apply { wanted, force }, part == Part::Main).await?
    } else {
        let patch = incoming::read_patch(call, form)?;
        let apply = |live: &Value| incoming::patched(call, &options, &patch, live);
        update(server, call, &options, part, Change::Patch(&apply), false).await?
    };
    written.reply(server, call, if created { 201 } else { 200 })
}

/// Changes an object; tells whether it was created by that.
pub(crate) async fn update(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    part: Part,
    change: Change<'_>,
    creates: bool,
) -> Result<(Written, bool), ApiError> {
    let kind = &*call.kind;
    let key = Key::new(call.namespace(), call.name());
    for _ in 0..TRIES {
        let Some(stored) = server.store.get(&kind.collection, &key) else {
            if !creates {
                return Err(ApiError::not_found(&kind.resource(), call.name()));
            }
            return create_by_update(server, call, options, change).await.map(|written| (written, true));
        };
        let live = kind.tree(&stored)?;
        let (mut new, insisted) = propose(server, call, options, part, &change, &live).await?;
        incoming::place(call, &mut new, Some(call.name()))?;
        incoming::dedup_owners(call, &mut new);
        if !matches!(change, Change::Viewed(_) | Change::Tracked(_)) {
            admit::mutate(server, call, admit::Operation::Update, options.dry_run, &mut new, Some(&live))
                .await?;
        }
        refuse_stale(kind, call, &change, &new, &live)?;
        match finish(server, call, options, part, &change, (&stored, &live), new).await? {
            Finished::Written(written) => return Ok((written, false)),
            // A client that insisted on a state is told; others never notice.
            Finished::Changed if insisted => {
                return Err(ApiError::conflict(&kind.resource(), call.name(), MODIFIED));
            }
            Finished::Changed | Finished::Taken => {}
        }
    }
    Err(ApiError::conflict(&kind.resource(), call.name(), MODIFIED))
}

/// What the object shall become, with its managers recorded, and whether the client insists on the state
/// that it was computed from.
async fn propose(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    part: Part,
    change: &Change<'_>,
    live: &Value,
) -> Result<(Value, bool), ApiError> {
    let kind = &*call.kind;
    let (mut new, insisted) = match change {
        Change::Replace(object) => {
            let given = text_at(object, "/metadata/resourceVersion");
            refuse_other_uid(kind, call, object, live)?;
            (object.clone(), !given.is_empty())
        }
        Change::Patch(patch) => {
            let new = patch(live)?;
            incoming::check_patched_name(call, &new)?;
            (new, false)
        }
        Change::Tracked(edit) => {
            let mut new = edit(live)?;
            refuse_other_uid(kind, call, &new, live)?;
            keep_identity(&mut new, live);
            return Ok((new, false));
        }
        Change::Viewed(view) => {
            let (before, mut wanted) = view.propose(live)?;
            admit::mutate_sent(server, call, view.sent(), options.dry_run, &mut wanted, Some(&before))
                .await?;
            let mut new = view.merge(live, &wanted)?;
            refuse_other_uid(kind, call, &new, live)?;
            keep_identity(&mut new, live);
            return Ok((new, false));
        }
        Change::Apply { wanted, force } => {
            let given = text_at(wanted, "/metadata/resourceVersion");
            let mut new = applied(server, call, options, part, Some(live), wanted, *force)?;
            incoming::check_patched_name(call, &new)?;
            incoming::fit(kind, &mut new, |why| ApiError::bad_request(why))?;
            strategy::default_applied(kind, &mut new)?;
            return Ok((new, !given.is_empty()));
        }
    };
    let manager = manager_name(call, options);
    track(server, kind, part, Some(live), &mut new, &manager);
    Ok((new, insisted))
}

/// Refuses an object that was read at another revision than the newest, once webhooks have seen it.
fn refuse_stale(
    kind: &Kind,
    call: &Call,
    change: &Change<'_>,
    new: &Value,
    live: &Value,
) -> Result<(), ApiError> {
    let given = text_at(new, "/metadata/resourceVersion");
    let conditional = !kind.builtin().is_some_and(|b| b.unconditional_update);
    if given.is_empty() && conditional && matches!(change, Change::Replace(_)) {
        let metadata = Path::of("metadata");
        let path = metadata.field("resourceVersion");
        let error = FieldError::invalid(&path, &0.into(), "must be specified for an update");
        return Err(ApiError::invalid(&kind.resource(), call.name(), &[error]));
    }
    if given.is_empty() || given == text_at(live, "/metadata/resourceVersion") {
        return Ok(());
    }
    Err(ApiError::conflict(&kind.resource(), call.name(), MODIFIED))
}

/// Refuses a replacement that is meant for another object of the name.
fn refuse_other_uid(kind: &Kind, call: &Call, new: &Value, live: &Value) -> Result<(), ApiError> {
    let (uid, found) = (text_at(new, "/metadata/uid"), text_at(live, "/metadata/uid"));
    if uid.is_empty() || uid == found {
        return Ok(());
    }
    let group = if kind.group.is_empty() { String::new() } else { format!("{}/", kind.group) };
    let namespace = if kind.namespaced { format!("{}/", call.namespace()) } else { String::new() };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{namespace}{}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {found}",
        kind.plural,
        call.name()
    );
    Err(ApiError::conflict(&kind.resource(), call.name(), &why))
}

/// What no client can change: identity and the course of a deletion.
fn keep_identity(new: &mut Value, live: &Value) {
    let (Some(new), Some(live)) =
        (new.get_mut("metadata").and_then(Value::as_object_mut), live.get("metadata"))
    else {
        return;
    };
    if new.get("uid").and_then(Value::as_str).unwrap_or_default().is_empty() {
        new.insert("uid".into(), live["uid"].clone());
    }
    match live.get("generation") {
        Some(value) => new.insert("generation".into(), value.clone()),
        None => new.remove("generation"),
    };
    new.remove("selfLink");
    for kept in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = live.get(kept) {
            new.insert(kept.into(), value.clone());
        }
    }
    if let (Some(value), false) =
        (live.get("deletionGracePeriodSeconds"), new.contains_key("deletionGracePeriodSeconds"))
    {
        new.insert("deletionGracePeriodSeconds".into(), value.clone());
    }
}

/// What became of a proposed state.
enum Finished {
    Written(Written),
    /// Somebody else was faster.
    Changed,
    /// Another object has got what this one was given.
    Taken,
}

/// Prepares, checks and commits a proposed state.
async fn finish(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    part: Part,
    change: &Change<'_>,
    (stored, live): (&Arc<Object>, &Value),
    mut new: Value,
) -> Result<Finished, ApiError> {
    let kind = &*call.kind;
    let uid = || server.uid();
    let env = Env { now: server.clock.now(), uid: &uid, dry_run: options.dry_run };
    keep_identity(&mut new, live);
    strategy::prepare_update(kind, part, &mut new, live, &env);
    if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".into(), stored.revision.to_string().into());
    }
    allocate::on_update(server, kind, &mut new, live, options.dry_run)?;
    strategy::check_update(kind, part, &new, live, call, server.leniency).await?;
    if let (Part::Main, Some(builtin)) = (part, kind.builtin()) {
        for warning in (builtin.rules.warnings)(&new, Some(live)) {
            call.warn(warning);
        }
    }
    match change {
        Change::Tracked(_) => {}
        Change::Viewed(view) => {
            let (sent, before, part) = (view.sent(), view.of(live), view.of(&new));
            admit::validate_sent(server, call, sent, options.dry_run, &part, Some(&before)).await?;
        }
        Change::Replace(_) | Change::Patch(_) | Change::Apply { .. } => {
            let objects = (&new, Some(live));
            admit::validate(server, call, call.name(), admit::Operation::Update, options.dry_run, objects)
                .await?;
        }
    }
    if options.dry_run {
        return Ok(Finished::Written(Written::DryRun(new)));
    }
    apply::keep_times(live, &mut new);
    if new == *live {
        return Ok(Finished::Written(Written::Stored(stored.clone())));
    }
    // A write that takes away the last thing that held a deleted object removes it. The answer is the object
    // as written, while watches show it as it was last stored.
    let expected = Some(stored.revision);
    if crate::delete::is_complete(kind, &new) {
        let last = stored.value()?;
        let removed =
            server.store.commit(&kind.collection, &stored.key, expected, &last, Fate::Removed).await;
        return finished(removed.map(|_| Written::Removed(new)));
    }
    let keeps_managers = matches!(change, Change::Apply { .. });
    let stored = commit(server, kind, &stored.key, expected, &mut new, keeps_managers, &[]).await;
    finished(stored.map(Written::Stored))
}

/// What a commit comes to for a write that can begin again.
fn finished(committed: Result<Written, Refused>) -> Result<Finished, ApiError> {
    match committed {
        Ok(written) => Ok(Finished::Written(written)),
        Err(Refused::Changed(_)) => Ok(Finished::Changed),
        Err(Refused::Taken | Refused::Unmet) => Ok(Finished::Taken),
        Err(refused) => Err(refused.into()),
    }
}

/// Commits a state. One that is too large is stored without its managers, if that helps and it is not them that the write is
/// about.
async fn commit(
    server: &Server,
    kind: &Kind,
    key: &Key,
    expected: Option<Revision>,
    object: &mut Value,
    keeps_managers: bool,
    requires: &[Require<'_>],
) -> Result<Arc<Object>, Refused> {
    let id = &kind.collection;
    let first = server.store.commit_if(id, key, expected, &kind.stored(object), Fate::Kept, requires).await;
    let Err(Refused::TooLarge) = first else { return first };
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut).filter(|_| !keeps_managers);
    match metadata.and_then(|metadata| metadata.remove("managedFields")) {
        Some(_) => {
            server.store.commit_if(id, key, expected, &kind.stored(object), Fate::Kept, requires).await
        }
        None => Err(Refused::TooLarge),
    }
}
