//! A network that is ready, of pods that come back when they are deleted, and what a user does there.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_local::controllers::{self, configure_only};
use mainstay_networks::NAME;
use mainstay_networks::kinds::{Adapter, Network, Simulation, definitions};
use mainstay_networks::peers::{self, Peer};
use mainstay_networks::simulation::{self, Means};
use mainstay_testkit::simulation::{Check, Script, State, check, operator, operator_at};
use serde_json::{Value, json};

use crate::load::{self, Load};

pub(crate) const NAMESPACE: &str = "network-lab";
pub(crate) const PEERS: usize = 3;
pub(crate) const RUN_TIME: Duration = Duration::from_secs(4);

/// The operator of simulations alone, in the namespace of a network.
pub(crate) fn world() -> Check {
    let workloads = operator(controllers::NAME, |operator| {
        configure_only(operator, |kind| ["StatefulSet", "Job", "Pod"].contains(&kind.kind()))
    });
    let simulations = operator_at(NAME, |operator, seat| {
        let load = Load::at(seat);
        let (client, rpc, managers) = (operator.client(), load.clone(), load);
        operator.controller(simulation::controller(Means { client, rpc, managers }))
    });
    let check = check(simulations)
        .beside(workloads)
        .beside(load::pods())
        .may_remove(&Kind::of::<Pod>())
        .ignoring_in(&simulations_kind(), "/status/startedAt")
        .ignoring_in(&simulations_kind(), "/status/finishedAt")
        .ignoring_in(&simulations_kind(), "/status/samples")
        .ignoring_in(&simulations_kind(), "/status/faults/*/startedAt")
        .always("who is judged keeps nobody apart", judged_is_mended);
    let definitions = definitions().into_iter().map(|definition| json!(definition));
    let all = definitions.chain(lab());
    all.fold(check, Check::given)
}

pub(crate) fn simulations_kind() -> Kind {
    Kind::of::<Simulation>()
}

/// The network, its peers and what is told of them.
fn lab() -> [Value; 4] {
    let network = Kind::of::<Network>();
    let labels = json!({"app": "peers", "mainstay.dev/role": "peer"});
    let listed: Vec<Peer> = (0..PEERS)
        .map(|place| Peer {
            tag: "ipfs".into(),
            name: format!("peers-0-{place}"),
            peer_id: format!("id-{place}"),
            adapter: Adapter::Kubo,
            rpc_addr: format!("http://10.1.0.{place}:5001"),
            p2p_addrs: vec![format!("/ip4/10.1.0.{place}/tcp/4001/p2p/id-{place}")],
            others: BTreeMap::new(),
        })
        .collect();
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({
            "apiVersion": network.api_version(), "kind": "Network", "metadata": {"name": "lab"},
            "spec": {"replicas": PEERS},
        }),
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

/// The network becomes ready.
pub(crate) fn ready() -> Script {
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "AllConnected", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z",
    });
    let status = json!({
        "observedGeneration": 1, "replicas": PEERS, "readyReplicas": PEERS, "namespace": NAMESPACE, "components": 1,
        "conditions": [ready],
    });
    Script::new().patch_status(&Kind::of::<Network>(), "lab", json!({"status": status}))
}

/// The simulation `load`, of a few seconds.
pub(crate) fn load(spec: &Value) -> Value {
    let kind = simulations_kind();
    let mut all = json!({
        "scenario": "identity", "runTimeSeconds": RUN_TIME.as_secs(), "image": "example.com/load:1",
        "criteria": [{"metric": "requests", "aggregation": "min", "comparison": ">=", "threshold": 100}],
    });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let metadata = json!({"name": "load", "namespace": NAMESPACE});
    json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": metadata, "spec": all})
}

/// Once there is a verdict, or no simulation, everybody lets everybody in.
fn judged_is_mended(state: &State) -> Result<(), String> {
    let mut simulations = state.of(&simulations_kind());
    if simulations.any(|simulation| simulation["status"]["phase"] != "Finished") {
        return Ok(());
    }
    let kept =
        state.external().iter().filter(|(name, kept)| name.ends_with("keeps out") && **kept != json!([]));
    let kept: Vec<String> = kept.map(|(name, kept)| format!("{name} {kept}")).collect();
    if kept.is_empty() { Ok(()) } else { Err(kept.join(", ")) }
}

/// The operator dies before and after each of its writes. Without that, all of this happens.
pub(crate) fn disturbed(script: Script, happens: &[&str]) {
    let check = world().script(script);
    let trace = check.trace().to_string();
    for text in happens {
        assert!(trace.contains(text), "{text:?} never happens:\n{trace}");
    }
    check.every_crash_point().run();
}
