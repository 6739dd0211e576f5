//! A webhook server on loopback, over HTTPS with a certificate of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What a path of the server answers.
pub(super) fn answer(path: &str, review: &Value) -> Value {
    let change = |operations: Value| json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())});
    let data = &review["request"]["object"]["data"];
    let mut response = match path {
        "/deny" => {
            json!({"allowed": false, "warnings": ["careful"], "status": {"message": "no", "code": 403}})
        }
        "/warn" => json!({"allowed": true, "warnings": ["one", "two"], "auditAnnotations": {"k": "v"}}),
        "/add-b" => change(json!([{"op": "add", "path": "/data/b", "value": "2"}])),
        "/add-c" => change(json!([{"op": "add", "path": "/data/c", "value": "3"}])),
        // Says how many fields it saw.
        "/count" => {
            let seen = data.as_object().map_or(0, serde_json::Map::len).to_string();
            change(json!([{"op": "add", "path": "/data/seen", "value": seen}]))
        }
        "/misfit" => change(json!([{"op": "remove", "path": "/data/zzz"}])),
        "/bad-uid" => json!({"allowed": true, "uid": "x"}),
        _ => json!({"allowed": true}),
    };
    if response.get("uid").is_none() {
        response["uid"] = review["request"]["uid"].clone();
    }
    json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response})
}

/// A running server; ends when dropped.
pub(super) struct Server {
    pub address: SocketAddr,
    /// What a `caBundle` for it holds.
    pub ca_bundle: String,
    /// Path, query and review of each request, in order.
    pub seen: Arc<Mutex<Vec<(String, Value)>>>,
    pub connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts one whose self-signed certificate is for these names.
    pub(super) async fn start(names: &[&str]) -> Server {
        let key = KeyPair::generate().unwrap();
        let mut params =
            CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let (log, count) = (seen.clone(), connections.clone());
        tasks.spawn(async move {
            let mut served = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, log) = (acceptor.clone(), log.clone());
                count.fetch_add(1, Ordering::SeqCst);
                served.spawn(async move {
                    let Ok(stream) = acceptor.accept(socket).await else { return };
                    let service = service_fn(move |request| serve(request, log.clone()));
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        let ca_bundle = STANDARD.encode(certificate.pem());
        Server { address, ca_bundle, seen, connections, _tasks: tasks }
    }

    /// The `clientConfig` for a path.
    pub(super) fn at(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.ca_bundle})
    }

    /// The paths of all requests so far.
    pub(super) fn paths(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

type Log = Arc<Mutex<Vec<(String, Value)>>>;

async fn serve(request: Request<Incoming>, log: Log) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let target = request.uri().to_string();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let body = answer(&path, &review);
    log.lock().unwrap().push((target, review));
    if path == "/slow" {
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
    let response = Response::builder().header("content-type", "application/json");
    let (code, body) = match path.as_str() {
        "/broken" => (500, "boom".to_owned()),
        "/huge" => (200, " ".repeat(super::super::client::BODY_BYTES_MAX + 1)),
        _ => (200, body.to_string()),
    };
    Ok(response.status(code).body(Full::new(body.into())).unwrap())
}
