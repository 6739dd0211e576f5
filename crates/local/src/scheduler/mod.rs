//! Pods that have no node yet, and the one that each gets.
//!
//! ```text
//! Pod, nodes, all pods, its claims ─▶ decide ─▶ a node      ─▶ is there still room? ─▶ POST binding
//!                                            └▶ none, why   ─▶ condition PodScheduled=False
//!                                            └▶ a node on which its claims get volumes first
//! ```
//!
//! Everything that keeps pods from nodes is looked at as kube-scheduler does, and told in its words: unschedulable nodes, taints, node
//! selectors and required affinity, requests against what is allocatable, where volumes can be used. Of several nodes that one
//! is taken which has the largest part of its resources left.
//!
//! No node is given more than it has. One pod is placed at a time, by what the server itself said of the pods of its node not more than a
//! second ago and by what was placed there since (`ledger`): what this or a former scheduler has just placed there may not have come
//! round to the cache. A second scheduler beside this one would break that, as it would in Kubernetes.
//!
//! What is absent: priorities and preemption, affinity between pods and topology spread, host ports, preferred affinity, limits of
//! volumes per node, `ReadWriteOncePod`, dynamic resources, extenders, profiles. Pods with other schedulers' names are theirs.

mod decide;
mod ledger;
mod placed;
mod resources;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod, PodCondition};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use mainstay::events::Event;
use mainstay::{Controller, Error, OperatorBuilder, SyncRequest, SyncResponse};
use serde_json::{Value, json};

use crate::controllers::pods::has_ended;
use crate::controllers::storage::SELECTED_NODE;
use crate::time::whole_seconds;
use decide::{Decision, World, decide};
use ledger::Ledger;
use placed::Placed;

/// The operator's name, and its field manager.
pub const NAME: &str = "mainstay-scheduler";
/// The name by which pods ask for this scheduler; they do unless they say otherwise.
const SCHEDULER: &str = "default-scheduler";
/// How long a request may take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);
/// When to look again after somebody else was faster.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Adds the scheduler to an operator. One pod is looked at after the other.
pub fn configure(operator: OperatorBuilder) -> OperatorBuilder {
    let (client, ledger) = (operator.client(), Arc::new(Ledger::default()));
    let controller = Controller::of::<Pod>()
        .reads_everywhere::<Pod>()
        .reads::<Node>()
        .reads::<PersistentVolumeClaim>()
        .reads::<PersistentVolume>()
        .reads::<StorageClass>()
        .sync_async(move |request| sync(request, client.clone(), Arc::clone(&ledger)));
    operator.concurrency(1).controller(controller)
}

async fn sync(request: SyncRequest, client: Client, ledger: Arc<Ledger>) -> Result<SyncResponse, Error> {
    let pod: Pod = request.parent()?;
    if !is_waiting(&pod) {
        return Ok(SyncResponse::new());
    }
    let server = Server { client, pod: &pod, ledger: &ledger };
    let mut world = observe(&request, &pod)?;
    world.used = ledger.known();
    // If enough is known of all nodes, nobody else's pods have to be looked at.
    if world.nodes.iter().all(|node| world.used.contains_key(&node.name_any()))
        && let Decision::Bind(node) = decide(&pod, &world)
    {
        return server.bind(&world, &node).await;
    }
    world.used.clear();
    world.pods = request.select_everywhere("")?;
    world.pods.retain(|pod: &Placed| pod.node().is_some());
    match decide(&pod, &world) {
        Decision::Bind(node) => server.bind(&world, &node).await,
        Decision::Await { node, claims } => server.select_node(&node, &claims).await,
        Decision::Unschedulable(message) => server.refuse(&message, request.now()).await,
    }
}

/// Whether a pod is to be placed by this scheduler, now. One that is gated says so since it was made.
fn is_waiting(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    spec.node_name.as_deref().unwrap_or_default().is_empty()
        && spec.scheduler_name.as_deref().unwrap_or(SCHEDULER) == SCHEDULER
        && spec.scheduling_gates.as_deref().unwrap_or_default().is_empty()
        && pod.metadata.deletion_timestamp.is_none()
        && !has_ended(pod)
}

