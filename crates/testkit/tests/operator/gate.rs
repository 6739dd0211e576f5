//! A client with a gate in it: it counts the writes that pass, refuses what a test wants refused, and holds watches
//! back. In front of any cluster.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use hyper::body::Bytes;
use kube::client::Body;
use mainstay_testkit::Cluster;
use serde_json::json;
use tokio::sync::watch;

/// What passes the gate on its way back.
type Answer = Response<UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>>;

/// Says with which code and message a request is refused, if it is.
type Refuse = Box<dyn Fn(&Method, &str) -> Option<(u16, String)> + Send>;

/// What a gate does and has seen.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Inner>);

struct Inner {
    refuse: Mutex<Option<Refuse>>,
    writes: Mutex<Vec<String>>,
    /// The part of the path of watches whose events wait; empty: none.
    held: watch::Sender<String>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        let held = watch::Sender::new(String::new());
        Self(Arc::new(Inner { refuse: Mutex::default(), writes: Mutex::default(), held }))
    }

    /// A client of the cluster, through the gate.
    pub(crate) fn client(&self, cluster: &Cluster) -> kube::Client {
        let (gate, inner) = (self.clone(), cluster.client());
        let service = tower::service_fn(move |request| {
            let (gate, inner) = (gate.clone(), inner.clone());
            async move { gate.pass(&inner, request).await }
        });
        kube::Client::new(service, "default")
    }

    /// Refuses requests by method and path from now on.
    pub(crate) fn refuse(&self, refuse: impl Fn(&Method, &str) -> Option<(u16, String)> + Send + 'static) {
        *self.0.refuse.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(refuse));
    }

    /// Lets everything pass again.
    pub(crate) fn open(&self) {
        self.0.refuse.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.0.held.send_replace(String::new());
    }

    /// Holds the events of watches back whose path has this in it.
    pub(crate) fn hold(&self, path: &str) {
        self.0.held.send_replace(path.to_owned());
    }

    /// The writes so far but for those of events: `PATCH /api/v1/…`. They are forgotten by this.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn pass(&self, inner: &kube::Client, request: Request<Body>) -> Result<Answer, kube::Error> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let watches = request.uri().query().unwrap_or_default().contains("watch=");
        if method != Method::GET && !path.contains("/events") {
            self.0.writes.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{method} {path}"));
        }
        let refusal = {
            let refuse = self.0.refuse.lock().unwrap_or_else(PoisonError::into_inner);
            refuse.as_ref().and_then(|refuse| refuse(&method, &path))
        };
        let response = match refusal {
            Some((code, message)) => refused(code, &message),
            None => inner.send(request).await?,
        };
        let response = response.map(|body| body.map_err(Into::into).boxed_unsync());
        Ok(if watches { self.slow(&path, response) } else { response })
    }

    /// Lets each part of a watch wait for as long as it is held.
    fn slow(&self, path: &str, response: Answer) -> Answer {
        let (held, path) = (self.0.held.subscribe(), Arc::<str>::from(path));
        response.map(|body| {
            let frames = BodyStream::new(body).then(move |frame| {
                let (mut held, path) = (held.clone(), Arc::clone(&path));
                async move {
                    // It fails when the gate is gone: with the test.
                    let _ = held.wait_for(|held| held.is_empty() || !path.contains(held.as_str())).await;
                    frame
                }
            });
            StreamBody::new(frames).boxed_unsync()
        })
    }
}

fn refused(code: u16, message: &str) -> Response<Body> {
    let reason = if code == 403 { "Forbidden" } else { "" };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
        "code": code,
    });
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = http::StatusCode::from_u16(code).expect("a status code");
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}
