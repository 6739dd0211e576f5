//! Clusters in which networks are made and simulations run, and what can go wrong there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Secret};
use mainstay::Kind;
use mainstay_local::controllers::{self, configure_only};
use mainstay_networks::kinds::labels::{self, role};
use mainstay_networks::kinds::{Adapter, Network, Simulation, definitions};
use mainstay_networks::peers::{self, Peer};
use mainstay_networks::simulation::{self, Means};
use mainstay_networks::{NAME, configure_with};
use mainstay_testkit::simulation::{Check, Family, Program, Script, Seat, check, operator, operator_at};
use serde_json::{Value, json};

use crate::simulation::managers::Managers;
use crate::simulation::peers::{Peers, filters};
use crate::simulation::pods::{self, Kept, address};
use crate::simulation::properties;

pub(crate) const NAMESPACE: &str = "network-lab";
/// How many peers the network has that simulations find ready.
const PEERS: usize = 2;
/// Longer than anybody waits for anything who has only died.
pub(crate) const QUIET: Duration = Duration::from_secs(45);
/// The same where requests get no answer, which is noticed late.
const QUIET_WITHOUT_ANSWERS: Duration = Duration::from_mins(2);
const SEEDS: u64 = 4;

pub(crate) fn networks() -> Kind {
    Kind::of::<Network>()
}

pub(crate) fn simulations() -> Kind {
    Kind::of::<Simulation>()
}

/// Whether dials that were for nothing are noted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dials {
    Noted,
    Forgiven,
}

/// All that the operator consists of, in an empty cluster.
pub(crate) fn cluster(dials: Dials) -> Check {
    cluster_with(dials, Kept::Nothing)
}

/// The same where more, or less, is kept of peers.
pub(crate) fn cluster_with(dials: Dials, kept: Kept) -> Check {
    let networks = operator_at(NAME, move |operator, seat| {
        configure_with(operator, peers(seat, dials), Arc::new(Managers::at(seat)))
    });
    // It is made by chance.
    let check = among_workloads(networks, kept).ignoring_in(&Kind::of::<Secret>(), "/data/secret");
    properties::of_networks(check, dials)
}

/// The operator of simulations alone, in the namespace of a network whose pods come back when they are deleted.
pub(crate) fn laboratory() -> Check {
    let simulations = operator_at(NAME, |operator, seat| {
        let (client, rpc) = (operator.client(), peers(seat, Dials::Forgiven));
        operator.controller(simulation::controller(Means {
            client,
            rpc,
            managers: Arc::new(Managers::at(seat)),
        }))
    });
    let check = among_workloads(simulations, Kept::Starts).may_remove(&Kind::of::<Pod>());
    let check = laid_out().into_iter().fold(check, Check::given);
    properties::of_simulations(check, Dials::Noted)
}

fn peers(seat: &Seat, dials: Dials) -> Arc<Peers> {
    Arc::new(Peers { outside: seat.external(), strict: dials == Dials::Noted, clock: seat.clock() })
}

fn among_workloads(program: Program, kept: Kept) -> Check {
    let workloads = operator(controllers::NAME, |operator| {
        configure_only(operator, |kind| ["StatefulSet", "Job", "Pod"].contains(&kind.kind()))
    });
    let check = check(program)
        .beside(workloads)
        .beside(pods::pods(kept))
        .beside(filters())
        .ignoring_in(&simulations(), "/status/startedAt")
        .ignoring_in(&simulations(), "/status/finishedAt")
        .ignoring_in(&simulations(), "/status/samples")
        .ignoring_in(&simulations(), "/status/faults/*/startedAt");
    definitions().into_iter().map(|definition| json!(definition)).fold(check, Check::given)
}

/// The network `lab`. Peers are asked rarely, because nothing happens to their wires by itself.
pub(crate) fn lab(spec: &Value) -> Value {
    let all = json!({
        "replicas": 2, "topology": {"observeSeconds": 60},
        "peers": [{"image": "example.com/peer:1"}],
    });
    let (api_version, spec) = (networks().api_version(), with(all, spec));
    json!({"apiVersion": api_version, "kind": "Network", "metadata": {"name": "lab"}, "spec": spec})
}

/// The simulation `load`, of a few seconds.
pub(crate) fn load(spec: &Value) -> Value {
    let kind = simulations();
    let all = json!({
        "scenario": "identity", "runTimeSeconds": 4, "image": "example.com/load:1",
        "criteria": [{"metric": "requests", "aggregation": "min", "comparison": ">=", "threshold": 100}],
    });
    let metadata = json!({"name": "load", "namespace": NAMESPACE});
    json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": metadata, "spec": with(all, spec)})
}

/// All fields of both; where both have one, that of the second.
fn with(mut all: Value, more: &Value) -> Value {
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

/// A network with its peers and what is told of them.
fn laid_out() -> [Value; 4] {
    let labels = json!({"app": "peers", labels::ROLE: role::PEER});
    let listed: Vec<Peer> = (0..PEERS)
        .map(|place| {
            let (name, peer_id) = (format!("peers-0-{place}"), format!("id-{place}"));
            let ip = address(&name);
            Peer {
                tag: "ipfs".into(),
                name,
                adapter: Adapter::Kubo,
                rpc_addr: format!("http://{ip}:5001"),
                p2p_addrs: vec![format!("/ip4/{ip}/tcp/4001/p2p/{peer_id}")],
                peer_id,
                others: BTreeMap::new(),
            }
        })
        .collect();
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        lab(&json!({"replicas": PEERS})),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "keramik-peers", "namespace": NAMESPACE},
            "data": {"peers.json": peers::write(&listed)},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "peers-0", "namespace": NAMESPACE},
            "spec": {
                "replicas": PEERS, "serviceName": "peers-0", "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "peer", "image": "example.com/peer:1"}]},
                },
            },
        }),
    ]
}

/// The network that is laid out becomes ready.
pub(crate) fn ready() -> Script {
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "AllConnected", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z",
    });
    let status = json!({
        "observedGeneration": 1, "replicas": PEERS, "readyReplicas": PEERS, "namespace": NAMESPACE, "components": 1,
        "conditions": [ready],
    });
    Script::new().patch_status(&networks(), "lab", json!({"status": status}))
}

/// Without faults, all of this is in the trace.
pub(crate) fn happens(check: &Check, texts: &[&str]) {
    let trace = check.clone().quiet(QUIET).trace().to_string();
    for text in texts {
        assert!(trace.contains(text), "{text:?} never happens:\n{trace}");
    }
}

/// The operator dies before and after each of its writes.
pub(crate) fn killed(check: Check) {
    check.quiet(QUIET).every_crash_point().run();
}

/// Some combinations of all that can go wrong.
pub(crate) fn disturbed(check: Check) {
    check.quiet(QUIET_WITHOUT_ANSWERS).seeds(SEEDS).run();
}

/// Whatever can go wrong does, at every place; only refused and lost requests, which are more than all else together, come by chance.
pub(crate) fn plagued(check: Check) {
    let check = check.quiet(QUIET_WITHOUT_ANSWERS);
    check.clone().every_fault().but(Family::Requests).run();
    check.seeds(SEEDS).run();
}
