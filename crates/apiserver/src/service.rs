//! From an HTTP request to the handler that answers it.

pub(crate) mod body;

use crate::body::Body;
use crate::builtin::rules::objects::endpoints::DEPRECATED;
use crate::kind::Kind;
use crate::negotiate;
use crate::options::ListOptions;
use crate::request::{Path, Query, Target};
use crate::respond::Reply;
use crate::server::{Call, Server, User};
use crate::status::ApiError;
use crate::store::panic_text;
use crate::strategy::Part;
use crate::{delete, endpoints, parts, read, review, watch, write};
use bytes::Bytes;
use futures::FutureExt as _;
use http::{Method, Request, Response};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Answers one request. One that panics is answered with 500, and others do not notice.
pub(crate) async fn handle<B>(server: Arc<Server>, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let (method, uri) = (request.method().clone(), request.uri().clone());
    // Locks are taken over from whoever panicked while holding them, and every write is one commit.
    let answer = AssertUnwindSafe(answer_any(server, request)).catch_unwind().await;
    answer.unwrap_or_else(|panic| {
        tracing::error!(%method, path = uri.path(), "a request ended with {}", panic_text(&*panic));
        Reply::error(&ApiError::internal("the request caused a panic; the log says which")).into_response()
    })
}

async fn answer_any<B>(server: Arc<Server>, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let (head, body) = request.into_parts();
    let path = Path::parse(head.uri.path());
    if let Path::Other(parts) = &path {
        // None of these has a use for a body, and some are for everybody, so it is not read.
        let request = Request::from_parts(head, Bytes::new());
        let answer = check(&path, &request).and_then(|_| endpoints::answer(&server, parts, &request));
        return answer.unwrap_or_else(|error| Reply::error(&error).into_response());
    }
    let body = match body::read(&server.bodies, body).await {
        Ok(body) => body,
        Err(error) => return Reply::error(&error).into_response(),
    };
    let request = Request::from_parts(head, body.bytes.clone());
    let answer = answer(server.clone(), path, request).await;
    answer.unwrap_or_else(|error| Reply::error(&error).into_response())
}

/// What no request may have, whatever it is for. Gives its query.
fn check(path: &Path, request: &Request<Bytes>) -> Result<Query, ApiError> {
    if request.headers().contains_key("impersonate-user") {
        return Err(ApiError::not_implemented("impersonation (the Impersonate-User header)"));
    }
    let query = Query::parse(request.uri().query());
    check_timeout(path, &query)?;
    Ok(query)
}

async fn answer(
    server: Arc<Server>,
    path: Path,
    request: Request<Bytes>,
) -> Result<Response<Body>, ApiError> {
    let query = check(&path, &request)?;
    let target = match path {
        Path::Other(parts) => return endpoints::answer(&server, &parts, &request),
        Path::Resource(target) => target,
    };
    let kind = match find(&server, &target, request.method()) {
        Ok(kind) => kind,
        Err(error) if error.code == 404 && !endpoints::is_known_group(&target.group) => {
            return Ok(endpoints::not_found().into_response());
        }
        Err(error) => return Err(error),
    };
    let user = request.extensions().get::<User>().cloned().unwrap_or_else(User::admin);
    if let Some(name) = &target.subresource
        && let Some(provider) =
            server.providers.get(&kind.group, &kind.plural, name.split('/').next().unwrap_or(name))
    {
        return parts::provided(&server, &kind, &target, user, provider, request).await;
    }
    let mut accept = negotiate::accept(request.headers(), has_table(&kind, &target))?;
    let by_hand = |agent: &str| ["curl", "Wget", "Mozilla/5.0"].iter().any(|tool| agent.starts_with(tool));
    let agent = request.headers().get("user-agent").and_then(|h| h.to_str().ok()).unwrap_or_default();
    accept.pretty = query.flag("pretty").unwrap_or_else(|| by_hand(agent));
    let (head, body) = request.into_parts();
    let mut call = Call::new(kind, accept, user, query, head.headers);
    call.namespace = target.namespace.clone();
    call.name = target.name.clone();
    call.subresource = target.subresource.clone();
    call.body = body;
    if call.kind.kind == "Endpoints" && call.kind.builtin().is_some() {
        call.warn(DEPRECATED);
    }
    if let Some(custom) = call.kind.custom()
        && let Some(warning) = &custom.deprecation
    {
        call.warn(warning.clone());
    }
    dispatch(server, call, head.method, target.watch).await
}

/// Whether what a URL names can be shown in a table: not what is answered and not kept.
fn has_table(kind: &Kind, target: &Target) -> bool {
    let part = target.subresource.as_deref();
    let passing = review::review(kind).is_some() || (kind.kind == "Binding" && kind.builtin().is_some());
    !passing && !matches!(part, Some("binding" | "eviction" | "token"))
}

