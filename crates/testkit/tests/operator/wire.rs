//! A client whose every request is seen, and can be held up or refused: what lies between one operator and the server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use hyper::body::Bytes;
use kube::client::Body;
use serde_json::json;
use tokio::sync::watch;

/// Numbers requests and answers of all wires in the order in which they happen.
static CLOCK: AtomicUsize = AtomicUsize::new(1);

/// The number of the next request or answer.
pub(crate) fn now() -> usize {
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// A request that was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) method: Method,
    /// With its query.
    pub(crate) path: String,
    pub(crate) began: usize,
    /// When it was answered, and how.
    pub(crate) answer: Option<(usize, u16)>,
}

impl Sent {
    /// Whether it changes an object of an operator's, not its leases or events.
    pub(crate) fn is_write(&self) -> bool {
        self.method != Method::GET && !self.is_about_leases() && !self.path.contains("/events")
    }

    pub(crate) fn is_about_leases(&self) -> bool {
        self.path.contains("/leases")
    }

    /// The name of the object that it is about.
    pub(crate) fn object(&self) -> &str {
        self.path.split('?').next().and_then(|path| path.rsplit('/').next()).unwrap_or_default()
    }
}

/// What becomes of a request.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    Answered,
    /// Never answered, nor does it reach the server.
    Lost,
    /// Refused with 403.
    Refused,
}

type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

type Decide = Arc<dyn Fn(&Sent) -> Fate + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Wire {
    client: kube::Client,
    sent: Arc<Mutex<Vec<Sent>>>,
    decide: Arc<Mutex<Decide>>,
    /// Counts the times that watches were cut.
    cuts: watch::Sender<usize>,
}

impl Wire {
    pub(crate) fn new(client: kube::Client) -> Self {
        let decide: Decide = Arc::new(|_| Fate::Answered);
        Self {
            client,
            sent: Arc::default(),
            decide: Arc::new(Mutex::new(decide)),
            cuts: watch::Sender::new(0),
        }
    }

    /// A client whose requests go through this.
    pub(crate) fn client(&self) -> kube::Client {
        let wire = self.clone();
        let service = tower::service_fn(move |request| {
            let wire = wire.clone();
            async move { wire.send(request).await }
        });
        kube::Client::new(service, "default")
    }

    /// From now on this says what becomes of requests.
    pub(crate) fn decide(&self, decide: impl Fn(&Sent) -> Fate + Send + Sync + 'static) {
        *lock(&self.decide) = Arc::new(decide);
    }

    /// Ends all watches that are open.
    pub(crate) fn cut_watches(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// All requests so far.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        lock(&self.sent).clone()
    }

    /// Those that change objects of an operator's.
    pub(crate) fn writes(&self) -> Vec<Sent> {
        self.sent().into_iter().filter(Sent::is_write).collect()
    }

    async fn send(&self, request: Request<Body>) -> Result<Answer, kube::Error> {
        let path = request.uri().to_string();
        let sent = Sent { method: request.method().clone(), path, began: now(), answer: None };
        let fate = lock(&self.decide).clone()(&sent);
        let mut cuts = self.cuts.subscribe();
        let index = {
            let mut all = lock(&self.sent);
            all.push(sent);
            all.len() - 1
        };
        let response = match fate {
            Fate::Answered => self.client.send(request).await?,
            Fate::Lost => std::future::pending().await,
            Fate::Refused => refusal(),
        };
        lock(&self.sent)[index].answer = Some((now(), response.status().as_u16()));
        Ok(response.map(|body| {
            let cut = Box::pin(async move {
                let _ = cuts.changed().await;
            });
            StreamBody::new(BodyStream::new(body).take_until(cut)).boxed_unsync()
        }))
    }
}

fn refusal() -> Response<Body> {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "the test does not allow it",
    });
    let response = Response::builder().status(403).header("content-type", "application/json");
    response.body(Body::from(status.to_string().into_bytes())).unwrap()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
