//! A webhook server on loopback, with an authority of its own. It notes every review that it is sent.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What a webhook says to a review.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// This `response`; the server adds the uid.
    Say(Value),
    /// Yes, with these JSON Patch operations.
    Patch(Value),
    /// A whole body that need not be a review, with its HTTP status.
    Raw(u16, String),
    /// Nothing, for as long as the caller waits.
    Silence,
}

impl Answer {
    /// Yes.
    pub(crate) fn yes() -> Self {
        Self::Say(json!({"allowed": true}))
    }

    fn render(self, review: &Value) -> (u16, String) {
        let mut response = match self {
            Self::Say(response) => response,
            Self::Patch(operations) => {
                json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64.encode(operations.to_string())})
            }
            Self::Raw(code, body) => return (code, body),
            Self::Silence => unreachable!("is never rendered"),
        };
        if response.get("uid").is_none() {
            response["uid"] = review["request"]["uid"].clone();
        }
        let answer =
            json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response});
        (200, answer.to_string())
    }
}

type Decide = Arc<dyn Fn(&Value) -> Answer + Send + Sync>;

/// What the tasks of the server share.
#[derive(Default)]
struct Shared {
    decisions: Mutex<HashMap<String, Decide>>,
    /// Path and review of each request that is not a probe, in the order of arrival.
    seen: Mutex<Vec<(String, Value)>>,
}

/// A running server; ends when dropped.
pub(crate) struct Hooks {
    address: SocketAddr,
    ca_bundle: String,
    /// The serving certificate as a `caBundle`.
    own_bundle: String,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

/// Reviews at this path are refused and not noted: by them a test sees that its configuration is in force.
pub(crate) const PROBE: &str = "/probe";

impl Hooks {
    /// Starts one. Paths that no test speaks of say yes.
    pub(crate) async fn start() -> Self {
        let (acceptor, ca_bundle, own_bundle) = certify();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let mut tasks = JoinSet::new();
        let of_tasks = shared.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(connection(socket, acceptor.clone(), of_tasks.clone()));
            }
        });
        Self { address, ca_bundle, own_bundle, shared, _tasks: tasks }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The `clientConfig` for a path.
    pub(crate) fn at(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.ca_bundle})
    }

    /// The `clientConfig` for a path that trusts the serving certificate itself, and no authority.
    pub(crate) fn pinned_at(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.own_bundle})
    }

    /// Lets a function of the review decide what a path says.
    pub(crate) fn on(&self, path: &str, decide: impl Fn(&Value) -> Answer + Send + Sync + 'static) {
        self.shared.decisions.lock().unwrap().insert(path.to_owned(), Arc::new(decide));
    }

    /// Lets a path always say the same.
    pub(crate) fn says(&self, path: &str, answer: Answer) {
        self.on(path, move |_| answer.clone());
    }

    /// The reviews since the last call of this.
    pub(crate) fn take_seen(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.shared.seen.lock().unwrap())
    }
}

/// A server certificate for loopback, what a `caBundle` that trusts its authority holds, and what one holds that trusts the
/// certificate alone.
fn certify() -> (TlsAcceptor, String, String) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_bundle = BASE64.encode(ca.self_signed(&ca_key).unwrap().pem());
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
    let own_bundle = BASE64.encode(leaf.pem());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), ca_bundle, own_bundle)
}

async fn connection(socket: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let Ok(stream) = acceptor.accept(socket).await else { return };
    let service = service_fn(move |request| review(request, shared.clone()));
    // A caller that hangs up has lost patience, which is its right.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn review(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<String>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let decide = shared.decisions.lock().unwrap().get(&path).cloned();
    let answer = match decide {
        _ if path == PROBE => Answer::Say(json!({"allowed": false})),
        Some(decide) => decide(&review),
        None => Answer::yes(),
    };
    if path != PROBE {
        shared.seen.lock().unwrap().push((path, review.clone()));
    }
    if matches!(answer, Answer::Silence) {
        std::future::pending::<()>().await;
    }
    let (code, body) = answer.render(&review);
    let response = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    Ok(response.body(body).unwrap())
}
