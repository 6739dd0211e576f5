//! What a test asks for: a cluster with a namespace of its own.

use std::env;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use http_body_util::BodyExt as _;
use kube::client::Body;
use mainstay_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::binaries::Binaries;
use crate::embedded::Embedded;
use crate::eventually::eventually;
use crate::failure;
use crate::isolation::Isolation;
use crate::real::{Controllers, RealControlPlane, RealError, RealOptions, client_for};

/// Names a kubeconfig of a real control plane that is already running, to share it between test processes. It must be
/// one to throw away: tests leave their namespaces and definitions behind.
pub const REAL_KUBECONFIG: &str = "MAINSTAY_TEST_REAL_KUBECONFIG";

/// Which of the two a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClusterKind {
    /// The API server inside this process.
    Embedded,
    /// kube-apiserver with etcd and kube-controller-manager.
    Real,
}

impl fmt::Display for ClusterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Embedded => "embedded",
            Self::Real => "real",
        })
    }
}

/// A cluster in the hands of one test.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    namespace: String,
    source: Source,
    isolation: Arc<Isolation>,
}

/// What is behind a cluster's client.
#[derive(Clone)]
enum Source {
    Embedded(Arc<Embedded>),
    /// Reached by this kubeconfig.
    Real(PathBuf),
}

impl Source {
    /// A client whose requests pass the isolation.
    async fn client(&self, isolation: &Arc<Isolation>) -> kube::Client {
        match self {
            Self::Embedded(embedded) => embedded.client(isolation),
            Self::Real(kubeconfig) => client_for(kubeconfig, Some(isolation))
                .await
                .unwrap_or_else(|error| panic!("{}", chain(&error))),
        }
    }
}

impl Cluster {
    /// An embedded cluster of its own, where this build has one.
    pub async fn embedded() -> Option<Self> {
        Self::embedded_with(false).await
    }

    async fn embedded_with(isolated: bool) -> Option<Self> {
        let embedded = Embedded::start()?;
        Some(Self::with_new_namespace(Source::Embedded(Arc::new(embedded)), isolated).await)
    }

    /// A namespace in the real cluster that the whole test run shares, unless there is none.
    ///
    /// # Panics
    /// When its binaries are there but it does not start, and when `MAINSTAY_REQUIRE_REAL=1` and they are not there.
    pub async fn real() -> Option<Self> {
        let kubeconfig = shared_real().await?;
        Some(Self::with_new_namespace(Source::Real(kubeconfig), true).await)
    }

    /// A namespace in the cluster that a kubeconfig names: a [`RealControlPlane`] of the test's own,
    /// say.
    ///
    /// # Panics
    /// When the kubeconfig cannot be used.
    pub async fn at(kubeconfig: &Path) -> Self {
        Self::with_new_namespace(Source::Real(kubeconfig.to_owned()), false).await
    }

    /// Another test's view of the same cluster: a further namespace.
    pub async fn again(&self) -> Self {
        Self::with_new_namespace(self.source.clone(), self.isolation.is_enforced()).await
    }

    /// The same without [isolation](crate::isolation), for a cluster that is the test's own, and for suites that compare
    /// what servers answer about everything.
    pub async fn unrestricted(&self) -> Self {
        let isolation = Isolation::of(&self.namespace, false);
        let client = self.source.client(&isolation).await;
        Self { client, isolation, ..self.clone() }
    }

    async fn with_new_namespace(source: Source, isolated: bool) -> Self {
        let namespace = unique_name("test");
        let isolation = Isolation::of(&namespace, isolated);
        let client = source.client(&isolation).await;
        let cluster = Self { client, namespace, source, isolation };
        cluster.create_namespace().await;
        cluster
    }

