//! All of a cluster but its API server, in one call.
//!
//! ```text
//! LogEndpoint ─▶ the API server's builder        client ─▶ LocalCluster::start ─▶ ready ─▶ … ─▶ stop
//! ```
//!
//! Starting registers the node and a default storage class, ends what a killed predecessor left running, and starts three operators.
//! Stopping ends these first and the processes of pods after them, so that nothing takes their end for a failure while it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams};
use kube::{Resource, ResourceExt as _};
use mainstay::{Controller, Operator, SyncRequest, SyncResponse};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::node::heartbeat::{self, Description};
use crate::node::process::{ApiAddress, Entrypoint, Images, LogEndpoint, Options, Processes};
use crate::node::rules::{Glob, Rules};
use crate::node::runtime::wake;
use crate::node::{self, Node, simulated};
use crate::{controllers, scheduler};

pub use crate::controllers::storage::PROVISIONER;

/// The name of the only node.
pub const NODE: &str = "local";
/// How many pods the node has room for.
pub const PODS_MAX: u32 = 500;
/// The images of this project: they run the program that the cluster is told of.
pub const OWN_IMAGES: &str = "mainstay:*";

const ADDRESS: &str = "127.0.0.1";
/// How long processes have to end when the cluster does.
const GRACE: Duration = Duration::from_secs(5);

/// What a cluster is to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where files of pods are kept: logs, volumes.
    pub directory: PathBuf,
    /// Which images are local programs, and how all others behave.
    pub rules: Rules,
    /// Where paths in the rules start from.
    pub rules_from: PathBuf,
    /// What [`OWN_IMAGES`] run.
    pub program: Option<PathBuf>,
    /// How those reach the cluster.
    pub kubeconfig: Option<PathBuf>,
    /// Where the API server listens.
    pub api: Option<ApiAddress>,
    /// The version of Kubernetes that the node reports: `v1.36.3`.
    pub version: String,
}

/// Why a cluster does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The directory of pods cannot be used.
    #[error("cannot keep files of pods in {path}")]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The node cannot be registered.
    #[error(transparent)]
    Node(#[from] heartbeat::CannotRegister),
    /// The API server refused something, or did not answer.
    #[error("cannot {doing}")]
    Api {
        /// What was to be done.
        doing: &'static str,
        /// Why not.
        source: Box<kube::Error>,
    },
    /// An operator cannot be built.
    #[error(transparent)]
    Operator(#[from] mainstay::BuildError),
}

/// A cluster that runs. What it runs is killed when this is dropped; [`stop`](Self::stop) lets it end.
pub struct LocalCluster {
    operators: Vec<Operator>,
    running: JoinSet<()>,
    stop: watch::Sender<bool>,
    processes: Processes,
    quarantined: Vec<PathBuf>,
}

impl LocalCluster {
    /// Starts everything around the API server that the client reaches.
    ///
    /// # Errors
    /// If the directory cannot be used, or the API server refuses what a cluster begins with.
    pub async fn start(
        client: kube::Client,
        logs: &LogEndpoint,
        settings: Settings,
    ) -> Result<Self, StartError> {
        let processes = open_processes(&client, &settings).await?;
        logs.serve_from(&processes);
        let rules = settings.rules.clone();
        logs.simulate(move |pod, container| simulated::log(pod, container, &rules).unwrap_or_default());
        let description = describe(&settings.version);
        heartbeat::register(client.clone(), &description, Timestamp::now()).await?;
        apply_default_class(&client).await?;
        let quarantined = clear_up(&client, &processes).await?;

        let controllers =
            controllers::configure(Operator::builder(controllers::NAME, client.clone())).build()?;
        let scheduler = scheduler::configure(Operator::builder(scheduler::NAME, client.clone())).build()?;
        let node = Node::new(NODE, ADDRESS).rules(settings.rules).runtime(Arc::new(processes.clone()));
        let builder = node::configure(Operator::builder(node::NAME, client), &node);
        let builder = heartbeat::configure(builder, description).controller(volumes(processes.clone()));
        let node = builder.build()?;
        let looking = node.clone();
        processes.when_changed(move |pod| wake(&looking, pod));
        let mut cluster = Self {
            operators: Vec::new(),
            running: JoinSet::new(),
            stop: watch::Sender::new(false),
            processes,
            quarantined,
        };
        for operator in [controllers, scheduler, node] {
            cluster.run(operator);
        }
        Ok(cluster)
    }

    /// Runs one more operator for as long as the cluster.
    pub fn run(&mut self, operator: Operator) {
        let mut told = self.stop.subscribe();
        let running = operator.clone();
        self.running.spawn(async move {
            let stop = async move {
                // A sender that is gone is a cluster that is.
                let _ = told.wait_for(|stop| *stop).await;
            };
            if let Err(error) = running.run(stop).await {
                tracing::error!(operator = running.name(), %error, "an operator has ended");
            }
        });
        self.operators.push(operator);
    }

    /// Where files of volumes and pods are that the cluster did not know when it started.
    pub fn quarantined(&self) -> &[PathBuf] {
        &self.quarantined
    }

    /// The operators that run.
    pub fn operators(&self) -> &[Operator] {
        &self.operators
    }

    /// Waits until every controller whose kinds are there has seen all that there is.
    pub async fn ready(&self) {
        const LOOK_EVERY: Duration = Duration::from_millis(2);
        let is_ready = |operator: &Operator| {
            let controllers = operator.controllers();
            !controllers.is_empty() && controllers.iter().all(|controller| controller.ready)
        };
        while !self.operators.iter().all(is_ready) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Lets the operators finish what they are at, and then ends the processes of pods.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.running.join_next().await.is_some() {}
        self.processes.shutdown(GRACE).await;
    }
}

async fn open_processes(client: &kube::Client, settings: &Settings) -> Result<Processes, StartError> {
    let mut images = Images::default().with_rules(&settings.rules.images, &settings.rules_from);
    if let (Some(program), Ok(own)) = (&settings.program, Glob::try_from(OWN_IMAGES.to_owned())) {
        let command = vec![program.display().to_string()];
        images = images.with(own, Entrypoint { command, cluster_access: true, ..Entrypoint::default() });
    }
    let mut options = Options::new(&settings.directory, images);
    options.kubeconfig.clone_from(&settings.kubeconfig);
    options.api.clone_from(&settings.api);
    ADDRESS.clone_into(&mut options.host);
    let opened = Processes::open(options, client.clone()).await;
    opened.map_err(|source| StartError::Directory { path: settings.directory.clone(), source })
}

/// The node, with what this machine has.
fn describe(version: &str) -> Description {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_of(&text));
    let capacity = BTreeMap::from([
        ("cpu".to_owned(), Quantity(cores.to_string())),
        ("memory".to_owned(), Quantity(memory.unwrap_or_else(|| "8Gi".into()))),
        ("pods".to_owned(), Quantity(PODS_MAX.to_string())),
        // Nobody is held to it, but a pod may ask for some.
        ("ephemeral-storage".to_owned(), Quantity("1Ti".into())),
    ]);
    Description {
        name: NODE.into(),
        address: ADDRESS.into(),
        allocatable: capacity.clone(),
        capacity,
        labels: BTreeMap::new(),
        version: version.to_owned(),
    }
}

