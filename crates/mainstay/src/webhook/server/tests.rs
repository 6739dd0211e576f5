use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use mainstay_apiserver::ApiServer;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::certificate::{Issued, issue};
use super::*;
use crate::webhook::{AdmissionRequest, Hook, Pending};

#[test]
fn a_handler_has_nine_tenths_of_what_the_caller_waits() {
    let registered = Duration::from_secs(10);
    assert_eq!(deadline(None, registered), Duration::from_secs(9));
    assert_eq!(deadline(Some("timeout=10s"), registered), Duration::from_secs(9));
    assert_eq!(deadline(Some("a=b&timeout=1s"), registered), Duration::from_millis(900));
    assert_eq!(deadline(Some("timeout=30s"), registered), Duration::from_secs(9));
    assert_eq!(deadline(Some("timeout=1m0s"), registered), Duration::from_secs(9));
}

fn client() -> kube::Client {
    kube::Client::new(ApiServer::builder().build().unwrap(), "default")
}

/// A certificate in files, and webhooks that are served with it.
struct Scene {
    directory: tempfile::TempDir,
    address: SocketAddr,
    state: watch::Receiver<WebhookState>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Scene {
    async fn start(webhooks: Webhooks, issued: &Issued) -> Self {
        Self::start_within(webhooks, issued, Bounds::new(CONNECTIONS_MAX)).await
    }

    async fn start_within(webhooks: Webhooks, issued: &Issued, bounds: Bounds) -> Self {
        let directory = tempfile::tempdir().unwrap();
        put(directory.path(), issued);
        let serving = Serving::on_loopback()
            .certificate_files(directory.path())
            .without_registration()
            .look_every(Duration::from_millis(100));
        let mut server = webhooks.serve(client(), serving).await.unwrap();
        server.bounds = bounds;
        let (address, mut state) = (server.address(), server.state());
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async { drop(stopped.await) }));
        state.wait_for(WebhookState::is_ready).await.unwrap();
        Self { directory, address, state, stop, task }
    }

    /// A connection that trusts one certificate's authority and speaks one protocol.
    async fn connect(&self, trusted: &Issued, alpn: &str) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(trusted.authority.as_bytes()).unwrap()).unwrap();
        let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        let socket = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, socket).await
    }
}

fn put(directory: &Path, issued: &Issued) {
    std::fs::write(directory.join("tls.crt"), &issued.certificate).unwrap();
    std::fs::write(directory.join("tls.key"), issued.key_pem()).unwrap();
}

fn issued() -> Issued {
    issue(&["127.0.0.1".to_owned()], Timestamp::now(), Duration::from_hours(1)).unwrap()
}

fn request(path: &str) -> http::Request<Full<Bytes>> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "name": "a", "namespace": "b", "operation": "CREATE", "object": map,
        },
    });
    http::Request::post(path).header("host", "hooks").body(review.to_string().into()).unwrap()
}

async fn read(response: hyper::Response<hyper::body::Incoming>) -> Value {
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

#[tokio::test]
async fn both_versions_of_http_are_served() {
    let one = issued();
    let scene = Scene::start(Webhooks::new("op").validate::<ConfigMap>(|_| Ok(())), &one).await;
    let stream = scene.connect(&one, "http/1.1").await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let answer = read(sender.send_request(request("/validate/configmaps")).await.unwrap()).await;
    assert_eq!(answer["response"], json!({"uid": "u1", "allowed": true}));
    let unknown = sender.send_request(request("/validate/secrets")).await.unwrap();
    assert_eq!(unknown.status(), 404);

    let stream = scene.connect(&one, "h2").await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let path = format!("https://{}/validate/configmaps?timeout=5s", scene.address);
    let answer = read(sender.send_request(request(&path)).await.unwrap()).await;
    assert_eq!(answer["response"]["allowed"], true);
}

#[tokio::test]
async fn silent_clients_keep_no_review_waiting() {
    let one = issued();
    let webhooks = Webhooks::new("op").validate::<ConfigMap>(|_| Ok(()));
    let scene = Scene::start_within(webhooks, &one, Bounds::new(8)).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        // These have not even begun a handshake, and those say nothing after it.
        silent.push((
            TcpStream::connect(scene.address).await.unwrap(),
            scene.connect(&one, "h2").await.unwrap(),
        ));
    }
    let stream = scene.connect(&one, "http/1.1").await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let answer = read(sender.send_request(request("/validate/configmaps")).await.unwrap()).await;
    assert_eq!(answer["response"]["allowed"], true);
}

#[tokio::test]
async fn a_client_that_is_silent_after_its_handshake_is_closed() {
    use tokio::io::AsyncReadExt as _;
    let one = issued();
    let bounds = Bounds { first: Duration::from_millis(300), ..Bounds::new(8) };
    let webhooks = Webhooks::new("op").validate::<ConfigMap>(|_| Ok(()));
    let scene = Scene::start_within(webhooks, &one, bounds).await;
    let mut silent = scene.connect(&one, "h2").await.unwrap();
    // An end without a farewell is an error to TLS, and an end.
    let _ = silent.read_to_end(&mut Vec::new()).await;
}

