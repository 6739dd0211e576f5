//! Pods as processes of this machine.
//!
//! ```text
//! launch ─▶ refusals ─▶ sources (reads) ─▶ environment, volumes, invocation (pure) ─▶ files ─▶ process
//!                                                                       supervise: logs, probes, end ─▶ told
//! ```
//!
//! A container is a process (and all that it starts) of the user who runs the node, with no more rights than that user:
//! what would need more is refused by name (`refusals.rs`). It shares the machine's files, and cannot have mounts of its own. What it
//! can rely on:
//!
//! - An address of its pod's own, 127.x.y.z, in `POD_IP`. It must listen on that one, not on all, or ports collide.
//! - `MAINSTAY_ROOT`: a directory, new for each attempt, in which its mounts are found: `/etc/app` is `$MAINSTAY_ROOT/etc/app`.
//!   A program that is given as an absolute path, and `workingDir`, are looked for there first. `HOME` and `TMPDIR` are in it.
//! - `MAINSTAY_HOSTS`: a hosts file with the names that a cluster's DNS would know, kept up to date.
//! - Variables of services, where a service that has a ready process pod behind it is that pod, with the port that it listens on.
//! - Nothing of the environment that the node was started in but [`INHERITED`].
//!
//! Limits of resources, `readOnly` mounts, `readOnlyRootFilesystem`, dropped capabilities and security profiles cannot be enforced, and
//! are not. A mount of a part of a volume (`subPath`) is kept up to date, which it is not in a cluster.
//!
//! What a killed node leaves running is ended when the next one starts, and seen as exited with 137. What ends because the node is
//! shut down is never seen as a success.
//!
//! All that a container has started ends with it. Where `/proc` is, those are found as well that have left its group, by their
//! `MAINSTAY_ROOT`; where the node adopts orphans, also those that have taken the variable away (`strays.rs`).

mod addresses;
mod changes;
mod environment;
mod images;
mod invocation;
mod logs;
mod prepare;
mod probes;
mod quarantine;
mod record;
mod refusals;
mod signals;
mod sources;
mod state;
mod strays;
mod supervise;
mod variables;
mod volumes;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

pub use self::environment::ApiAddress;
pub use self::images::{Entrypoint, Images};
pub use self::logs::endpoint::LogEndpoint;
pub use self::strays::adopt_orphans;
pub use self::variables::INHERITED;

use self::logs::capture::{Progress, log_path};
use self::record::{Layout, PodDirectory, ROOT, end_leftovers};
use self::refusals::Identity;
use self::signals::{Ending, end_group};
use self::state::{PodState, Pods};
use self::strays::{adopts, end_strays};
use self::volumes::Files;
use self::volumes::files::{write_file, write_files};
use super::runtime::{CannotStart, Launch, Observed, PodId, Runtime};

/// How processes are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where files of pods are kept. Only one node may use it at a time.
    pub directory: PathBuf,
    /// What runs as a process.
    pub images: Images,
    /// How images with `cluster_access` reach the cluster.
    pub kubeconfig: Option<PathBuf>,
    /// Where the API server listens: `KUBERNETES_SERVICE_HOST` and its port. Without it they are those of the service.
    pub api: Option<ApiAddress>,
    /// The node's address.
    pub host: String,
    /// How much the log of one attempt may take.
    pub log_bytes_max: u64,
}

impl Options {
    /// With defaults for all but the images and where files are kept.
    pub fn new(directory: impl Into<PathBuf>, images: Images) -> Self {
        let log_bytes_max = 10 * 1024 * 1024;
        let host = "127.0.0.1".to_owned();
        Self { directory: directory.into(), images, kubeconfig: None, api: None, host, log_bytes_max }
    }
}

