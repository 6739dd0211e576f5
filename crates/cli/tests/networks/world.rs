//! A cluster whose node runs pods as processes, and the operator of networks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use mainstay::{Key, Kind, Operator};
use mainstay_local::cluster::OWN_IMAGES;
use mainstay_local::node::heartbeat::{self, Description};
use mainstay_local::node::process::{Entrypoint, Images, Options, Processes};
use mainstay_local::node::rules::Glob;
use mainstay_local::node::runtime::wake;
use mainstay_local::node::{self, Node};
use mainstay_local::{controllers, scheduler};
use mainstay_networks::config::NetworkConfig;
use mainstay_networks::kinds::{Network, Simulation};
use mainstay_testkit::{Cluster, ClusterKind, RunningOperator, for_each_own_cluster};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything is waited for. kube-controller-manager collects what a new kind owns only after up to a minute.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long processes have to end when a test is over.
const GRACE: Duration = Duration::from_secs(5);
const NODE: &str = "local";
const ADDRESS: &str = "127.0.0.1";

/// A cluster, with what it lacks to run pods.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) kubeconfig: PathBuf,
    processes: Processes,
    running: Vec<RunningOperator>,
    directory: TempDir,
}

/// Runs a test in each kind of cluster that there is and that the test run does not leave out.
pub(crate) async fn in_each_world(test: impl AsyncFn(&World)) {
    let what = "networks of processes on a real cluster";
    for_each_own_cluster(what, async |cluster| World::of(cluster).await.live(&test).await).await;
}

impl World {
    async fn of(cluster: Cluster) -> Self {
        for definition in mainstay_networks::kinds::definitions() {
            cluster.define(json!(definition)).await;
        }
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = cluster.kubeconfig().await;
        let mut options = Options::new(directory.path(), own_images());
        options.kubeconfig = Some(kubeconfig.clone());
        let processes = Processes::open(options, cluster.client()).await.unwrap();
        let mut operators = processes_node(&cluster, &processes).await.to_vec();
        if cluster.kind() == ClusterKind::Embedded {
            let workloads = controllers::configure(Operator::builder(controllers::NAME, cluster.client()));
            operators.push(workloads.build().unwrap());
        }
        let networks = Operator::builder(mainstay_networks::NAME, cluster.client());
        operators.push(mainstay_networks::configure(networks).build().unwrap());
        let running = operators.into_iter().map(RunningOperator::start).collect();
        Self { cluster, kubeconfig, processes, running, directory }
    }

    async fn live(mut self, test: impl AsyncFn(&World)) {
        let began = Instant::now();
        Box::pin(test(&self)).await;
        eprintln!("on the {} cluster in {:.1} s", self.cluster.kind(), began.elapsed().as_secs_f64());
        for operator in self.running.drain(..) {
            operator.kill().await;
        }
        self.processes.shutdown(GRACE).await;
    }

    /// An object in the namespace of a network.
    pub(crate) async fn find(&self, network: &str, kind: &Kind, name: &str) -> Option<Value> {
        let key = Key::namespaced(&NetworkConfig::namespace(network), name);
        let (status, found) = self.cluster.get(&kind.object_path(&key)).await;
        status.is_success().then_some(found)
    }