/// All memory, as Linux tells it.
fn memory_of(meminfo: &str) -> Option<String> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(format!("{kibibytes}Ki"))
}

/// The class of claims that name none.
async fn apply_default_class(client: &kube::Client) -> Result<(), StartError> {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    });
    let classes: Api<StorageClass> = Api::all(client.clone());
    let params = PatchParams::apply(controllers::NAME).force();
    let applied = classes.patch("local", &params, &Patch::Apply(class)).await;
    applied.map(drop).map_err(|source| StartError::Api {
        doing: "make the default storage class",
        source: Box::new(source),
    })
}

/// Moves the files of pods and volumes aside that the cluster does not know: nobody asked for them to be deleted. Says where they are.
async fn clear_up(client: &kube::Client, processes: &Processes) -> Result<Vec<PathBuf>, StartError> {
    let mut quarantined = Vec::new();
    let mut note = |what: &str, name: &str, moved: std::io::Result<Option<PathBuf>>| match moved {
        Ok(None) => {}
        Ok(Some(path)) => {
            let place = path.display();
            tracing::warn!(name, %place, "there is no such {what}; its files were moved aside");
            quarantined.push(path);
        }
        Err(error) => {
            tracing::warn!(name, %error, "there is no such {what}; its files stay where they are");
        }
    };
    let pods = processes.pods();
    if !pods.is_empty() {
        let there: BTreeSet<String> =
            there::<Pod>(client, "list pods").await?.into_iter().filter_map(|pod| pod.uid).collect();
        for gone in pods.iter().filter(|pod| !there.contains(&pod.uid)) {
            note("pod", &gone.name, processes.quarantine_pod(gone));
        }
    }
    let volumes = processes.volumes();
    if !volumes.is_empty() {
        let there = there::<PersistentVolume>(client, "list volumes").await?;
        let there: BTreeSet<String> = there.into_iter().filter_map(|volume| volume.name).collect();
        for gone in volumes.iter().filter(|name| !there.contains(*name)) {
            note("volume", gone, processes.quarantine_volume(gone).map(Some));
        }
    }
    Ok(quarantined)
}

/// The metadata of all objects of a kind.
async fn there<K>(client: &kube::Client, doing: &'static str) -> Result<Vec<ObjectMeta>, StartError>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let found = Api::<K>::all(client.clone()).list_metadata(&ListParams::default()).await;
    let found = found.map_err(|source| StartError::Api { doing, source: Box::new(source) })?;
    Ok(found.items.into_iter().map(|object| object.metadata).collect())
}

/// Removes the files of volumes whose claims are gone, where these are to go with them. Where not, that is noted, so that nobody takes
/// them for left over once the volume is gone.
fn volumes(processes: Processes) -> Controller {
    Controller::of::<PersistentVolume>().until_gone().sync(move |request: &SyncRequest| {
        let volume: PersistentVolume = request.parent()?;
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        let spec = volume.spec.clone().unwrap_or_default();
        let goes = spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete");
        processes.retain_volume(&volume.name_any(), !goes)?;
        if phase == Some("Released") && goes {
            processes.forget_volume(&volume.name_any())?;
        }
        Ok(SyncResponse::new())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_linux_says() {
        let told = "MemTotal:       24576000 kB\nMemFree:         100 kB\n";
        assert_eq!(memory_of(told).as_deref(), Some("24576000Ki"));
        assert_eq!(memory_of("nothing"), None);
    }
}