    async fn create_namespace(&self) {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
            .to_string();
        let request = http::Request::post("/api/v1/namespaces")
            .header("content-type", "application/json")
            .body(body.into_bytes());
        let (status, answer) = self.send(request.unwrap_or_else(|error| panic!("{error}"))).await;
        assert!(status.is_success(), "creating namespace {}: {status} {answer}", self.namespace);
        // Pods are refused, and the namespace's content still changes by itself, until both are there.
        for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            let path = format!("/api/v1/namespaces/{}/{path}", self.namespace);
            eventually(&path, async || self.get(&path).await.0.is_success().then_some(())).await;
        }
    }

    /// Which of the two it is.
    pub fn kind(&self) -> ClusterKind {
        match self.source {
            Source::Embedded(_) => ClusterKind::Embedded,
            Source::Real(_) => ClusterKind::Real,
        }
    }

    /// A client with all rights, within what [isolation](crate::isolation) allows.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// This test's own namespace. It has its default service account and `kube-root-ca.crt` and nothing else.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The path of a kubeconfig that reaches it from another process, as long as this cluster is kept. The embedded one
    /// is served over HTTPS on loopback from the first call on.
    pub async fn kubeconfig(&self) -> PathBuf {
        match &self.source {
            Source::Embedded(embedded) => embedded.kubeconfig().await,
            Source::Real(kubeconfig) => kubeconfig.clone(),
        }
    }

    /// The embedded server itself, for what no request can ask for.
    pub fn embedded_server(&self) -> Option<&ApiServer> {
        match &self.source {
            Source::Embedded(embedded) => Some(embedded.server()),
            Source::Real(_) => None,
        }
    }

    /// The answer to GET `path`, as [`send`](Self::send) gives it.
    ///
    /// # Panics
    /// When there is no answer at all.
    pub async fn get(&self, path: &str) -> (http::StatusCode, Value) {
        let request = http::Request::get(path).body(Vec::new());
        self.send(request.unwrap_or_else(|error| panic!("{path}: {error}"))).await
    }

    /// Sends a raw request. The answer's body is a string where it is not JSON.
    ///
    /// # Panics
    /// When there is no answer at all.
    pub async fn send(&self, request: http::Request<Vec<u8>>) -> (http::StatusCode, Value) {
        let what = format!("{} {}", request.method(), request.uri());
        let response = self.client.send(request.map(Body::from)).await;
        let response = response.unwrap_or_else(|error| panic!("{what}: {}", chain(&error)));
        let status = response.status();
        let body = response.into_body().collect().await;
        let body = body.unwrap_or_else(|error| panic!("{what}: {}", chain(&error))).to_bytes();
        let value = serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
        (status, value)
    }
}

/// Runs a test on every cluster that `MAINSTAY_TEST_CLUSTER` asks for, one after the other. When it fails, it says on
/// which, how to repeat it and where the logs are.
///
/// # Panics
/// When the test reaches for what [may be another test's](crate::isolation).
pub async fn for_each_cluster(test: impl AsyncFn(Cluster)) {
    for cluster in clusters().await {
        run_on(cluster, &test).await;
    }
}

/// The same with clusters that are the test's own, so that it may have the run of them. The real one has all controllers of
/// kube-controller-manager, the embedded one none. `what` is what is skipped where the real one cannot be had.
///
/// # Panics
/// When one of them does not start.
pub async fn for_each_own_cluster(what: &str, test: impl AsyncFn(Cluster)) {
    let (embedded, real) = wanted();
    if embedded {
        let cluster =
            Cluster::embedded().await.unwrap_or_else(|| panic!("the embedded server does not start"));
        run_on(cluster, &test).await;
    }
    if real {
        let binaries = match Binaries::find() {
            Ok(binaries) => binaries,
            Err(missing) => return report_missing(what, &missing),
        };
        let options = RealOptions { controllers: Controllers::All, ..RealOptions::default() };
        let started = RealControlPlane::start(&binaries, &options).await;
        let control_plane = started.unwrap_or_else(|error| panic!("{}", chain(&error)));
        run_on(Cluster::at(&control_plane.kubeconfig()).await, &test).await;
    }
}