    /// All of a kind in the namespace of a network.
    pub(crate) async fn parts(&self, network: &str, kind: &Kind) -> Vec<Value> {
        let (_, list) =
            self.cluster.get(&kind.collection_path(Some(&NetworkConfig::namespace(network)))).await;
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Deletes what is in the namespace of a network.
    pub(crate) async fn delete(&self, network: &str, kind: &Kind, name: &str) {
        let path = kind.object_path(&Key::namespaced(&NetworkConfig::namespace(network), name));
        let request = http::Request::delete(&path).body(Vec::new()).unwrap();
        let (status, answer) = self.cluster.send(request).await;
        assert!(status.is_success(), "deleting {path}: {status} {answer}");
    }

    /// Makes a network with this spec.
    pub(crate) async fn network(&self, name: &str, spec: Value) {
        self.cluster.create(object(&networks(), &json!({"name": name}), &spec)).await;
    }

    /// Makes a simulation with this spec.
    pub(crate) async fn simulation(&self, namespace: &str, name: &str, spec: Value) {
        let metadata = json!({"namespace": namespace, "name": name});
        self.cluster.create(object(&simulations(), &metadata, &spec)).await;
    }

    /// Waits until something is there.
    ///
    /// # Panics
    /// After a while, with the network and its simulations as they are.
    pub(crate) async fn until<T>(&self, network: &str, what: &str, probe: impl AsyncFn() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            if Instant::now() > deadline {
                let there = self.cluster.find(&networks(), network).await.unwrap_or_default();
                let namespace = NetworkConfig::namespace(network);
                let (_, load) = self.cluster.get(&simulations().collection_path(Some(&namespace))).await;
                panic!("waited in vain for {what} on {}: {there:#}\n{load:#}", self.cluster.kind());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until a condition of a network has this reason.
    pub(crate) async fn until_reason(&self, network: &str, reason: &str) -> Value {
        self.until(network, reason, async || {
            let found = self.cluster.find(&networks(), network).await?;
            (condition(&found, "Ready")["reason"] == reason).then_some(found)
        })
        .await
    }

    /// Waits until a simulation is judged.
    pub(crate) async fn until_judged(&self, network: &str, name: &str) -> Value {
        self.until(network, "a verdict", async || {
            let found = self.find(network, &simulations(), name).await?;
            found["status"]["verdict"].is_string().then_some(found)
        })
        .await
    }

    /// The processes of pods: what each was started with.
    pub(crate) fn processes(&self) -> Vec<String> {
        let directory = self.directory.path().to_str().unwrap();
        let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let of_pods = all.filter(|process| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(directory)
        });
        let arguments = |process: PathBuf| std::fs::read(process.join("cmdline")).unwrap_or_default();
        of_pods
            .map(|process| String::from_utf8_lossy(&arguments(process)).replace('\0', " "))
            // One that has just ended has none.
            .filter(|line| !line.is_empty())
            .collect()
    }

    /// The directories of pods.
    pub(crate) fn directories(&self) -> usize {
        let pods = std::fs::read_dir(self.directory.path().join("pods"));
        pods.map_or(0, |all| all.flatten().count())
    }
}

/// As `mainstay up` has it: images of this project run this command.
fn own_images() -> Images {
    let command = vec![env!("CARGO_BIN_EXE_mainstay").to_owned()];
    let own = Entrypoint { command, cluster_access: true, ..Entrypoint::default() };
    Images::default().with(Glob::try_from(OWN_IMAGES.to_owned()).unwrap(), own)
}

/// A node that runs pods as processes, and a scheduler. Neither comes with kube-controller-manager.
async fn processes_node(cluster: &Cluster, processes: &Processes) -> [Operator; 2] {
    let capacity = [("cpu", "8"), ("memory", "16Gi"), ("pods", "100")];
    let capacity = capacity.map(|(resource, amount)| (resource.to_owned(), Quantity(amount.to_owned())));
    let description = Description {
        name: NODE.into(),
        address: ADDRESS.into(),
        capacity: capacity.clone().into(),
        allocatable: capacity.into(),
        labels: [].into(),
        version: "v1.36.3".into(),
    };
    heartbeat::register(cluster.client(), &description, Timestamp::now()).await.unwrap();
    let node = Node::new(NODE, ADDRESS).runtime(Arc::new(processes.clone()));
    let builder = node::configure(Operator::builder(node::NAME, cluster.client()), &node);
    let node = heartbeat::configure(builder, description).build().unwrap();
    let looking = node.clone();
    processes.when_changed(move |pod| wake(&looking, pod));
    let scheduler = scheduler::configure(Operator::builder(scheduler::NAME, cluster.client()));
    [node, scheduler.build().unwrap()]
}

fn object(kind: &Kind, metadata: &Value, spec: &Value) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": metadata, "spec": spec})
}

pub(crate) fn networks() -> Kind {
    Kind::of::<Network>()
}

pub(crate) fn simulations() -> Kind {
    Kind::of::<Simulation>()
}

/// A condition of an object.
pub(crate) fn condition(object: &Value, type_: &str) -> Value {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default()
}
