//! A cluster in which the operator runs, and networks in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstay::{Key, Kind, Operator};
use mainstay_local::controllers;
use mainstay_local::stand_in::simulated_node;
use mainstay_networks::kinds::Network;
use mainstay_networks::simulation::HttpManagers;
use mainstay_networks::{NAME, configure_with};
use mainstay_testkit::{Cluster, ClusterKind, RunningOperator, for_each_own_cluster};
use serde_json::{Value, json};

use crate::suite::crowd::Crowd;

/// How long a story waits for anything. kube-controller-manager collects what a new kind owns only after up to a minute.
const PATIENCE: Duration = Duration::from_mins(2);

/// A cluster with a node, and the operator.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) crowd: Arc<Crowd>,
    running: Vec<RunningOperator>,
}

/// Runs a test in each kind of cluster that there is and that the test run does not leave out.
pub(crate) async fn in_each_world(test: impl AsyncFn(&World)) {
    for_each_own_cluster("networks with kube-controller-manager", async |cluster| {
        let world = World::of(cluster).await;
        test(&world).await;
        world.stop().await;
    })
    .await;
}

impl World {
    async fn of(cluster: Cluster) -> Self {
        for definition in mainstay_networks::kinds::definitions() {
            cluster.define(json!(definition)).await;
        }
        let mut operators = simulated_node(cluster.client(), "local").await.unwrap();
        if cluster.kind() == ClusterKind::Embedded {
            let builder = controllers::configure(Operator::builder(controllers::NAME, cluster.client()));
            operators.push(builder.build().unwrap());
        }
        let crowd = Arc::new(Crowd::default());
        let builder = Operator::builder(NAME, cluster.client());
        operators.push(
            configure_with(builder, Arc::clone(&crowd) as _, Arc::new(HttpManagers::default()))
                .build()
                .unwrap(),
        );
        let running = operators.into_iter().map(RunningOperator::start).collect();
        Self { cluster, crowd, running }
    }

    async fn stop(mut self) {
        for operator in self.running.drain(..) {
            operator.kill().await;
        }
    }

    /// Makes a network of two peers, with these fields besides.
    pub(crate) async fn network(&self, name: &str, spec: Value) {
        let mut all = json!({
            "replicas": 2, "topology": {"observeSeconds": 1}, "peers": [{"image": "example.com/peer:1"}],
        });
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let metadata = json!({"name": name});
        let (version, kind) = (networks().api_version(), "Network");
        self.cluster
            .create(json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": all}))
            .await;
    }

    pub(crate) async fn patch(&self, name: &str, spec: Value) {
        self.cluster.patch(&networks(), name, json!({"spec": spec})).await;
    }

    /// Something in the namespace of a network.
    pub(crate) async fn part(&self, network: &str, kind: &Kind, name: &str) -> Option<Value> {
        let path = kind.object_path(&Key::namespaced(&format!("network-{network}"), name));
        let (status, found) = self.cluster.get(&path).await;
        status.is_success().then_some(found)
    }

    /// All of a kind in the namespace of a network.
    pub(crate) async fn parts(&self, network: &str, kind: &Kind) -> Vec<Value> {
        let (_, list) = self.cluster.get(&kind.collection_path(Some(&format!("network-{network}")))).await;
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until something is there.
    ///
    /// # Panics
    /// After a while, with the network as it is.
    pub(crate) async fn until<T>(&self, network: &str, what: &str, probe: impl AsyncFn() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            if Instant::now() > deadline {
                let network = self.cluster.find(&networks(), network).await.unwrap_or_default();
                panic!("waited in vain for {what} on {}: {network:#}", self.cluster.kind());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the network is as it should be.
    pub(crate) async fn until_network(&self, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        self.until(name, what, async || self.cluster.find(&networks(), name).await.filter(&is)).await
    }

    /// Waits until the network is ready, as its present spec says.
    pub(crate) async fn until_ready(&self, name: &str) -> Value {
        self.until_network(name, "being ready", |network| {
            let ready = condition(network, "Ready");
            ready["status"] == "True" && ready["observedGeneration"] == network["metadata"]["generation"]
        })
        .await
    }

    /// Waits until a condition of the network has this reason.
    pub(crate) async fn until_reason(&self, name: &str, type_: &str, reason: &str) -> Value {
        self.until_network(name, reason, |network| condition(network, type_)["reason"] == reason).await
    }
}

pub(crate) fn networks() -> Kind {
    Kind::of::<Network>()
}

/// A condition of an object.
pub(crate) fn condition(object: &Value, type_: &str) -> Value {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default()
}

/// The names of the peers in a status.
pub(crate) fn listed(network: &Value) -> Vec<String> {
    let all = network["status"]["peers"].as_array().into_iter().flatten();
    let name = |peer: &Value| peer.as_object()?.values().next()?["name"].as_str().map(str::to_owned);
    all.filter_map(name).collect()
}

/// The address of a peer in a status.
pub(crate) fn address(network: &Value, place: usize) -> String {
    let url = network["status"]["peers"][place]["ipfs"]["ipfsRpcAddr"].as_str().unwrap_or_default();
    url.trim_start_matches("http://").trim_end_matches(":5001").to_owned()
}
