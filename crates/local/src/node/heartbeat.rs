//! The Node object of a node, and its lease: that it is there, what it has, and that it is alive.
//!
//! A node that is alive renews its lease in `kube-node-lease` every ten seconds, and says anew how it is every five minutes. The
//! lease is owned by the Node and goes with it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    Node as NodeObject, NodeAddress, NodeCondition, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams};
use mainstay::{Controller, Error, OperatorBuilder, SyncRequest, SyncResponse};
use serde_json::{Value, json};

use super::lifecycle::left;
use super::{NAME, repetition};
use crate::time::whole_seconds;

const LEASES: &str = "kube-node-lease";
const LEASE_SECONDS: i32 = 40;
const RENEWED_EVERY: Duration = Duration::from_secs(10);
const REPORTED_EVERY: Duration = Duration::from_mins(5);
/// What the API server puts on every new node.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// How often the taint is taken off anew because somebody has changed the node meanwhile.
const CONFLICTS_MAX: usize = 10;

/// A node, as its object describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its address within the cluster.
    pub address: String,
    /// What it has, by resource: `cpu`, `memory`, `pods`.
    pub capacity: BTreeMap<String, Quantity>,
    /// What pods can have of it.
    pub allocatable: BTreeMap<String, Quantity>,
    /// Further labels.
    pub labels: BTreeMap<String, String>,
    /// The version of Kubernetes that it reports: `v1.36.3`.
    pub version: String,
}

/// Why a node cannot be registered.
#[derive(Debug, thiserror::Error)]
#[error("node {node} cannot be registered: {doing} failed")]
pub struct CannotRegister {
    node: String,
    doing: &'static str,
    source: kube::Error,
}

impl Description {
    /// The Node as it is applied: without what others set.
    fn object(&self) -> Value {
        let mut labels = BTreeMap::from([
            ("kubernetes.io/hostname".to_owned(), self.name.clone()),
            ("kubernetes.io/os".to_owned(), "linux".to_owned()),
            ("kubernetes.io/arch".to_owned(), architecture().to_owned()),
        ]);
        labels.extend(self.labels.clone());
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": labels}})
    }

    /// The status that follows a recorded one.
    fn status(&self, recorded: &NodeStatus, now: Timestamp) -> NodeStatus {
        let address =
            |type_: &str, address: &str| NodeAddress { address: address.to_owned(), type_: type_.to_owned() };
        NodeStatus {
            addresses: Some(vec![address("InternalIP", &self.address), address("Hostname", &self.name)]),
            allocatable: Some(self.allocatable.clone()),
            capacity: Some(self.capacity.clone()),
            conditions: Some(conditions(recorded, now)),
            node_info: Some(self.system()),
            ..recorded.clone()
        }
    }

    fn system(&self) -> NodeSystemInfo {
        NodeSystemInfo {
            architecture: architecture().to_owned(),
            container_runtime_version: format!("mainstay://{}", env!("CARGO_PKG_VERSION")),
            kubelet_version: self.version.clone(),
            operating_system: "linux".to_owned(),
            os_image: "Mainstay".to_owned(),
            ..NodeSystemInfo::default()
        }
    }
}

/// Has a node's object and lease kept up to date. Without this, an operator runs its pods all the same.
pub fn configure(operator: OperatorBuilder, description: Description) -> OperatorBuilder {
    let controller = Controller::of::<NodeObject>().owns::<Lease>();
    let controller = controller.sync(move |request: &SyncRequest| sync(&description, request));
    operator.loops(repetition()).controller(controller)
}

