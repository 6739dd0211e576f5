//! An operator under test, in a few lines: stepped by hand, or running freely.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use mainstay::{Controller, Kind, SyncRequest, SyncResponse};
//! use mainstay_testkit::{Cluster, OperatorTest};
//! use serde_json::json;
//!
//! // Every ConfigMap shall have a Secret of its name.
//! let controller = Controller::of::<ConfigMap>().owns::<Secret>().sync(|request: &SyncRequest| {
//!     Ok(SyncResponse::new().with_child(json!({
//!         "apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name()},
//!     }))?)
//! });
//!
//! let cluster = Cluster::embedded().await.unwrap();
//! let test = OperatorTest::new(&cluster, "pairs", |operator| operator.controller(controller));
//! test.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "paint"}})).await;
//! test.settle().await;
//! assert!(test.exists(&Kind::of::<Secret>(), "paint").await);
//! test.assert_settled().await; // a second sync writes nothing
//! # }
//! ```

use std::sync::LazyLock;
use std::time::Duration;

use http::{Method, StatusCode};
use mainstay::{Key, Kind, Operator, OperatorBuilder, Scope, Stepped, Stepper};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::eventually::{eventually, eventually_within};

/// An operator that is driven by hand, in one namespace of a cluster.
pub struct OperatorTest {
    cluster: Cluster,
    stepper: Stepper,
}

impl OperatorTest {
    /// An operator that looks at the cluster's namespace only; nothing runs but by [`settle`](Self::settle) and
    /// [`step`](Self::step).
    ///
    /// # Panics
    /// When the operator cannot be built.
    pub fn new(
        cluster: &Cluster,
        name: &str,
        build: impl FnOnce(OperatorBuilder) -> OperatorBuilder,
    ) -> Self {
        let builder = Operator::builder(name, cluster.client()).namespace(cluster.namespace());
        let operator = build(builder).build().unwrap_or_else(|error| panic!("building {name}: {error}"));
        Self::stepping(cluster, &operator)
    }

    /// The same for an operator that is built already.
    ///
    /// # Panics
    /// When it runs already.
    pub fn stepping(cluster: &Cluster, operator: &Operator) -> Self {
        let stepper = operator.stepper().unwrap_or_else(|error| panic!("starting the operator: {error}"));
        Self { cluster: cluster.clone(), stepper }
    }

    /// The operator, for what can be asked of it.
    pub fn operator(&self) -> &Operator {
        self.stepper.operator()
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Waits until the caches have seen everything, and syncs nothing: to ask the operator for a plan, say.
    ///
    /// # Panics
    /// When the caches do not catch up with the server.
    pub async fn catch_up(&self) {
        self.stepper.catch_up().await.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Syncs the parent whose turn it is, on caches that have seen everything; `None` if it is nobody's.
    ///
    /// # Panics
    /// When the caches do not catch up with the server.
    pub async fn step(&self) -> Option<Stepped> {
        self.stepper.step().await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Takes steps until it is nobody's turn.
    ///
    /// # Panics
    /// When there is no end to it.
    pub async fn settle(&self) -> Vec<Stepped> {
        self.stepper.settle().await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Syncs every parent once more, also those that failed and wait.
    ///
    /// # Panics
    /// When that writes anything, or fails.
    pub async fn assert_settled(&self) {
        self.check_settled(|_| false).await;
    }

    /// The same where parents are in trouble on purpose: a sync may fail, if its error contains this text.
    ///
    /// # Panics
    /// When that writes anything, or fails with another error.
    pub async fn assert_settled_despite(&self, error: &str) {
        self.check_settled(|found| found.contains(error)).await;
    }

    async fn check_settled(&self, is_expected: impl Fn(&str) -> bool) {
        self.settle().await;
        self.stepper.wake_all();
        for step in self.settle().await {
            let Some(sync) = &step.sync else { continue };
            assert!(step.writes() == 0, "a second sync of {} wrote: {}", step.key, sync.plan);
            if let Some(error) = sync.error.as_deref().filter(|error| !is_expected(error)) {
                panic!("a second sync of {} failed: {error}", step.key);
            }
        }
    }

    /// Creates an object, in the test's namespace if it names none.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn create(&self, object: Value) -> Value {
        self.cluster.create(object).await
    }

    /// The object of this name in the test's namespace.
    pub async fn get(&self, kind: &Kind, name: &str) -> Option<Value> {
        self.cluster.find(kind, name).await
    }

    /// Whether there is such an object.
    pub async fn exists(&self, kind: &Kind, name: &str) -> bool {
        self.get(kind, name).await.is_some()
    }

    /// Changes an object by a JSON merge patch.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn patch(&self, kind: &Kind, name: &str, patch: Value) -> Value {
        self.cluster.patch(kind, name, patch).await
    }

    /// Deletes an object.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn delete(&self, kind: &Kind, name: &str) {
        self.cluster.delete(kind, name).await;
    }
}

/// How many threads operators run on that run freely. Unset: on the test's own.
const THREADS: &str = "MAINSTAY_TEST_THREADS";

/// The threads for operators of all tests of this process, if the test run asks for them.
fn threads() -> Option<&'static Runtime> {
    static RUNTIME: LazyLock<Option<Runtime>> = LazyLock::new(|| {
        let text = std::env::var(THREADS).ok().filter(|text| !text.is_empty())?;
        let count = text.parse().unwrap_or_else(|_| panic!("{THREADS} is {text:?}, but must be a number"));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(count).enable_all().build();
        Some(runtime.unwrap_or_else(|error| panic!("starting {count} threads: {error}")))
    });
    RUNTIME.as_ref()
}

