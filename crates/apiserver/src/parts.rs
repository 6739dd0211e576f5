//! Subresources: `status`, `scale`, `binding`, `eviction`, `finalize`, `ephemeralcontainers`, and those
//! that are provided or refused by name.

use crate::admit::{self, Sent};
use crate::body::Body;
use crate::builtin::rules::Env;
use crate::builtin::rules::json::text_at;
use crate::builtin::rules::pod::{self, eviction::Eviction};
use crate::delete::{self, DeleteOptions};
use crate::kind::Kind;
use crate::options::WriteOptions;
use crate::request::{Query, Target};
use crate::respond::Reply;
use crate::server::{Call, Server, User};
use crate::status::ApiError;
use crate::strategy::Part;
use crate::subresource::{SubresourceProvider, SubresourceRequest};
use crate::write::{self, Change, Written};
use crate::{incoming, read, scale};
use bytes::Bytes;
use http::{Method, Request, Response};
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers a request for a part of an object.
pub(crate) async fn answer(
    server: &Server,
    call: &Call,
    name: &str,
    method: &Method,
) -> Result<Reply, ApiError> {
    let first = name.split('/').next().unwrap_or(name);
    let Some(part) = call.kind.subresource(first) else {
        // A custom kind that could have the subresource but has it not is asked for the object.
        return Err(match (call.kind.custom(), first) {
            (Some(_), _) => ApiError::not_found(&call.kind.resource(), call.name()),
            _ => ApiError::no_such_resource(),
        });
    };
    if call.name.is_none() {
        return Err(ApiError::no_such_resource());
    }
    let kind = call.kind.kind.as_str();
    let builtin = call.kind.builtin().is_some();
    match (first, kind) {
        ("status", _) => written(server, call, Part::Status, method).await,
        ("scale", _) => scale::answer(server, call, method).await,
        ("finalize", "Namespace") => finalize(server, call, method).await,
        ("ephemeralcontainers", "Pod") if builtin => {
            written(server, call, Part::Other("ephemeralcontainers"), method).await
        }
        ("binding", "Pod") if builtin && *method == Method::POST => bind(server, call, call.name()).await,
        ("eviction", "Pod") if builtin && *method == Method::POST => evict(server, call).await,
        _ => {
            read::find(server, call)?;
            Err(ApiError::not_implemented(&format!("{}/{}", call.kind.plural, part.name)))
        }
    }
}

/// Hands a request to whoever provides the subresource.
pub(crate) async fn provided(
    server: &Server,
    kind: &Kind,
    target: &Target,
    user: User,
    provider: Arc<dyn SubresourceProvider>,
    request: Request<Bytes>,
) -> Result<Response<Body>, ApiError> {
    let namespace = target.namespace.clone().unwrap_or_default();
    let name = target.name.clone().unwrap_or_default();
    let key = crate::store::Key::new(&namespace, &name);
    let Some(object) = server.store.get(&kind.collection, &key) else {
        return Err(ApiError::not_found(&kind.resource(), &name));
    };
    let object = kind.tree(&object)?;
    Ok(provider.serve(SubresourceRequest { namespace, name, object, user, request }).await)
}

async fn written(server: &Server, call: &Call, part: Part, method: &Method) -> Result<Reply, ApiError> {
    match *method {
        Method::GET => read::get(server, call),
        Method::PUT => write::replace(server, call, part).await,
        Method::PATCH => write::patch(server, call, part).await,
        _ => Err(ApiError::no_such_resource()),
    }
}

async fn finalize(server: &Server, call: &Call, method: &Method) -> Result<Reply, ApiError> {
    if *method != Method::PUT {
        return Err(ApiError::no_such_resource());
    }
    write::replace(server, call, Part::Other("finalize")).await
}

fn created() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

/// POST of a `Binding`: the pod gets its node.
pub(crate) async fn bind(server: &Server, call: &Call, pod: &str) -> Result<Reply, ApiError> {
    let options = WriteOptions::read(&call.query, "CreateOptions", false)?;
    let mut binding = incoming::other_kind(call, "", "v1", "Binding")?;
    let name = if pod.is_empty() { text_at(&binding, "/metadata/name").to_owned() } else { pod.to_owned() };
    incoming::place(call, &mut binding, None)?;
    if let Some(kind) = server.registry.find("", "v1", "bindings") {
        write::track_sent(server, call, &options, &kind, &mut binding);
    }
    admit::binding(server, &mut binding)?;
    admit::mutate_sent(server, call, Sent::Binding, options.dry_run, &mut binding, None).await?;
    admit::validate_sent(server, call, Sent::Binding, options.dry_run, &binding, None).await?;
    let Some(kind) = server.registry.find("", "v1", "pods") else { return Err(ApiError::no_such_resource()) };
    let inner = call.retarget(kind, &name, Some("binding"));
    let uid = || server.uid();
    let env = Env { now: server.clock.now(), uid: &uid, dry_run: options.dry_run };
    let change = |live: &Value| {
        let mut new = live.clone();
        pod::binding::bind(&mut new, &binding, &env)?;
        for (given, at) in [("/metadata/uid", "uid"), ("/metadata/resourceVersion", "resourceVersion")] {
            if let Some(value) = binding.pointer(given).filter(|value| *value != "") {
                new["metadata"][at] = value.clone();
            }
        }
        Ok(new)
    };
    write::update(server, &inner, &options, Part::Other("binding"), Change::Tracked(&change), false).await?;
    Ok(Reply::json(201, &created()))
}

