//! Subresources: `status`, `scale`, `binding`, `eviction`, `finalize`, `ephemeralcontainers`, and those
//! that are provided or refused by name.

use crate::admit;
use crate::body::Body;
use crate::delete::{self, DeleteOptions};
use crate::kind::Kind;
use crate::options::WriteOptions;
use crate::request::Target;
use crate::respond::Reply;
use crate::server::{Call, Server, User};
use crate::status::ApiError;
use crate::strategy::Part;
use crate::subresource::{SubresourceProvider, SubresourceRequest};
use crate::write::{self, Change, text};
use crate::{incoming, read, scale};
use bytes::Bytes;
use http::{Method, Request, Response};
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers a request for a part of an object.
pub(crate) async fn answer(server: &Server, call: &Call, name: &str, method: &Method) -> Result<Reply, ApiError> {
    let first = name.split('/').next().unwrap_or(name);
    let Some(part) = call.kind.subresource(first) else { return Err(ApiError::no_such_resource()) };
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
        ("resize", "Pod") if builtin => written(server, call, Part::Other("resize"), method).await,
        ("binding", "Pod") if builtin && *method == Method::POST => bind(server, call, call.name()).await,
        ("eviction", "Pod") if builtin && *method == Method::POST => evict(server, call).await,
        _ => Err(ApiError::not_implemented(&format!(
            "{}/{} ({})",
            call.kind.plural, part.name, part.kind
        ))),
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
    let object = kind.tree(&object);
    Ok(provider.serve(SubresourceRequest { namespace, name, object, user, request }).await)
}

async fn written(server: &Server, call: &Call, part: Part, method: &Method) -> Result<Reply, ApiError> {
    match *method {
        Method::GET => read::get(server, call).await,
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
    let name = if pod.is_empty() { text(&binding, "/metadata/name").to_owned() } else { pod.to_owned() };
    admit::binding(server, &mut binding);
    crate::builtin::rules::pod::check_binding(&binding)?;
    let Some(kind) = server.registry.find("", "v1", "pods") else { return Err(ApiError::no_such_resource()) };
    let inner = call.retarget(kind, &name, None);
    let now = server.clock.now();
    let change = |live: &Value| {
        let mut new = live.clone();
        crate::builtin::rules::pod::bind(&mut new, &binding, now)?;
        Ok(new)
    };
    write::update(server, &inner, &options, Part::Other("binding"), Change::Patch(&change), false).await?;
    Ok(Reply::json(201, &created()))
}

/// POST of an `Eviction`: the pod is deleted if its disruption budget allows.
async fn evict(server: &Server, call: &Call) -> Result<Reply, ApiError> {
    let eviction = incoming::other_kind(call, "policy", "v1", "Eviction")?;
    let pod = read::find(server, call)?.value();
    let mut inner = call.retarget(call.kind.clone(), call.name(), None);
    inner.body = eviction
        .get("deleteOptions")
        .map(|options| Bytes::from(options.to_string()))
        .unwrap_or_default();
    inner.headers.remove(http::header::CONTENT_TYPE);
    let options = DeleteOptions::read(&inner)?;
    scale::spend_budget(server, call, &pod, options.dry_run).await?;
    delete::delete_object(server, &inner, call.name(), &options).await?;
    Ok(Reply::json(201, &created()))
}
