//! A cluster in which the operator runs, and plugins in it: kinds with their classes and templates.

use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use mainstay::{Kind, Operator, Scope};
use mainstay_local::controllers;
use mainstay_local::stand_in::simulated_node;
use mainstay_testkit::{Cluster, ClusterKind, RunningOperator, eventually, for_each_own_cluster};
use serde_json::{Value, json};

use crate::simulation::plugin;
pub(crate) use crate::simulation::plugin::{classes, requests, template, templates};

/// How long a story waits for anything. kube-controller-manager collects what a new kind owns only after up to a minute.
const PATIENCE: Duration = Duration::from_secs(90);

/// A cluster with a node, and the operator.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    running: Vec<RunningOperator>,
    streams: Option<RunningOperator>,
}

/// Runs a test in each kind of cluster that there is and that the test run does not leave out.
pub(crate) async fn in_each_world(test: impl AsyncFn(&mut World)) {
    for_each_own_cluster("streams with kube-controller-manager", async |cluster| {
        let mut world = World::of(cluster).await;
        test(&mut world).await;
        world.stop().await;
    })
    .await;
}

/// The operator with this client.
pub(crate) fn operator(client: kube::Client) -> Operator {
    mainstay_streams::configure(Operator::builder(mainstay_streams::NAME, client)).build().unwrap()
}

impl World {
    async fn of(cluster: Cluster) -> Self {
        for definition in mainstay_streams::kinds::definitions() {
            cluster.define(definition).await;
        }
        let mut operators = simulated_node(cluster.client(), "local").await.unwrap();
        if cluster.kind() == ClusterKind::Embedded {
            let builder = controllers::configure(Operator::builder(controllers::NAME, cluster.client()));
            operators.push(builder.build().unwrap());
        }
        let running = operators.into_iter().map(RunningOperator::start).collect();
        let mut world = Self { cluster, running, streams: None };
        world.start();
        world
    }

    /// Starts the operator.
    pub(crate) fn start(&mut self) {
        self.start_as(self.cluster.client());
    }

    /// Starts the operator as somebody else.
    pub(crate) fn start_as(&mut self, client: kube::Client) {
        self.streams = Some(RunningOperator::start(operator(client)));
    }

    /// The operator that runs.
    pub(crate) fn streams(&self) -> &Operator {
        self.streams.as_ref().unwrap().operator()
    }

    /// Kills the operator.
    pub(crate) async fn kill(&mut self) {
        if let Some(streams) = self.streams.take() {
            streams.kill().await;
        }
    }

    async fn stop(&mut self) {
        self.kill().await;
        for operator in self.running.drain(..) {
            operator.kill().await;
        }
    }

