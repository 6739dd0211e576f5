//! Who set which fields: what the recorder of managers needs to know of a request.

use crate::apply::{self, Target, Writer};
use crate::kind::Kind;
use crate::options::WriteOptions;
use crate::server::{Call, Server};
use crate::status::ApiError;
use crate::strategy::{self, Part};
use serde_json::Value;

/// The manager that a request names, or its client's name.
pub(crate) fn manager_name(call: &Call, options: &WriteOptions) -> String {
    let agent = call.headers.get(http::header::USER_AGENT).and_then(|h| h.to_str().ok());
    apply::manager_name(options.manager.as_deref().unwrap_or_default(), agent.unwrap_or_default())
}

/// Runs `with` on what the recorder of managers needs to know of a kind.
fn with_target<R>(server: &Server, kind: &Kind, part: Part, with: impl FnOnce(&Target<'_>) -> R) -> R {
    let convert = |value: &Value, api_version: &str| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let other = server.registry.find(group, version, &kind.plural).filter(|_| group == kind.group)?;
        Some((other.converted_from(kind, value.clone())?, other.owned_schema().clone()))
    };
    let reset = strategy::reset_fields(kind, part);
    let schema = kind.owned_schema();
    // Custom objects themselves are the one case in which a reset holds for the request's version only.
    let reset_elsewhere = kind.builtin().is_some() || part == Part::Status;
    let (api_version, name) = (kind.api_version.as_str(), kind.kind.as_str());
    with(&Target { api_version, kind: name, schema, reset, reset_elsewhere, convert: &convert })
}

/// Records who posted something to a subresource that is acted on and not stored.
pub(crate) fn track_sent(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    kind: &Kind,
    sent: &mut Value,
) {
    let name = manager_name(call, options);
    let subresource = call.subresource.as_deref().unwrap_or_default();
    let by = Writer { name: &name, subresource, time: server.clock.now() };
    with_target(server, kind, Part::Main, |target| apply::track_update(None, sent, &by, target));
}

/// Records who made an object that is answered and not stored.
pub(crate) fn track_new(server: &Server, call: &Call, options: &WriteOptions, object: &mut Value) {
    track(server, &call.kind, Part::Main, None, object, &manager_name(call, options));
}

/// Records who set which fields by a write other than an apply.
pub(super) fn track(
    server: &Server,
    kind: &Kind,
    part: Part,
    live: Option<&Value>,
    new: &mut Value,
    manager: &str,
) {
    let by = Writer { name: manager, subresource: part.name(), time: server.clock.now() };
    with_target(server, kind, part, |target| apply::track_update(live, new, &by, target));
}

/// The object that results from an apply, its managers recorded.
pub(super) fn applied(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    part: Part,
    live: Option<&Value>,
    wanted: &Value,
    force: bool,
) -> Result<Value, ApiError> {
    let name = manager_name(call, options);
    let by = Writer { name: &name, subresource: part.name(), time: server.clock.now() };
    let result =
        with_target(server, &call.kind, part, |target| apply::apply(live, wanted, &by, force, target));
    result.map_err(ApiError::from)
}
