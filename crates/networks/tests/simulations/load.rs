//! Pods, peers that keep each other out, and managers. What peers were told is kept outside of the cluster, so that it outlives the operator and is part
//! of the end.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use mainstay::{Controller, Error, SyncRequest, SyncResponse};
use mainstay_networks::kinds::Scenario;
use mainstay_networks::kinds::labels;
use mainstay_networks::rpc::{Disturbance, Endpoint, Identity, Rpc, RpcError};
use mainstay_networks::simulation::report::{Latencies, Progress, Report, Stage, WorkerReport};
use mainstay_networks::simulation::{ManagerClient, ManagerPlace};
use mainstay_testkit::simulation::{External, ExternalError, Program, Seat, WorldClock, operator_at};
use serde_json::{Value, json};

use crate::world::{NAMESPACE, PEERS, RUN_TIME};

/// A pod starts after so long.
const STARTS_AFTER: Duration = Duration::from_secs(1);

/// What becomes of pods: all run, and those of a manager that was dismissed end well, with its workers'.
pub(crate) fn pods() -> Program {
    operator_at("pods", |operator, seat| {
        let outside = seat.external();
        operator.controller(Controller::of::<Pod>().sync_async(move |request: SyncRequest| {
            let outside = outside.clone();
            async move { become_of(&request, &outside).await }
        }))
    })
}

async fn become_of(request: &SyncRequest, outside: &External) -> Result<SyncResponse, Error> {
    let pod = request.parent_json();
    let created: Timestamp = pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default().parse()?;
    let age = Duration::try_from(request.now().duration_since(created)).unwrap_or_default();
    if let Some(left) = STARTS_AFTER.checked_sub(age).filter(|left| !left.is_zero()) {
        return Ok(SyncResponse::from_status(&pod["status"])?.requeue_after(left));
    }
    let role = &pod["metadata"]["labels"][labels::ROLE];
    if role == "peer" {
        count_start(request, outside).await?;
    }
    let run = pod["metadata"]["annotations"][labels::RUN].as_str().unwrap_or_default();
    let is_over = role != "peer" && outside.get(&format!("dismissed {run}")).await?.is_some();
    let (phase, ready) = if is_over { ("Succeeded", "False") } else { ("Running", "True") };
    let status = json!({
        "phase": phase, "podIP": "10.2.0.1", "podIPs": [{"ip": "10.2.0.1"}], "startTime": created.to_string(),
        "conditions": [{"type": "Ready", "status": ready}],
    });
    let response = SyncResponse::from_status(status)?;
    Ok(if role == "peer" || is_over { response } else { response.requeue_after(Duration::from_secs(1)) })
}

/// How often a peer was started shows how often it was killed.
async fn count_start(request: &SyncRequest, outside: &External) -> Result<(), Error> {
    let name = format!("starts of {}", request.name());
    let known = outside.get(&name).await?.unwrap_or_else(|| json!({"times": 0}));
    if known["uid"] != request.uid() {
        let times = known["times"].as_i64().unwrap_or_default() + 1;
        outside.put(&name, json!({"times": times, "uid": request.uid()})).await?;
    }
    Ok(())
}

/// The operator's ways to peers and managers.
#[derive(Clone)]
pub(crate) struct Load {
    outside: External,
    client: Client,
    clock: WorldClock,
}

impl Load {
    pub(crate) fn at(seat: &Seat) -> Arc<Self> {
        Arc::new(Self { outside: seat.external(), client: seat.client(), clock: seat.clock() })
    }

    /// The pods of a role that are not being deleted.
    async fn pods(&self, role: &str) -> Result<Vec<Pod>, RpcError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let selector = format!("{}={role}", labels::ROLE);
        let list = pods.list(&ListParams::default().labels(&selector)).await;
        let list = list.map_err(|error| RpcError::Unreachable(error.to_string()))?;
        Ok(list.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
    }

