//! A cluster in which networks are made.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use mainstay::Kind;
use mainstay_local::controllers::{self, configure_only};
use mainstay_networks::kinds::{Network, definitions};
use mainstay_networks::simulation::HttpManagers;
use mainstay_networks::{NAME, configure_with};
use mainstay_testkit::simulation::{Check, check, operator, operator_at};
use serde_json::{Value, json};

use crate::{peers, properties};

/// The operator with its kinds, among controllers and peers.
pub(crate) fn world() -> Check {
    let workloads = operator(controllers::NAME, |operator| {
        configure_only(operator, |kind| ["StatefulSet", "Job", "Pod"].contains(&kind.kind()))
    });
    let networks = operator_at(NAME, |operator, seat| {
        configure_with(operator, peers::rpc(seat.external()), Arc::new(HttpManagers::default()))
    });
    let check = check(networks)
        .beside(workloads)
        .beside(peers::pods())
        // It is made by chance.
        .ignoring_in(&Kind::of::<Secret>(), "/data/secret");
    let definitions = definitions().into_iter().map(|definition| json!(definition));
    properties::always(definitions.fold(check, Check::given))
}

pub(crate) fn networks() -> Kind {
    Kind::of::<Network>()
}

/// The network `lab`. Peers are asked rarely, because nothing happens to their wires by itself.
pub(crate) fn lab(spec: &Value) -> Value {
    let mut all = json!({
        "replicas": 3, "topology": {"observeSeconds": 60},
        "peers": [{"image": "example.com/peer:1"}],
    });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({
        "apiVersion": networks().api_version(), "kind": "Network", "metadata": {"name": "lab"}, "spec": all,
    })
}