    /// Installs a plugin: a kind of this name, its class with these fields besides, and a template of the kind's plural whose pods run for
    /// ever.
    pub(crate) async fn plugin(&self, kind: &str, class_spec: Value) -> Plugin<'_> {
        let plugin = self.uninstalled(kind);
        self.cluster.define(plugin.definition()).await;
        self.cluster.create(plugin.class(&class_spec)).await;
        self.template(plugin.plural(), json!({"mainstay.dev/ends-after": "never"})).await;
        self.until_class(plugin.plural(), "Ready").await;
        plugin
    }

    /// A plugin of which nothing is there yet.
    pub(crate) fn uninstalled(&self, kind: &str) -> Plugin<'_> {
        Plugin { world: self, kind: plugin::streams(kind) }
    }

    /// Makes a template whose pods do as their annotations say.
    pub(crate) async fn template(&self, name: &str, simulation: Value) {
        self.cluster.create(template(name, &simulation)).await;
    }

    pub(crate) async fn until_class(&self, name: &str, phase: &str) -> Value {
        self.until(&classes(), name, &format!("phase {phase}"), |class| class["status"]["phase"] == phase)
            .await
    }

    /// Waits until an object is as it should be.
    ///
    /// # Panics
    /// After a while, with the object as it is.
    pub(crate) async fn until(
        &self,
        kind: &Kind,
        name: &str,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.cluster.find(kind, name).await;
            if let Some(found) = found.as_ref().filter(|object| is(object)) {
                return found.clone();
            }
            let kind = kind.kind();
            assert!(Instant::now() < deadline, "waited in vain for {kind} {name} to have {what}: {found:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Deletes a Job and its pods, as kubectl does.
    pub(crate) async fn delete_job(&self, job: &Value) {
        self.delete_with(job, "?propagationPolicy=Background").await;
    }

    /// Deletes a Job without a word about its pods: the server leaves them.
    pub(crate) async fn delete_job_alone(&self, job: &Value) {
        self.delete_with(job, "").await;
    }

    async fn delete_with(&self, job: &Value, query: &str) {
        let name = job["metadata"]["name"].as_str().unwrap();
        let path = format!("{}/{name}", jobs().collection_path(Some(self.cluster.namespace())));
        let request = http::Request::delete(format!("{path}{query}")).body(Vec::new());
        let (status, answer) = self.cluster.send(request.unwrap()).await;
        assert!(status.is_success(), "deleting {name}: {status} {answer}");
    }

    /// Waits until an object is gone.
    pub(crate) async fn until_gone(&self, kind: &Kind, name: &str) {
        eventually(&format!("{} {name} to go", kind.kind()), async || {
            self.cluster.find(kind, name).await.is_none().then_some(())
        })
        .await;
    }

    /// All objects of a kind in the namespace.
    pub(crate) async fn list(&self, kind: &Kind) -> Vec<Value> {
        let namespace = (kind.scope() == Scope::Namespaced).then_some(self.cluster.namespace());
        let (_, list) = self.cluster.get(&kind.collection_path(namespace)).await;
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// The reasons of the events about an object.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", self.cluster.namespace());
        let (_, list) = self.cluster.get(&path).await;
        let all = list["items"].as_array().cloned().unwrap_or_default();
        let of_it = all.iter().filter(|event| event["regarding"]["name"] == name);
        of_it.map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// A plugin: a kind, and its streams.
pub(crate) struct Plugin<'a> {
    pub(crate) world: &'a World,
    pub(crate) kind: Kind,
}

impl Plugin<'_> {
    /// The name of the class and of the template, too.
    pub(crate) fn plural(&self) -> &str {
        self.kind.plural()
    }

    /// The definition of the kind.
    pub(crate) fn definition(&self) -> Value {
        plugin::definition(&self.kind)
    }

    /// The class, with these fields besides.
    pub(crate) fn class(&self, spec: &Value) -> Value {
        plugin::class(&self.kind, spec)
    }

    /// Makes a stream. Its template is that of the plugin unless it names another.
    pub(crate) async fn create(&self, name: &str, spec: Value) -> Value {
        self.world.cluster.create(plugin::stream(&self.kind, name, &spec)).await
    }

    /// Makes a stream, and waits until it runs.
    pub(crate) async fn run(&self, name: &str, spec: Value) -> Value {
        self.create(name, spec).await;
        self.until_phase(name, "Running").await;
        self.job(name).await
    }

    pub(crate) async fn patch(&self, name: &str, spec: Value) {
        self.world.cluster.patch(&self.kind, name, json!({"spec": spec})).await;
    }

    pub(crate) async fn patch_class(&self, spec: Value) {
        self.world.cluster.patch(&classes(), self.plural(), json!({"spec": spec})).await;
    }

    /// Sets an annotation; with null, takes it away.
    pub(crate) async fn annotate(&self, name: &str, key: &str, value: Value) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.world.cluster.patch(&self.kind, name, patch).await;
    }

    /// Waits until a stream is as it should be.
    pub(crate) async fn until(&self, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        self.world.until(&self.kind, name, what, is).await
    }

    /// Waits until a stream is in a phase that is about its present spec.
    pub(crate) async fn until_phase(&self, name: &str, phase: &str) -> Value {
        self.until(name, &format!("phase {phase}"), |stream| {
            let status = &stream["status"];
            status["phase"] == phase && status["observedGeneration"] == stream["metadata"]["generation"]
        })
        .await
    }

    /// Waits until a stream is in a phase, and its latest run has this number.
    pub(crate) async fn until_run(&self, name: &str, number: u64, phase: &str) -> Value {
        self.until(name, &format!("phase {phase} and run {number}"), |stream| {
            stream["status"]["phase"] == phase && stream["status"]["runsStarted"] == number
        })
        .await
    }

    /// The Jobs of a stream, those that are being deleted included.
    pub(crate) async fn all_jobs(&self, name: &str) -> Vec<Value> {
        let mut jobs = self.world.list(&jobs()).await;
        jobs.retain(|job| {
            let labels = &job["metadata"]["labels"];
            labels["mainstay.dev/stream"] == name && labels["mainstay.dev/stream-kind"] == self.kind.kind()
        });
        jobs
    }

    /// The Jobs of a stream that are not being deleted.
    pub(crate) async fn jobs(&self, name: &str) -> Vec<Value> {
        let mut jobs = self.all_jobs(name).await;
        jobs.retain(|job| job["metadata"]["deletionTimestamp"].is_null());
        jobs
    }

    /// The only Job of a stream.
    pub(crate) async fn job(&self, name: &str) -> Value {
        let jobs = self.jobs(name).await;
        assert_eq!(jobs.len(), 1, "{jobs:#?}");
        jobs[0].clone()
    }

    /// Waits until a stream has another Job than this one, and no more.
    pub(crate) async fn until_other_job(&self, name: &str, than: &Value) -> Value {
        let is_other = |jobs: &[Value]| {
            jobs.len() == 1 && jobs.iter().all(|job| job["metadata"]["uid"] != than["metadata"]["uid"])
        };
        self.until_jobs(name, "another Job", is_other).await.remove(0)
    }

    /// Waits until nothing of a stream is left.
    pub(crate) async fn until_no_job(&self, name: &str) {
        self.until_jobs(name, "no Job", <[Value]>::is_empty).await;
    }

    async fn until_jobs(&self, name: &str, what: &str, are: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let jobs = self.all_jobs(name).await;
            if are(&jobs) {
                return jobs;
            }
            if Instant::now() > deadline {
                let stream = self.world.cluster.find(&self.kind, name).await.unwrap_or_default();
                panic!("waited in vain for {name} to have {what}: {jobs:#?} {:#}", stream["status"]);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

pub(crate) fn jobs() -> Kind {
    Kind::of::<Job>()
}

/// A condition of an object: its status and reason.
pub(crate) fn condition(object: &Value, kind: &str) -> (String, String) {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.into_iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

/// What a Job's first container has as this variable.
pub(crate) fn env(job: &Value, name: &str) -> Option<String> {
    let all = job["spec"]["template"]["spec"]["containers"][0]["env"].as_array()?;
    let found = all.iter().find(|variable| variable["name"] == name)?;
    Some(found["value"].as_str().unwrap_or_default().to_owned())
}
