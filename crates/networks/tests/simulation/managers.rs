//! Managers of simulations, which are asked how far their run is. That follows from when its workers were made; what a manager was told is kept outside of the
//! cluster.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use mainstay_networks::kinds::Scenario;
use mainstay_networks::kinds::labels::{self, role};
use mainstay_networks::rpc::RpcError;
use mainstay_networks::simulation::report::{Latencies, Progress, Report, Stage, WorkerReport};
use mainstay_networks::simulation::{ManagerClient, ManagerPlace};
use mainstay_testkit::simulation::{External, Seat, WorldClock};
use serde_json::json;

use crate::simulation::pods::dismissed;
use crate::simulation::world::NAMESPACE;

/// So long after the last worker was made, the load begins.
const BEGINS_AFTER: Duration = Duration::from_secs(2);

/// The operator's way to managers.
pub(crate) struct Managers {
    outside: External,
    client: Client,
    clock: WorldClock,
}

/// A manager, from its pod.
struct Manager {
    run: String,
    workers: usize,
    run_time: Duration,
}

impl Managers {
    pub(crate) fn at(seat: &Seat) -> Self {
        Self { outside: seat.external(), client: seat.client(), clock: seat.clock() }
    }

    /// The pods of a role that are not being deleted.
    async fn pods(&self, role: &str) -> Result<Vec<Pod>, RpcError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let selector = format!("{}={role}", labels::ROLE);
        let list = pods.list(&ListParams::default().labels(&selector)).await;
        let list = list.map_err(|error| RpcError::Unreachable(error.to_string()))?;
        Ok(list.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
    }

    async fn manager(&self) -> Result<Manager, RpcError> {
        let pods = self.pods(role::MANAGER).await?;
        pods.first().and_then(Manager::of).ok_or_else(|| RpcError::Unreachable("there is no manager".into()))
    }

    async fn how_far(&self) -> Result<Progress, RpcError> {
        let Manager { run, workers: expected, run_time } = self.manager().await?;
        let workers = self.pods(role::WORKER).await?;
        let latest = workers.iter().filter_map(|pod| Some(pod.metadata.creation_timestamp.as_ref()?.0)).max();
        let begin = latest.filter(|_| workers.len() == expected).map(|at| at + BEGINS_AFTER);
        let elapsed = begin.and_then(|begin| Duration::try_from(self.clock.now().duration_since(begin)).ok());
        let stage = match elapsed {
            None => Stage::Waiting,
            Some(elapsed) if elapsed < run_time => Stage::Running,
            Some(_) => Stage::Done,
        };
        Ok(Progress {
            run,
            stage,
            expected,
            registered: workers.len(),
            reported: if stage == Stage::Done { expected } else { 0 },
            elapsed_milliseconds: u64::try_from(elapsed.unwrap_or_default().as_millis()).unwrap_or_default(),
        })
    }
}

impl Manager {
    fn of(pod: &Pod) -> Option<Self> {
        let env = pod.spec.as_ref()?.containers.first()?.env.as_ref()?;
        let value = |name: &str| env.iter().find(|variable| variable.name == name)?.value.clone();
        Some(Self {
            run: pod.annotations().get(labels::RUN)?.clone(),
            workers: value("SIMULATE_WORKERS")?.parse().ok()?,
            run_time: Duration::from_secs(value("SIMULATE_RUN_TIME_SECONDS")?.parse().ok()?),
        })
    }
}

impl ManagerClient for Managers {
    fn progress<'a>(&'a self, _: &'a ManagerPlace) -> BoxFuture<'a, Result<Progress, RpcError>> {
        Box::pin(self.how_far())
    }

    fn report<'a>(&'a self, _: &'a ManagerPlace) -> BoxFuture<'a, Result<Report, RpcError>> {
        Box::pin(async {
            let Manager { run, workers, .. } = self.manager().await?;
            let told = |worker: usize| WorkerReport {
                run: run.clone(),
                worker,
                peer: format!("peers-0-{worker}"),
                requests: 100,
                failures: [].into(),
                duration_milliseconds: 10_000,
                latencies: Latencies::default(),
            };
            let told = (0..workers).map(|worker| (worker, told(worker))).collect();
            let at = Timestamp::UNIX_EPOCH;
            Ok(Report::of((&run, Scenario::Identity, 1), (at, at), workers, &told))
        })
    }

    fn dismiss<'a>(&'a self, _: &'a ManagerPlace) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async {
            let Manager { run, .. } = self.manager().await?;
            let told = self.outside.put(&dismissed(&run), json!(true)).await;
            told.map_err(|error| RpcError::Unreachable(error.to_string()))
        })
    }
}