/// POST of an `Eviction`: the pod is deleted if its disruption budget allows.
async fn evict(server: &Server, call: &Call) -> Result<Reply, ApiError> {
    let mut eviction = incoming::other_kind(call, "policy", "v1", "Eviction")?;
    incoming::check_name(call, &eviction)?;
    incoming::place(call, &mut eviction, None)?;
    let create = WriteOptions::read(&call.query, "CreateOptions", false)?;
    admit::mutate_sent(server, call, Sent::Eviction, create.dry_run, &mut eviction, None).await?;
    admit::validate_sent(server, call, Sent::Eviction, create.dry_run, &eviction, None).await?;
    let mut inner = call.retarget(call.kind.clone(), call.name(), None);
    inner.body = eviction.get("deleteOptions").map(|o| Bytes::from(o.to_string())).unwrap_or_default();
    inner.headers.remove(http::header::CONTENT_TYPE);
    let mut options = DeleteOptions { admitted: true, ..DeleteOptions::read(&inner)? };
    let uid = || server.uid();
    let env = Env { now: server.clock.now(), uid: &uid, dry_run: options.dry_run };
    for _ in 0..EVICTION_TRIES {
        let stored = read::find(server, call)?;
        let budgets = budgets(server, call.namespace())?;
        match pod::eviction::decide(&stored.value()?, &budgets, &env)? {
            Eviction::Delete { if_unchanged } => {
                if if_unchanged && options.version.is_none() {
                    options.version = Some(stored.revision.to_string());
                }
                return finish_eviction(server, &inner, options, &env).await;
            }
            Eviction::Pay(budget) => {
                if options.dry_run || pay(server, call, budget).await? {
                    return finish_eviction(server, &inner, options, &env).await;
                }
            }
        }
    }
    Err(pod::eviction::too_many_requests(""))
}

/// How often an eviction is decided again because its budget has changed.
const EVICTION_TRIES: usize = 16;

/// Marks the pod as evicted, which whoever watches it can see, and deletes it.
async fn finish_eviction(
    server: &Server,
    call: &Call,
    mut options: DeleteOptions,
    env: &Env<'_>,
) -> Result<Reply, ApiError> {
    if !options.dry_run {
        let marked = |live: &Value| {
            delete::check_preconditions(&call.kind, live, &options)?;
            let mut pod = live.clone();
            pod::eviction::mark_evicted(&mut pod, env);
            Ok(pod)
        };
        let inner = call.retarget(call.kind.clone(), call.name(), Some("status"));
        let how = WriteOptions::read(&Query::default(), "UpdateOptions", false)?;
        let change = Change::Tracked(&marked);
        let (written, _) = write::update(server, &inner, &how, Part::Status, change, false).await?;
        if let (Some(version), Written::Stored(pod)) = (&mut options.version, &written) {
            *version = pod.revision.to_string();
        }
    }
    delete::delete_object(server, call, call.name(), &options).await?;
    Ok(Reply::json(201, &created()))
}

fn budgets(server: &Server, namespace: &str) -> Result<Vec<Value>, ApiError> {
    let id = crate::store::CollectionId::new("policy", "poddisruptionbudgets");
    let Ok(listing) = server.store.list(&id, Some(namespace), None, None) else { return Ok(Vec::new()) };
    Ok(listing.items.iter().map(|budget| budget.value()).collect::<Result<_, _>>()?)
}

/// Stores what a budget has paid. False if somebody else changed it first.
async fn pay(server: &Server, call: &Call, budget: Value) -> Result<bool, ApiError> {
    let Some(kind) = server.registry.find("policy", "v1", "poddisruptionbudgets") else { return Ok(true) };
    let inner = call.retarget(kind, text_at(&budget, "/metadata/name"), Some("status"));
    let options = WriteOptions::read(&Query::default(), "UpdateOptions", false)?;
    let mut budget = budget;
    if let Value::Object(fields) = &mut budget {
        inner.kind.stamp(fields);
    }
    match write::update(server, &inner, &options, Part::Status, Change::Replace(budget), false).await {
        Ok(_) => Ok(true),
        Err(error) if error.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}
