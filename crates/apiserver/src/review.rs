//! Kinds that are answered and not stored: access and token reviews.

use crate::builtin::rules::objects::reviews::{self, Asked, Review};
use crate::incoming;
use crate::kind::Kind;
use crate::options::WriteOptions;
use crate::respond::{self, Reply};
use crate::server::{Call, Server};
use crate::service::method_not_allowed;
use crate::status::ApiError;
use crate::write;
use http::Method;

/// The kind of question that a kind is, if it is one.
pub(crate) fn review(kind: &Kind) -> Option<Review> {
    kind.builtin()?;
    Review::of(&kind.group, &kind.kind)
}

/// Answers a review. Whoever was let in may do everything, so access is always granted.
pub(crate) fn answer(
    server: &Server,
    call: &Call,
    review: Review,
    method: &Method,
) -> Result<Reply, ApiError> {
    if *method != Method::POST || call.name.is_some() {
        return Err(method_not_allowed());
    }
    let options = WriteOptions::read(&call.query, "CreateOptions", false)?;
    let mut object = incoming::object(call, &options)?;
    write::track_new(server, call, &options, &mut object);
    let known = |_: &str| None;
    let now = server.timestamp();
    reviews::answer(review, &mut object, &Asked { user: &call.user, token: &known, now: &now })?;
    respond::tree(call, 201, &object, server.clock.now())
}
