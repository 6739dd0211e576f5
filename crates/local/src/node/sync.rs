//! The handler of pods: looks, decides, acts, looks again, answers.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use mainstay::{Error, Key, SyncRequest, SyncResponse};

use super::holds::observe_holds;
use super::lifecycle::{Addresses, Decision, Situation, decide, events};
use super::runtime::{Launch, Observed, PodId, Runtime};
use super::{Node, simulated};

/// When a container that could not be started is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// What becomes of any pod of the node.
pub(super) async fn sync(node: &Node, request: &SyncRequest) -> Result<SyncResponse, Error> {
    let pod: Pod = request.parent()?;
    let runtime = node.runtime.as_deref().filter(|runtime| is_here(node, &pod) && all_run_by(*runtime, &pod));
    match runtime {
        Some(runtime) => run(node, runtime, request, pod).await,
        None => simulate(node, request),
    }
}

/// What becomes of a pod that runs nowhere. Pure.
pub(super) fn simulate(node: &Node, request: &SyncRequest) -> Result<SyncResponse, Error> {
    let pod: Pod = request.parent()?;
    if !is_here(node, &pod) {
        return Ok(SyncResponse::new());
    }
    let (now, rules) = (request.now(), &*node.rules);
    let own = simulated::address(request.namespace().unwrap_or_default(), request.name());
    let addresses = Addresses { pod: own, host: node.address.to_string() };
    let mut seen = simulated::observe(&pod, rules, now);
    let nothing = BTreeMap::new();
    let mut decision = decide(&Situation {
        pod: &pod,
        seen: &seen.containers,
        refused: &nothing,
        addresses: &addresses,
        now,
    });
    if !decision.starts.is_empty() {
        let holds = observe_holds(request, &pod)?;
        decision
            .starts
            .retain(|start| holds.pod.is_none() && !holds.containers.contains_key(&start.container));
        simulated::start(&pod, rules, &decision.starts, now, &mut seen);
        if holds.pod.is_none() {
            seen.refused.extend(holds.containers);
        }
        decision = decide(&Situation {
            pod: &pod,
            seen: &seen.containers,
            refused: &seen.refused,
            addresses: &addresses,
            now,
        });
    }
    simulated::tell(&mut decision.status, now);
    let response = answer(&pod, decision, seen.next, true)?;
    Ok(response.with_status_annotation(simulated::ANNOTATION, "true"))
}

/// What becomes of a pod that the runtime runs.
async fn run(
    node: &Node,
    runtime: &dyn Runtime,
    request: &SyncRequest,
    pod: Pod,
) -> Result<SyncResponse, Error> {
    let now = request.now();
    let id = PodId {
        namespace: request.namespace().unwrap_or_default().to_owned(),
        name: request.name().to_owned(),
        uid: request.uid().to_owned(),
    };
    node.hand_over(Key::namespaced(&id.namespace, &id.name), &id);
    let addresses = Addresses { pod: runtime.address(&id), host: node.address.to_string() };
    let (seen, nothing) = (observe(runtime, &id, &pod), BTreeMap::new());
    let situation = Situation { pod: &pod, seen: &seen, refused: &nothing, addresses: &addresses, now };
    let decision = decide(&situation);
    if let Some(stop) = &decision.stop {
        runtime.stop(&id, stop.grace_left(now));
    }
    if decision.starts.is_empty() {
        return answer(&pod, decision, None, false);
    }
    let holds = observe_holds(request, &pod)?;
    let mut refused = BTreeMap::new();
    for start in decision.starts.iter().filter(|_| holds.pod.is_none()) {
        let missing = holds.containers.get(&start.container).cloned();
        let launch = Launch {
            pod: id.clone(),
            object: pod.clone(),
            container: start.container.clone(),
            attempt: start.attempt,
            address: addresses.pod.clone(),
        };
        let started = match missing {
            Some(missing) => Err(missing),
            None => runtime.start(launch).await,
        };
        if let Err(error) = started {
            refused.insert(start.container.clone(), error);
        }
    }
    let seen = observe(runtime, &id, &pod);
    let decision = decide(&Situation { seen: &seen, refused: &refused, ..situation });
    let retry = (!refused.is_empty() || holds.pod.is_some()).then_some(RETRY_AFTER);
    answer(&pod, decision, retry, false)
}

fn answer(
    pod: &Pod,
    decision: Decision,
    next: Option<Duration>,
    is_simulated: bool,
) -> Result<SyncResponse, Error> {
    let told = events(pod, &decision.status, is_simulated);
    let mut response = SyncResponse::from_status(decision.status)?;
    for event in told {
        response = response.with_event(event);
    }
    if let Some(wait) = [decision.again, next].into_iter().flatten().min() {
        response = response.requeue_after(wait);
    }
    Ok(if decision.over { response.end_parent() } else { response })
}

fn observe(runtime: &dyn Runtime, id: &PodId, pod: &Pod) -> BTreeMap<String, Observed> {
    containers(pod).map(|container| (container.name.clone(), runtime.observe(id, &container.name))).collect()
}

fn is_here(node: &Node, pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(&*node.name)
}

fn all_run_by(runtime: &dyn Runtime, pod: &Pod) -> bool {
    containers(pod).all(|container| runtime.runs(container.image.as_deref().unwrap_or_default()))
}

fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.iter();
    spec.flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers))
}

#[cfg(test)]
mod tests;