/// Makes the Node if it is missing, and has it ready for pods.
///
/// # Errors
/// If the API server refuses something or does not answer.
pub async fn register(
    client: kube::Client,
    description: &Description,
    now: Timestamp,
) -> Result<(), CannotRegister> {
    let nodes: Api<NodeObject> = Api::all(client);
    let (name, params) = (description.name.as_str(), PatchParams::apply(NAME).force());
    let failed = |doing| move |source| CannotRegister { node: name.to_owned(), doing, source };
    let node = nodes.patch(name, &params, &Patch::Apply(description.object())).await;
    let node = node.map_err(failed("applying the object"))?;
    let status = description.status(&node.status.unwrap_or_default(), now);
    let status = json!({"apiVersion": "v1", "kind": "Node", "status": status});
    let node = nodes.patch_status(name, &params, &Patch::Apply(status)).await;
    let node = node.map_err(failed("applying the status"))?;
    let mut taken = take_taint_off(&nodes, node).await;
    // A controller of nodes may have its say about a new one at the same moment. Each has only so much to say.
    for _ in 0..CONFLICTS_MAX {
        if !matches!(&taken, Err(kube::Error::Api(status)) if status.code == 409) {
            break;
        }
        let node = nodes.get(name).await.map_err(failed("reading it again"))?;
        taken = take_taint_off(&nodes, node).await;
    }
    taken.map_err(failed("taking the taint off"))
}

async fn take_taint_off(nodes: &Api<NodeObject>, node: NodeObject) -> Result<(), kube::Error> {
    let is_not_ready = |taint: &Taint| taint.key == NOT_READY;
    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    if !taints.iter().any(is_not_ready) {
        return Ok(());
    }
    let others: Vec<_> = taints.into_iter().filter(|taint| !is_not_ready(taint)).collect();
    let patch = json!({
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "spec": {"taints": others},
    });
    let name = node.metadata.name.unwrap_or_default();
    nodes.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
}

fn sync(description: &Description, request: &SyncRequest) -> Result<SyncResponse, Error> {
    if request.name() != description.name {
        return Ok(SyncResponse::new());
    }
    let (node, now): (NodeObject, _) = (request.parent()?, request.now());
    let leases = request.children::<Lease>();
    let lease = leases.iter().next().transpose()?;
    let renewed = lease.and_then(|lease| lease.spec?.renew_time).map(|time| time.0);
    // A lease that was renewed in the future was renewed before the clock was set back.
    let current =
        renewed.filter(|renewed| *renewed <= now && left(next(*renewed, RENEWED_EVERY), now).is_some());
    let renewed = current.unwrap_or(now);
    let child = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": description.name, "namespace": LEASES},
        "spec": {
            "holderIdentity": description.name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": MicroTime(renewed),
        },
    });
    let wait = left(next(renewed, RENEWED_EVERY), now).unwrap_or(RENEWED_EVERY);
    let status = description.status(&node.status.unwrap_or_default(), now);
    Ok(SyncResponse::from_status(status)?.with_child(child)?.requeue_after(wait))
}

fn next(from: Timestamp, after: Duration) -> Timestamp {
    SignedDuration::try_from(after)
        .ok()
        .and_then(|after| from.checked_add(after).ok())
        .unwrap_or(Timestamp::MAX)
}

/// The conditions that follow recorded ones. Those of others stay.
fn conditions(recorded: &NodeStatus, now: Timestamp) -> Vec<NodeCondition> {
    let own = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let known = |type_: &str| recorded.conditions.iter().flatten().find(|known| known.type_ == type_);
    let others = recorded.conditions.iter().flatten();
    let others = others.filter(|known| own.iter().all(|(type_, ..)| known.type_ != *type_)).cloned();
    let own = own.iter().map(|(type_, status, reason, message)| {
        let known = known(type_).filter(|known| known.status == *status);
        let reported = known.and_then(|known| known.last_heartbeat_time.clone());
        let current =
            reported.filter(|time| time.0 <= now && left(next(time.0, REPORTED_EVERY), now).is_some());
        NodeCondition {
            type_: (*type_).to_owned(),
            status: (*status).to_owned(),
            reason: Some((*reason).to_owned()),
            message: Some((*message).to_owned()),
            last_heartbeat_time: Some(current.unwrap_or_else(|| whole_seconds(now))),
            last_transition_time: known
                .and_then(|known| known.last_transition_time.clone())
                .or(Some(whole_seconds(now))),
        }
    });
    others.chain(own).collect()
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
