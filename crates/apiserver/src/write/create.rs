//! Creation: by POST, or by a replacement or an apply of what is not there.

use super::track::{applied, manager_name, track};
use super::{Change, MODIFIED, TRIES, Written, commit};
use crate::admit;
use crate::allocate;
use crate::builtin::rules::Env;
use crate::builtin::rules::json::text_at;
use crate::incoming;
use crate::kind::{Custom, Kind};
use crate::options::WriteOptions;
use crate::respond::Reply;
use crate::server::{Call, Server};
use crate::status::ApiError;
use crate::store::{CollectionId, Key, Object, Refused, Require};
use crate::strategy::{self, Part};
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// How often a generated name is tried.
const NAME_TRIES: usize = 8;

/// POST of a new object.
pub(crate) async fn create(server: &Server, call: &Call) -> Result<Reply, ApiError> {
    let options = WriteOptions::read(&call.query, "CreateOptions", false)?;
    let object = incoming::object(call, &options)?;
    let written = create_object(server, call, &options, object).await?;
    written.reply(server, call, 201)
}

/// Creates an object that is decoded and defaulted already.
pub(crate) async fn create_object(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    mut object: Value,
) -> Result<Written, ApiError> {
    let kind = &*call.kind;
    refuse_while_terminating(kind, text_at(&object, "/metadata/name"))?;
    incoming::place(call, &mut object, call.name.as_deref())?;
    incoming::dedup_owners(call, &mut object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for owned_by_server in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.remove(owned_by_server);
        }
    }
    let manager = manager_name(call, options);
    track(server, kind, Part::Main, None, &mut object, &manager);
    create_tracked(server, call, options, object).await
}

/// Creates an object whose managers are recorded already.
async fn create_tracked(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    mut object: Value,
) -> Result<Written, ApiError> {
    let asked_for = text_at(&object, "/metadata/name").to_owned();
    admit::mutate(server, call, admit::Operation::Create, options.dry_run, &mut object, None).await?;
    incoming::dedup_owners(call, &mut object);
    let generated = text_at(&object, "/metadata/name").is_empty()
        && !text_at(&object, "/metadata/generateName").is_empty();
    let mut tries = if generated { NAME_TRIES } else { 1 };
    loop {
        tries -= 1;
        let last = tries == 0;
        let candidate = if last { std::mem::take(&mut object) } else { object.clone() };
        match try_create(server, call, options, &asked_for, candidate).await {
            Err(error) if error.reason == "AlreadyExists" && generated && !last => {}
            other => return other,
        }
    }
}

async fn try_create(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    asked_for: &str,
    mut object: Value,
) -> Result<Written, ApiError> {
    let kind = &*call.kind;
    let uid = || server.uid();
    let env = Env { now: server.clock.now(), uid: &uid, dry_run: options.dry_run };
    begin(server, &mut object);
    strategy::prepare_create(kind, &mut object, &env);
    if !allocate::is_service(kind) {
        let stored = store_new(server, call, options, asked_for, &mut object).await?;
        // It claims nothing that could be taken.
        return stored.ok_or_else(|| ApiError::internal("another object has what this one needs"));
    }
    for _ in 0..TRIES {
        let mut candidate = object.clone();
        allocate::on_create(server, &mut candidate, options.dry_run)?;
        if let Some(stored) = store_new(server, call, options, asked_for, &mut candidate).await? {
            return Ok(stored);
        }
    }
    Err(ApiError::conflict(&kind.resource(), text_at(&object, "/metadata/name"), MODIFIED))
}

/// Checks and commits a prepared new object. None if another one has got what this one was given.
async fn store_new(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    asked_for: &str,
    object: &mut Value,
) -> Result<Option<Written>, ApiError> {
    let kind = &*call.kind;
    strategy::check_create(kind, object, call, server.leniency).await?;
    if let Some(builtin) = kind.builtin() {
        for warning in (builtin.rules.warnings)(object, None) {
            call.warn(warning);
        }
    }
    // Whatever a webhook has made of it, the request is for the name that the client gave, if any.
    admit::validate(server, call, asked_for, admit::Operation::Create, options.dry_run, (object, None))
        .await?;
    let name = text_at(object, "/metadata/name").to_owned();
    let key = Key::new(call.namespace(), &name);
    if options.dry_run {
        // kube-apiserver looks at the version only when it writes, so that a dry run shows it as it was sent.
        if server.store.get(&kind.collection, &key).is_some() {
            return Err(ApiError::already_exists(&kind.resource(), &name));
        }
        return Ok(Some(Written::DryRun(object.take())));
    }
    if !text_at(object, "/metadata/resourceVersion").is_empty() {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(ApiError::plain(500, "", why));
    }
    loop {
        let error = match commit_new(server, call, &key, object).await {
            Ok(stored) => return Ok(Some(Written::Stored(stored))),
            Err(Refused::Changed(found)) => {
                let mut error = ApiError::already_exists(&kind.resource(), &name);
                let found = found.map(|found| found.value()).transpose()?;
                if found.is_some_and(|found| found.pointer("/metadata/deletionTimestamp").is_some()) {
                    error.message = format!("object is being deleted: {}", error.message);
                }
                error
            }
            // The namespace or the CRD has changed since it was looked at. Should it have changed again, this goes on.
            Err(Refused::Unmet) => {
                admit::check_namespace(server, call, admit::Operation::Create, object)?;
                refuse_without_definition(server, kind, &name)?;
                continue;
            }
            Err(Refused::Taken) => return Ok(None),
            Err(refused) => refused.into(),
        };
        return Err(error);
    }
}