#[tokio::test]
async fn files_are_taken_again_when_they_change_and_connections_go_on() {
    let (one, two) = (issued(), issued());
    let mut scene = Scene::start(Webhooks::new("op").validate::<ConfigMap>(|_| Ok(())), &one).await;
    let stream = scene.connect(&one, "http/1.1").await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);

    // A certificate without its key, as somebody who reads between two writes sees it: the one before is served on.
    std::fs::write(scene.directory.path().join("tls.crt"), &two.certificate).unwrap();
    let waits = |state: &WebhookState| matches!(state.pending.as_slice(), [Pending::Certificate { .. }]);
    scene.state.wait_for(waits).await.unwrap();
    assert!(scene.connect(&one, "h2").await.is_ok());
    assert!(scene.connect(&two, "h2").await.is_err());

    put(scene.directory.path(), &two);
    scene.state.wait_for(WebhookState::is_ready).await.unwrap();
    assert!(scene.connect(&one, "h2").await.is_err());
    assert!(scene.connect(&two, "h2").await.is_ok());
    let answer = read(sender.send_request(request("/validate/configmaps")).await.unwrap()).await;
    assert_eq!(answer["response"]["allowed"], true);
}

#[tokio::test]
async fn a_review_that_has_begun_is_answered_before_the_server_ends() {
    let one = issued();
    let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (of_hook, until) = (begun.clone(), end.clone());
    let slow = Hook::validate_async(move |_: Arc<AdmissionRequest<ConfigMap>>| {
        let (begun, end) = (of_hook.clone(), until.clone());
        async move {
            begun.notify_one();
            end.notified().await;
            Err("after all".into())
        }
    });
    let scene = Scene::start(Webhooks::new("op").with(slow), &one).await;
    let stream = scene.connect(&one, "http/1.1").await.unwrap();
    let idle = scene.connect(&one, "http/1.1").await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let asking = tokio::spawn(sender.send_request(request("/validate/configmaps")));
    begun.notified().await;
    scene.stop.send(()).unwrap();
    // Nobody listens any more, and still the answer comes.
    while TcpStream::connect(scene.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    end.notify_one();
    let answer = read(asking.await.unwrap().unwrap()).await;
    assert_eq!(answer["response"]["status"]["message"], "after all");
    // A connection on which nothing is asked does not hold it up.
    scene.task.await.unwrap();
    drop(idle);
}

#[tokio::test]
async fn without_a_certificate_nothing_is_served_and_the_reason_is_told() {
    let serving = Serving::on_loopback().certificate_files("/nonexistent").without_registration();
    let server = Webhooks::new("op").serve(client(), serving).await.unwrap();
    let mut state = server.state();
    tokio::spawn(server.run(std::future::pending()));
    let state = state.wait_for(|state| state.pending != [Pending::Start]).await.unwrap().clone();
    assert!(!state.serving);
    let told = state.pending[0].to_string();
    assert!(told.starts_with("the webhooks' certificate: reading /nonexistent/tls.crt: "), "{told}");
}

#[tokio::test]
async fn hooks_that_cannot_be_told_apart_are_refused() {
    let twice = || Webhooks::new("op").validate::<ConfigMap>(|_| Ok(()));
    let error = twice().validate::<ConfigMap>(|_| Ok(())).serve(client(), Serving::on_loopback()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "two webhooks are both at /validate/configmaps; give one a name"
    );
    let named = twice().with(Hook::validate::<ConfigMap>(|_| Ok(())).named("other"));
    assert!(named.serve(client(), Serving::on_loopback()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_replica_looks_when_it_is_elected_and_otherwise_at_its_interval() {
    let requests = Arc::new(AtomicUsize::new(0));
    let (counted, server) = (requests.clone(), client());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let asked = counted.fetch_add(1, Ordering::SeqCst);
        let server = server.clone();
        async move {
            // Time stands still for whoever asks without a pause.
            if asked >= 1000 {
                std::future::pending::<()>().await;
            }
            server.send(request).await
        }
    });
    let (elect, leads) = watch::channel(false);
    elect.send_replace(false);
    let hook = Hook::validate::<ConfigMap>(|_| Ok(()));
    let serving = Serving::on_loopback()
        .certificate_secret(crate::Key::namespaced("default", "hooks"))
        .registering_while(leads);
    let webhooks = Webhooks::new("hooks").with(hook);
    let server = webhooks.serve(kube::Client::new(service, "default"), serving).await.unwrap();
    let mut state = server.state();
    let task = tokio::spawn(server.run(std::future::pending()));
    state.wait_for(|state| state.serving).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = requests.swap(0, Ordering::SeqCst);
    assert!((1..20).contains(&asked), "{asked} requests in the first second");
    elect.send_replace(true);
    state.wait_for(WebhookState::is_ready).await.unwrap();
    requests.store(0, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_mins(10)).await;
    let asked = requests.load(Ordering::SeqCst);
    assert!((10..100).contains(&asked), "{asked} requests in ten minutes");
    task.abort();
}