    async fn run(&self) -> Result<String, RpcError> {
        let managers = self.pods("manager").await?;
        let run = managers.first().and_then(|pod| pod.annotations().get(labels::RUN).cloned());
        run.ok_or_else(|| RpcError::Unreachable("there is no manager".into()))
    }

    async fn how_far(&self) -> Result<Progress, RpcError> {
        let run = self.run().await?;
        let workers = self.pods("worker").await?;
        let latest = workers.iter().filter_map(|pod| Some(pod.metadata.creation_timestamp.as_ref()?.0)).max();
        let begin = latest.filter(|_| workers.len() == PEERS).map(|at| at + Duration::from_secs(2));
        let elapsed = begin.and_then(|begin| Duration::try_from(self.clock.now().duration_since(begin)).ok());
        let stage = match elapsed {
            None => Stage::Waiting,
            Some(elapsed) if elapsed < RUN_TIME => Stage::Running,
            Some(_) => Stage::Done,
        };
        let elapsed_milliseconds = u64::try_from(elapsed.unwrap_or_default().as_millis()).unwrap_or_default();
        let reported = if stage == Stage::Done { PEERS } else { 0 };
        Ok(Progress {
            run,
            stage,
            expected: PEERS,
            registered: workers.len(),
            reported,
            elapsed_milliseconds,
        })
    }
}

fn broken(error: ExternalError) -> RpcError {
    RpcError::Unreachable(error.to_string())
}

impl ManagerClient for Load {
    fn progress<'a>(&'a self, _: &'a ManagerPlace) -> BoxFuture<'a, Result<Progress, RpcError>> {
        Box::pin(self.how_far())
    }

    fn report<'a>(&'a self, _: &'a ManagerPlace) -> BoxFuture<'a, Result<Report, RpcError>> {
        Box::pin(async {
            let run = self.run().await?;
            let told = |worker: usize| WorkerReport {
                run: run.clone(),
                worker,
                peer: format!("peers-0-{worker}"),
                requests: 100,
                failures: [].into(),
                duration_milliseconds: 10_000,
                latencies: Latencies::default(),
            };
            let told = (0..PEERS).map(|worker| (worker, told(worker))).collect();
            let at = Timestamp::UNIX_EPOCH;
            Ok(Report::of((&run, Scenario::Identity, 1), (at, at), PEERS, &told))
        })
    }

    fn dismiss<'a>(&'a self, _: &'a ManagerPlace) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async {
            let run = self.run().await?;
            self.outside.put(&format!("dismissed {run}"), json!(true)).await.map_err(broken)
        })
    }
}

impl Rpc for Load {
    fn identity<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Identity, RpcError>> {
        Box::pin(async { Err(RpcError::Unsupported("tell who it is")) })
    }

    fn connections<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>> {
        Box::pin(async { Err(RpcError::Unsupported("tell of others")) })
    }

    fn connect<'a>(&'a self, _: &'a Endpoint, _: &'a [String]) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async { Err(RpcError::Unsupported("connect")) })
    }

    fn disturb<'a>(
        &'a self,
        peer: &'a Endpoint,
        disturbance: &'a Disturbance,
    ) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async move {
            let name = format!("{} keeps out", peer.url);
            let known = self.outside.get(&name).await.map_err(broken)?.unwrap_or_else(|| json!([]));
            let mut kept: Vec<String> = serde_json::from_value(known.clone()).unwrap_or_default();
            match disturbance {
                Disturbance::Block(addresses) => kept.extend(addresses.iter().map(ToString::to_string)),
                Disturbance::Unblock(addresses) => {
                    kept.retain(|kept| !addresses.iter().any(|address| address.to_string() == *kept));
                }
                Disturbance::Pause(_) | Disturbance::Latency { .. } => {
                    return Err(RpcError::Unsupported("wait"));
                }
            }
            kept.sort();
            kept.dedup();
            let kept: Value = json!(kept);
            if kept == known { Ok(()) } else { self.outside.put(&name, kept).await.map_err(broken) }
        })
    }
}
