//! A client that reaches nothing, for an operator that is only asked about itself.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::client::Body;
use tower_service::Service;

/// What every request is answered with.
#[derive(Debug, thiserror::Error)]
#[error("this operator was built without a connection to a cluster")]
pub(super) struct NotConnected;

#[derive(Clone)]
struct Nowhere;

impl Service<Request<Body>> for Nowhere {
    type Response = Response<Body>;
    type Error = NotConnected;
    type Future = Ready<Result<Response<Body>, NotConnected>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NotConnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Err(NotConnected))
    }
}

pub(super) fn client() -> kube::Client {
    kube::Client::new(Nowhere, "default")
}