async fn run_on(cluster: Cluster, test: &impl AsyncFn(Cluster)) {
    let failing = OnFailure(cluster.clone());
    let isolation = Arc::clone(&cluster.isolation);
    tokio::select! {
        biased;
        violation = isolation.violated() => panic!("{violation}"),
        () = Box::pin(test(cluster)) => {}
    }
    // The last request of the test may have been the one.
    if let Some(violation) = isolation.violation() {
        panic!("{violation}");
    }
    drop(failing);
}

/// Tells what helps, when a test panics on a cluster.
struct OnFailure(Cluster);

impl Drop for OnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let servers = match &self.0.source {
                Source::Embedded(_) => None,
                Source::Real(kubeconfig) => kubeconfig.parent(),
            };
            failure::report(self.0.kind(), &self.0.isolation.log(), servers);
        }
    }
}

/// The clusters that `MAINSTAY_TEST_CLUSTER` asks for, each with a new namespace, kept [isolated](crate::isolation).
///
/// # Panics
/// When the variable has a value that is none of `embedded`, `real`, `both`.
pub async fn clusters() -> Vec<Cluster> {
    let (embedded, real) = wanted();
    let mut clusters = Vec::new();
    if embedded {
        clusters.extend(Cluster::embedded_with(true).await);
    }
    if real {
        clusters.extend(Cluster::real().await);
    }
    clusters
}

/// Whether the embedded and the real cluster are asked for.
fn wanted() -> (bool, bool) {
    match env::var("MAINSTAY_TEST_CLUSTER").unwrap_or_default().as_str() {
        "embedded" => (true, false),
        "real" => (false, true),
        "both" | "" => (true, true),
        other => panic!("MAINSTAY_TEST_CLUSTER is {other:?}, but can be embedded, real or both"),
    }
}

/// The kubeconfig of the test run's real control plane, which is started when first asked for.
async fn shared_real() -> Option<PathBuf> {
    static STARTED: OnceCell<Option<RealControlPlane>> = OnceCell::const_new();
    if let Some(path) = env::var_os(REAL_KUBECONFIG).filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let control_plane = STARTED.get_or_init(async || {
        let binaries = match Binaries::find() {
            Ok(binaries) => binaries,
            Err(missing) => {
                report_missing("everything on a real control plane", &missing);
                return None;
            }
        };
        let started: Result<_, RealError> = RealControlPlane::start(&binaries, &RealOptions::default()).await;
        Some(started.unwrap_or_else(|error| panic!("{}", chain(&error))))
    });
    control_plane.await.as_ref().map(RealControlPlane::kubeconfig)
}

/// Fails where the real parts are required. Elsewhere writes past the capture of test output, so that nobody takes
/// a skipped half for a passed one.
///
/// # Panics
/// When `MAINSTAY_REQUIRE_REAL=1`.
pub fn report_missing(skipped: &str, missing: &impl fmt::Display) {
    let required = env::var("MAINSTAY_REQUIRE_REAL").is_ok_and(|value| value == "1");
    assert!(!required, "MAINSTAY_REQUIRE_REAL=1, but {skipped} cannot run: {missing}");
    let _ = writeln!(io::stderr(), "\nSKIPPED: {skipped}: {missing}\n");
}

/// A name that no other test of this or another process has.
pub fn unique_name(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{:08x}{:08x}{count:04x}", std::process::id(), nanos)
}

/// The digits that [`unique_name`] adds.
const UNIQUE_DIGITS: usize = 20;

/// Whether a name was made with [`unique_name`], whatever was added to it since.
pub(crate) fn is_unique(name: &str) -> bool {
    let is_other = |c: char| !matches!(c, '0'..='9' | 'a'..='f');
    name.split(is_other).any(|digits| digits.len() >= UNIQUE_DIGITS)
}

/// An error with its sources, in one line each.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str("\n  caused by: ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