/// All that a decision looks at, but other pods.
fn observe(request: &SyncRequest, pod: &Pod) -> Result<World, Error> {
    let mut world = World { nodes: request.select("")?, ..World::default() };
    for name in decide::claim_names(pod) {
        let claim: Option<PersistentVolumeClaim> = request.get(&name)?;
        world.claims.insert(name, claim);
    }
    if !world.claims.is_empty() {
        world.classes = request.select("")?;
        world.volumes = request.select("")?;
    }
    Ok(world)
}

/// The only place with effects: what is told the server about a pod. Conditions and bindings are parts of a pod that others write as
/// well, so they are sent as the requests that Kubernetes has for them, and not as a status of the scheduler's own.
struct Server<'a> {
    client: Client,
    pod: &'a Pod,
    ledger: &'a Ledger,
}

impl Server<'_> {
    async fn bind(&self, world: &World, node: &str) -> Result<SyncResponse, Error> {
        if !self.ledger.known().contains_key(node) {
            let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
            let pods: Api<Placed> = Api::all(self.client.clone());
            let Some(there) = carry_out(pods.list(&on_node)).await? else { return Ok(again()) };
            self.ledger.read(node, &there.items);
        }
        let has_room =
            self.ledger.known().get(node).is_some_and(|used| decide::has_room(self.pod, world, node, used));
        if !has_room {
            self.ledger.forget(node);
            return Ok(again());
        }
        let (namespace, name) = (self.pod.namespace().unwrap_or_default(), self.pod.name_any());
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": namespace, "name": name, "uid": self.pod.uid()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let options = PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() };
        let pods = self.pods();
        let bound = pods.create_subresource::<_, Value>("binding", &name, &options, &binding);
        match carry_out(bound).await {
            Ok(Some(_)) => {
                let wanted = resources::requests(&self.pod.spec.clone().unwrap_or_default());
                self.ledger.place(node, &self.pod.uid().unwrap_or_default(), &wanted);
            }
            other => {
                // It may have been carried out all the same.
                self.ledger.forget(node);
                return other.map(|_| again());
            }
        }
        let message = format!("Successfully assigned {namespace}/{name} to {node}");
        Ok(SyncResponse::new().with_event(Event::normal("Scheduled", &message).with_action("Binding")))
    }

    /// Tells the claims that wait for this pod where it will run. It is placed once they have volumes there.
    async fn select_node(&self, node: &str, claims: &[String]) -> Result<SyncResponse, Error> {
        let api: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &self.pod.namespace().unwrap_or_default());
        let patch = Patch::Merge(json!({"metadata": {"annotations": {SELECTED_NODE: node}}}));
        for claim in claims {
            if carry_out(api.patch(claim, &manager(), &patch)).await?.is_none() {
                return Ok(again());
            }
        }
        Ok(SyncResponse::new())
    }

    async fn refuse(&self, message: &str, now: Timestamp) -> Result<SyncResponse, Error> {
        let Some(condition) = refusal(self.pod, message, now) else { return Ok(SyncResponse::new()) };
        let patch = json!({"metadata": {"uid": self.pod.uid()}, "status": {"conditions": [condition]}});
        let (pods, name) = (self.pods(), self.pod.name_any());
        if carry_out(pods.patch_status(&name, &manager(), &Patch::Strategic(patch))).await?.is_none() {
            return Ok(again());
        }
        Ok(SyncResponse::new()
            .with_event(Event::warning("FailedScheduling", message).with_action("Scheduling")))
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.pod.namespace().unwrap_or_default())
    }
}

/// The condition of a pod for which there is no node, if it does not have it yet.
fn refusal(pod: &Pod, message: &str, now: Timestamp) -> Option<PodCondition> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let known = conditions.iter().find(|condition| condition.type_ == "PodScheduled");
    let since =
        known.filter(|known| known.status == "False").and_then(|known| known.last_transition_time.clone());
    let condition = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: since.or_else(|| Some(whole_seconds(now))),
        last_probe_time: None,
        observed_generation: pod.metadata.generation,
    };
    (known != Some(&condition)).then_some(condition)
}

fn manager() -> PatchParams {
    PatchParams { field_manager: Some(NAME.to_owned()), ..PatchParams::default() }
}

fn again() -> SyncResponse {
    SyncResponse::new().requeue_after(AGAIN_AFTER)
}

/// Waits for a request, but not for ever. `None` if the object is gone or somebody else was faster: then the cache is about to tell.
async fn carry_out<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<Option<T>, Error> {
    match tokio::time::timeout(REQUEST_TIME_MAX, request).await? {
        Ok(answer) => Ok(Some(answer)),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