/// An operator that runs freely. Stops when told to, or when this is dropped.
pub struct RunningOperator {
    operator: Operator,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), mainstay::RunError>>,
}

impl RunningOperator {
    /// Runs it, with `MAINSTAY_TEST_THREADS=4` on four threads beside the test's own.
    ///
    /// # Panics
    /// When the variable is no number.
    pub fn start(operator: Operator) -> Self {
        let (stop, stopped) = oneshot::channel();
        let running = operator.clone();
        let running = async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            running.run(stopped).await
        };
        let task = match threads() {
            Some(threads) => threads.spawn(running),
            None => tokio::spawn(running),
        };
        Self { operator, stop: Some(stop), task }
    }

    /// The operator.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Tells it to stop, and does not wait for it.
    pub fn tell_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Whether it has come to its end.
    pub fn has_stopped(&self) -> bool {
        self.task.is_finished()
    }

    /// Stops it gracefully and waits until it has.
    ///
    /// # Panics
    /// When it failed.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        let ended = eventually_within(Duration::from_mins(1), "the operator to stop", async || {
            self.task.is_finished().then_some(())
        });
        ended.await;
        match (&mut self.task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => panic!("the operator failed: {error}"),
            Err(error) => panic!("the operator panicked: {error}"),
        }
    }

    /// Kills it as a crash would: nothing is finished, nothing given back.
    pub async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for RunningOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What tests of operators do with objects. Names are in the test's own namespace, or cluster-scoped.
impl Cluster {
    fn path(&self, kind: &Kind, name: &str) -> String {
        match kind.scope() {
            Scope::Namespaced => kind.object_path(&Key::namespaced(self.namespace(), name)),
            Scope::Cluster => kind.object_path(&Key::cluster(name)),
        }
    }

    /// Defines a custom kind, unless it is there, and waits until it is served.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn define(&self, definition: Value) {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let root = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (status, answer) = self.request(Method::POST, root, "application/json", &definition).await;
        assert!(status.is_success() || status == StatusCode::CONFLICT, "defining {name}: {status} {answer}");
        let path = format!("{root}/{name}");
        eventually(&format!("{name} to be served"), async || {
            let (_, found) = self.get(&path).await;
            let conditions = found["status"]["conditions"].as_array()?;
            let served =
                |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
            conditions.iter().any(served).then_some(())
        })
        .await;
        let version = definition["spec"]["versions"][0]["name"].as_str().unwrap_or_default();
        let plural = &definition["spec"]["names"]["plural"];
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let place = match definition["spec"]["scope"].as_str() {
            Some("Namespaced") => format!("namespaces/{}/", self.namespace()),
            _ => String::new(),
        };
        let list = format!("/apis/{group}/{version}/{place}{}", plural.as_str().unwrap_or_default());
        eventually(&list, async || self.get(&list).await.0.is_success().then_some(())).await;
    }

    /// Creates an object of a kind that the server knows, in the test's namespace if it names none.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn create(&self, mut object: Value) -> Value {
        let (api_version, kind) = (text(&object, "apiVersion"), text(&object, "kind"));
        let root = if api_version.contains('/') {
            format!("/apis/{api_version}")
        } else {
            format!("/api/{api_version}")
        };
        let (_, resources) = self.get(&root).await;
        let found = resources["resources"].as_array().into_iter().flatten().find(|resource| {
            resource["kind"] == kind && !resource["name"].as_str().unwrap_or_default().contains('/')
        });
        let found = found.unwrap_or_else(|| panic!("the server has no {kind} in {api_version}"));
        let scope = if found["namespaced"] == true { Scope::Namespaced } else { Scope::Cluster };
        let kind = Kind::new(&api_version, &kind, found["name"].as_str().unwrap_or_default(), scope);
        let given = object.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned);
        let namespace = given.unwrap_or_else(|| self.namespace().to_owned());
        if scope == Scope::Namespaced {
            object["metadata"]["namespace"] = Value::from(namespace.as_str());
        }
        let path = kind.collection_path((scope == Scope::Namespaced).then_some(namespace.as_str()));
        let (status, answer) = self.request(Method::POST, &path, "application/json", &object).await;
        assert!(status.is_success(), "creating {object}: {status} {answer}");
        answer
    }

    /// The object of this name.
    pub async fn find(&self, kind: &Kind, name: &str) -> Option<Value> {
        let (status, answer) = self.get(&self.path(kind, name)).await;
        status.is_success().then_some(answer)
    }

    /// Changes an object by a JSON merge patch.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn patch(&self, kind: &Kind, name: &str, patch: Value) -> Value {
        self.patch_path(&self.path(kind, name), patch).await
    }

    /// Changes an object's status by a JSON merge patch: `{"status": …}`.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn patch_status(&self, kind: &Kind, name: &str, patch: Value) -> Value {
        self.patch_path(&format!("{}/status", self.path(kind, name)), patch).await
    }

    async fn patch_path(&self, path: &str, patch: Value) -> Value {
        let (status, answer) =
            self.request(Method::PATCH, path, "application/merge-patch+json", &patch).await;
        assert!(status.is_success(), "patching {path} with {patch}: {status} {answer}");
        answer
    }

    /// Deletes an object, as kubectl does: what it owns goes after it, also where a request that says nothing would leave it behind.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn delete(&self, kind: &Kind, name: &str) {
        let path = self.path(kind, name);
        let body = json!({"propagationPolicy": "Background"});
        let (status, answer) = self.request(Method::DELETE, &path, "application/json", &body).await;
        assert!(status.is_success(), "deleting {path}: {status} {answer}");
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
        self.send(request.body(body).unwrap_or_else(|error| panic!("{path}: {error}"))).await
    }
}

fn text(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_else(|| panic!("{object} has no {field}")).to_owned()
}