/// Refuses a `timeout` that is no duration, as long as the request is not one that goes on by itself.
fn check_timeout(path: &Path, query: &Query) -> Result<(), ApiError> {
    let endless = match path {
        Path::Other(_) => false,
        Path::Resource(target) => {
            let part = target.subresource.as_deref().and_then(|part| part.split('/').next());
            target.watch
                || query.flag("watch") == Some(true)
                || matches!(part, Some("log" | "exec" | "attach" | "portforward" | "proxy"))
        }
    };
    match query.get("timeout") {
        Some(text) if !endless => crate::schedule::read_duration(text).map(drop).map_err(|why| {
            ApiError::bad_request(format!("invalid timeout specified in the request URL - {why}"))
        }),
        _ => Ok(()),
    }
}

/// The kind that a URL names, if it is served there.
fn find(server: &Server, target: &Target, method: &Method) -> Result<Arc<Kind>, ApiError> {
    let found = server.registry.find(&target.group, &target.version, &target.resource);
    let Some(kind) = found else {
        return Err(match endpoints::known_but_absent(target, method) {
            Some(error) => error,
            None => ApiError::no_such_resource(),
        });
    };
    let across_namespaces = target.namespace.is_none() && target.name.is_none() && *method == Method::GET;
    let placed = kind.namespaced == target.namespace.is_some() || (kind.namespaced && across_namespaces);
    let across_delete = kind.namespaced && target.namespace.is_none() && target.name.is_none();
    if placed {
        Ok(kind)
    } else if across_delete {
        Err(method_not_allowed())
    } else {
        Err(ApiError::no_such_resource())
    }
}

pub(crate) fn method_not_allowed() -> ApiError {
    let message = "the server does not allow this method on the requested resource";
    let mut error = ApiError::plain(405, "MethodNotAllowed", message);
    error.details = Some(Box::default());
    error
}

async fn dispatch(
    server: Arc<Server>,
    mut call: Call,
    method: Method,
    watch_path: bool,
) -> Result<Response<Body>, ApiError> {
    if let Some(name) = call.subresource.clone() {
        let reply = parts::answer(&server, &call, &name, &method).await;
        return Ok(finish(&call, reply));
    }
    if let Some(review) = review::review(&call.kind) {
        let reply = review::answer(&server, &call, review, &method);
        return Ok(finish(&call, reply));
    }
    if call.kind.kind == "Binding" && call.kind.builtin().is_some() {
        let reply = if method == Method::POST {
            parts::bind(&server, &call, "").await
        } else {
            Err(method_not_allowed())
        };
        return Ok(finish(&call, reply));
    }
    let verb = verb(&method, call.name.is_some(), watch_path).ok_or_else(method_not_allowed)?;
    let listed = if verb == "list" && call.query.flag("watch") == Some(true) { "watch" } else { verb };
    if !call.kind.verbs.iter().any(|v| v == listed) {
        return Err(method_not_allowed());
    }
    let reply = match verb {
        "get" => read::get(&server, &call),
        "list" | "watch" => {
            let name = if watch_path { call.name.take() } else { None };
            let mut options = ListOptions::read(&call.query, &call.kind, name.as_deref())?;
            options.watch |= watch_path;
            if options.watch {
                let warnings = call.take_warnings();
                let mut reply = watch::watch(server, call, options)?;
                reply.warnings = warnings;
                return Ok(reply.into_response());
            }
            read::list(&server, &call, &options)
        }
        "create" => write::create(&server, &call).await,
        "update" => write::replace(&server, &call, Part::Main).await,
        "patch" => write::patch(&server, &call, Part::Main).await,
        "delete" => delete::delete(&server, &call).await,
        _ => delete::delete_collection(&server, &call).await,
    };
    Ok(finish(&call, reply))
}

fn verb(method: &Method, named: bool, watch: bool) -> Option<&'static str> {
    Some(match (method, named) {
        (&Method::GET, _) if watch => "watch",
        (&Method::GET | &Method::HEAD, true) => "get",
        (&Method::GET | &Method::HEAD, false) => "list",
        (&Method::POST, false) => "create",
        (&Method::PUT, true) => "update",
        (&Method::PATCH, true) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => return None,
    })
}

/// Adds a call's warnings to its answer, whatever that is.
fn finish(call: &Call, reply: Result<Reply, ApiError>) -> Response<Body> {
    let mut reply = reply.unwrap_or_else(|error| Reply::error_for(call.accept, &error));
    reply.warnings.extend(call.take_warnings());
    reply.into_response()
}