/// Ends what a node that was killed has left running, for a directory that no other node will open. Tells how many processes it was.
pub async fn end_left_behind(directory: &Path) -> io::Result<usize> {
    match directory.canonicalize() {
        Ok(directory) => end_leftovers(&Layout(directory), GRACE).await,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// How long those have to end that a killed node has left.
const GRACE: Duration = Duration::from_secs(1);

/// Who is told that something of a pod has changed.
type Tell = Arc<dyn Fn(&PodId) + Send + Sync>;

/// Runs containers as processes. Clones are the same; when the last is dropped, all processes are killed.
#[derive(Clone)]
pub struct Processes(Arc<Shared>);

struct Shared {
    options: Options,
    layout: Layout,
    client: Client,
    identity: Identity,
    handle: Handle,
    pods: Mutex<Pods>,
    tell: Mutex<Option<Tell>>,
    closing: AtomicBool,
    /// Held while files of a pod are written: a start and a change may want to at once.
    writing: Arc<Mutex<()>>,
    following: Mutex<Option<AbortHandle>>,
}

impl Processes {
    /// Opens a node's directory. First ends what the last node has left running in it.
    pub async fn open(options: Options, client: Client) -> io::Result<Self> {
        volumes::files::private_directory(&options.directory)?;
        // Processes run elsewhere, so paths must not depend on where we are.
        let options = Options { directory: options.directory.canonicalize()?, ..options };
        let layout = Layout(options.directory.clone());
        let left = end_leftovers(&layout, GRACE).await?;
        if left > 0 {
            tracing::info!(left, "ended processes that an earlier run had left");
        }
        layout.sweep();
        let pods = Mutex::new(Pods::remembered(layout.remembered()));
        let shared = Arc::new(Shared {
            options,
            layout,
            client,
            identity: Identity::own(),
            handle: Handle::current(),
            pods,
            tell: Mutex::new(None),
            closing: AtomicBool::new(false),
            writing: Arc::default(),
            following: Mutex::new(None),
        });
        #[cfg(unix)]
        if adopts() {
            shared.handle.spawn(strays::keep_reaping(Arc::downgrade(&shared)));
        }
        Ok(Self(shared))
    }

    /// Who is told of a pod whenever one of its containers has ended, or is ready, or no longer. In place of whoever was told before.
    pub fn when_changed(&self, tell: impl Fn(&PodId) + Send + Sync + 'static) {
        *self.0.tell.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(tell));
    }

    /// All pods that have files here, to forget those that are gone from the cluster.
    pub fn pods(&self) -> Vec<PodId> {
        self.0.pods().0.keys().cloned().collect()
    }

    /// All persistent volumes that have files here and were not retained, to set those aside that the cluster does not know.
    pub fn volumes(&self) -> Vec<String> {
        self.0.layout.volumes()
    }

    /// Notes whether the files of a persistent volume stay when it goes. Nobody can be asked any more then.
    pub fn retain_volume(&self, name: &str, stays: bool) -> io::Result<()> {
        self.0.layout.retain_volume(name, stays)
    }

    /// Moves the files of a persistent volume that the cluster does not know aside, and tells where to. Nobody asked for them to be
    /// deleted: the cluster may have been restored from a copy that is older than they are.
    pub fn quarantine_volume(&self, name: &str) -> io::Result<std::path::PathBuf> {
        self.0.layout.quarantine(name)
    }

    /// Moves the files of a pod aside that the cluster does not know and of which nothing runs, and tells where to, if it has any.
    pub fn quarantine_pod(&self, pod: &PodId) -> io::Result<Option<PathBuf>> {
        self.0.pods().0.remove(pod);
        self.0.layout.quarantine_pod(pod)
    }

    /// Removes the files of a persistent volume that is to be deleted.
    pub fn forget_volume(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_dir_all(self.0.layout.volume(name)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Ends all processes, and waits until they have ended. Nothing is started any more.
    pub async fn shutdown(&self, grace: Duration) {
        self.0.closing.store(true, Ordering::SeqCst);
        let supervisors: Vec<_> = {
            let mut pods = self.0.pods();
            let ids: Vec<PodId> = pods.0.keys().cloned().collect();
            for id in &ids {
                pods.stop(id, grace);
            }
            ids.iter().flat_map(|id| pods.take_supervisors(id)).collect()
        };
        join_all(supervisors).await;
        let pods = self.0.layout.pods();
        // A task that cannot be waited for has no answer that would change anything.
        let _ = tokio::task::spawn_blocking(move || end_strays(ROOT, &pods)).await;
    }
}

impl Runtime for Processes {
    fn runs(&self, image: &str) -> bool {
        self.0.options.images.find(image).is_some()
    }

    fn address(&self, pod: &PodId) -> String {
        self.0.address(pod)
    }

    fn observe(&self, pod: &PodId, container: &str) -> Observed {
        self.0.pods().attempt(pod, container).map_or(Observed::Absent, state::Attempt::observed)
    }

    fn start(&self, launch: Launch) -> BoxFuture<'_, Result<(), CannotStart>> {
        async move {
            let known = self.0.last_attempt(&launch.pod, &launch.container);
            // Asked twice, it is started once.
            if known.is_some_and(|known| known >= launch.attempt) {
                return Ok(());
            }
            // A pod can be forgotten while it starts. Only who asks for its address makes it known again.
            if !self.0.pods().0.contains_key(&launch.pod) {
                return Err(prepare::cannot_run("the pod is gone".into()));
            }
            self.0.follow_changes();
            let prepared = prepare::prepare(&self.0, &launch).await?;
            supervise::spawn(&self.0, launch, prepared)
        }
        .boxed()
    }

    fn stop(&self, pod: &PodId, grace: Duration) {
        self.0.pods().stop(pod, grace);
    }

    fn forget(&self, pod: &PodId) {
        let supervisors = {
            let mut pods = self.0.pods();
            pods.stop(pod, Duration::ZERO);
            let supervisors = pods.take_supervisors(pod);
            pods.0.remove(pod);
            supervisors
        };
        let PodDirectory(directory) = self.0.layout.pod(pod);
        let writing = self.0.writing.clone();
        self.0.handle.spawn(async move {
            join_all(supervisors).await;
            let removed = tokio::task::spawn_blocking(move || {
                // Whoever writes now may have seen the pod; whoever is next will not.
                drop(writing.lock().unwrap_or_else(PoisonError::into_inner));
                end_strays(ROOT, &directory);
                std::fs::remove_dir_all(&directory).map_err(|error| (directory, error))
            });
            match removed.await {
                Ok(Err((directory, error))) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(directory = %directory.display(), %error, "cannot remove a pod's files");
                }
                _ => {}
            }
        });
    }
}

impl Shared {
    fn pods(&self) -> MutexGuard<'_, Pods> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes files of a pod, alone, and only if the pod is known: the directory of one that was forgotten stays gone.
    fn write<T>(&self, pod: &PodId, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.pods().0.contains_key(pod) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the pod is gone"));
        }
        write()
    }

    /// Makes a volume of a pod's own hold exactly these files.
    fn write_volume(&self, pod: &PodId, name: &str, files: &Files) -> io::Result<PathBuf> {
        let directory = self.layout.pod(pod).volume(name);
        self.write(pod, || write_files(&directory, files))?;
        Ok(directory)
    }

    /// Writes a pod's hosts file, if it is another one.
    fn write_hosts(&self, pod: &PodId, text: &str) -> io::Result<()> {
        let path = self.layout.pod(pod).hosts();
        self.write(pod, || {
            let same = std::fs::read_to_string(&path).is_ok_and(|old| old == text);
            if same { Ok(()) } else { write_file(&path, text.as_bytes()) }
        })
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    fn tell(&self, pod: &PodId) {
        let tell = self.tell.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(tell) = tell {
            tell(pod);
        }
    }

    /// The address of a pod, chosen and written down when it is first asked for.
    fn address(&self, id: &PodId) -> String {
        let mut pods = self.pods();
        if let Some(pod) = pods.0.get(id) {
            return pod.address.to_string();
        }
        let taken: BTreeSet<_> = pods.0.values().map(|pod| pod.address).collect();
        let address = addresses::choose(&id.uid, &taken);
        if let Err(error) = self.layout.remember(id, address) {
            tracing::warn!(namespace = id.namespace, pod = id.name, %error, "cannot write down a pod's address");
        }
        pods.0.insert(id.clone(), PodState { address, object: None, containers: [].into() });
        address.to_string()
    }

    /// The number of a container's last attempt.
    fn last_attempt(&self, pod: &PodId, container: &str) -> Option<u32> {
        self.pods().attempt(pod, container).map(|attempt| attempt.number)
    }

    /// The log of an attempt, and how it comes on if it is the last one of this run.
    fn log_of(
        &self,
        pod: &PodId,
        container: &str,
        number: u32,
    ) -> (PathBuf, Option<watch::Receiver<Progress>>) {
        let path = log_path(&self.layout.pod(pod).logs(), container, number);
        let pods = self.pods();
        let attempt = pods.attempt(pod, container).filter(|attempt| attempt.number == number);
        (path, attempt.and_then(|attempt| attempt.progress.clone()))
    }

    /// The pods of which something runs, with their addresses.
    fn running_pods(&self) -> Vec<(PodId, Pod, String)> {
        let pods = self.pods();
        let running =
            pods.0.iter().filter(|(_, pod)| pod.containers.values().any(|one| one.running.is_some()));
        running
            .filter_map(|(id, pod)| Some((id.clone(), pod.object.clone()?, pod.address.to_string())))
            .collect()
    }

    /// Begins to keep files up to date, when the first process is started.
    fn follow_changes(self: &Arc<Self>) {
        let mut following = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        if following.is_none() {
            let task = self.handle.spawn(changes::follow(Arc::downgrade(self), self.client.clone()));
            *following = Some(task.abort_handle());
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let pods = self.pods.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (id, container, running) in pods.running() {
            end_group(running.pid, Ending::Forced);
            end_strays(ROOT, &self.layout.pod(id).root(container));
        }
        let following = self.following.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(following) = following.take() {
            following.abort();
        }
    }
}

/// Which pod an object is.
fn pod_id(pod: &Pod) -> PodId {
    let metadata = &pod.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    PodId { namespace: text(&metadata.namespace), name: text(&metadata.name), uid: text(&metadata.uid) }
}