static NAMESPACES: LazyLock<CollectionId> = LazyLock::new(|| CollectionId::new("", "namespaces"));
static DEFINITIONS: LazyLock<CollectionId> =
    LazyLock::new(|| CollectionId::new("apiextensions.k8s.io", "customresourcedefinitions"));

/// Stores a new object if, at that moment, its namespace and its CRD are there to stay.
async fn commit_new(
    server: &Server,
    call: &Call,
    key: &Key,
    object: &mut Value,
) -> Result<Arc<Object>, Refused> {
    let kind = &*call.kind;
    let stays = |namespace: Option<&Object>| {
        namespace.is_some_and(|o| admit::is_terminating(o).is_ok_and(|terminating| !terminating))
    };
    let serves = |definition: Option<&Object>| {
        definition.zip(kind.custom()).is_some_and(|(object, custom)| defines(object, custom))
    };
    let mut requires = Vec::new();
    if let Some(name) = call.namespace.as_deref() {
        requires.push(Require { id: &NAMESPACES, key: Key::new("", name), check: &stays });
    }
    if let Some(custom) = kind.custom() {
        requires.push(Require { id: &DEFINITIONS, key: Key::new("", &custom.definition), check: &serves });
    }
    commit(server, kind, key, None, object, false, &requires).await
}

/// Whether a stored CRD is the one that a kind is made of, and not being deleted.
fn defines(object: &Object, custom: &Custom) -> bool {
    object.mentions(&custom.uid)
        && !(object.mentions("\"deletionTimestamp\"")
            && object.value().is_ok_and(|tree| tree.pointer("/metadata/deletionTimestamp").is_some()))
}

/// Refuses an object of a kind whose CRD is gone or going.
fn refuse_without_definition(server: &Server, kind: &Kind, name: &str) -> Result<(), ApiError> {
    let Some(custom) = kind.custom() else { return Ok(()) };
    match server.store.get(&DEFINITIONS, &Key::new("", &custom.definition)) {
        Some(object) if defines(&object, custom) => Ok(()),
        Some(object) if object.mentions(&custom.uid) => Err(terminating(kind, name)),
        _ => Err(ApiError::no_such_resource()),
    }
}

/// Gives a new object what makes it one.
fn begin(server: &Server, object: &mut Value) {
    let now = server.timestamp();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.insert("creationTimestamp".into(), now.into());
    metadata.insert("uid".into(), server.uid().into());
    let named = metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    if let (false, Some(prefix)) = (named, metadata.get("generateName").and_then(Value::as_str)) {
        let name = crate::builtin::rules::names::generate::generate_name(prefix, || server.identities.next());
        metadata.insert("name".into(), name.into());
    }
}

fn refuse_while_terminating(kind: &Kind, name: &str) -> Result<(), ApiError> {
    if kind.custom().is_some_and(|custom| custom.terminating) {
        return Err(terminating(kind, name));
    }
    Ok(())
}

fn terminating(kind: &Kind, name: &str) -> ApiError {
    let why = "create not allowed while custom resource definition is terminating";
    ApiError::forbidden(&kind.resource(), name, why)
}

/// Creates what was to be changed and is not there, if the change says all of it.
pub(super) async fn create_by_update(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    change: Change<'_>,
) -> Result<Written, ApiError> {
    match change {
        Change::Replace(mut object) => {
            drop_version(&mut object);
            create_object(server, call, options, object).await
        }
        Change::Apply { wanted, force } => {
            refuse_while_terminating(&call.kind, call.name())?;
            let uid = text_at(&wanted, "/metadata/uid");
            if !uid.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(ApiError::conflict(&call.kind.resource(), call.name(), &why));
            }
            let mut object = applied(server, call, options, Part::Main, None, &wanted, force)?;
            incoming::check_name(call, &object)?;
            incoming::place(call, &mut object, Some(call.name()))?;
            incoming::fit(&call.kind, &mut object, |why| ApiError::bad_request(why))?;
            strategy::default(&call.kind, &mut object)?;
            drop_version(&mut object);
            create_tracked(server, call, options, object).await
        }
        Change::Patch(_) | Change::Tracked(_) | Change::Viewed(_) => {
            Err(ApiError::not_found(&call.kind.resource(), call.name()))
        }
    }
}

/// A version is compared with something that is there. Of what is not, any version will do.
fn drop_version(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
}
