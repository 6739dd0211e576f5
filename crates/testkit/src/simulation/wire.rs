//! The connection of one program to one cluster: a tower service, for `kube::Client::new`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use mainstay_apiserver::{ApiServer, Body, Broken, Fault, FaultLayer, Faults, User};
use tower_service::Service;

use super::ask::{self, Ask};
use super::life::Life;
use super::stage::{Stage, Trouble};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// See the [module](self).
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) cluster: Arc<str>,
    pub(super) server: ApiServer,
    pub(super) life: Arc<Life>,
    pub(super) stage: Arc<Stage>,
}

/// What becomes of the one request that is sent through it.
struct Always(Fault);

impl Faults for Always {
    fn decide(&self, _: &http::request::Parts) -> Fault {
        self.0.clone()
    }
}

impl Wire {
    pub(super) async fn send(self, request: Request<kube::client::Body>) -> Result<Response<Body>, Failure> {
        let (mut head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let ask = Ask::of(&self.cluster, &head);
        let text =
            format!("{} {} {} {}", self.life.actor, head.method, head.uri, String::from_utf8_lossy(&body));
        let sees = matches!(ask.verb, "list" | "watch");
        head.extensions.insert(User { name: self.life.actor.to_string(), groups: User::admin().groups });
        let work = async {
            // Only now is it known whether the server lags behind.
            if sees && self.life.cannot_see(&ask.place.resource) {
                return Err(Failure::from(Broken));
            }
            if ask.takes_old
                && let Some(revision) = Stage::lag_in(&self.life, &self.cluster)
                && let Some(old) = ask::as_of(&head.uri, revision)
            {
                head.uri = old;
            }
            if ask.verb == "watch" {
                self.stage.record.watching(&self.life.actor, &ask.place, self.server.revision());
            }
            let request = Request::from_parts(head.clone(), Full::new(body.clone()));
            Ok(self.server.handle(request).await)
        };
        let status = |answer: &Result<Response<Body>, Failure>| {
            answer.as_ref().map_or(0, |answer| answer.status().as_u16())
        };
        match self.stage.pass(&self.life, &ask, text, work, status).await {
            Ok(answer) => answer,
            Err(Trouble::Broken) => Err(Broken.into()),
            Err(Trouble::Refused { code, retry_after_seconds }) => {
                let fault = retry_after_seconds
                    .map_or(Fault::Refuse(code), |seconds| Fault::RetryAfter(code, seconds));
                let request = Request::new(Full::new(body));
                FaultLayer::new(Always(fault)).around(self.server).call(request).await
            }
        }
    }
}

impl Service<Request<kube::client::Body>> for Wire {
    type Response = Response<Body>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Failure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
