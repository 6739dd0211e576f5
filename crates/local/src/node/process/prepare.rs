//! From a pod to a process that can be started: reads what the pod refers to, decides with the pure parts, and puts files where
//! the process will find them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod};

use super::super::runtime::{CannotStart, Launch};
use super::Shared;
use super::environment::{Downward, declared, find_container, render_hosts, service_variables};
use super::images::Entrypoint;
use super::invocation::{Invocation, command_line, working_directory};
use super::record::PodDirectory;
use super::refusals::{refused, refused_volume};
use super::sources::{observe_access, observe_allocatable, observe_claim, observe_network, observe_sources};
use super::variables::{Place, whole};
use super::volumes::mounts::{link_mounts, mounts};
use super::volumes::{Content, References, content};

/// A process that can be started.
pub(super) struct Prepared {
    /// The container.
    pub(super) container: Container,
    /// The program and its arguments.
    pub(super) line: Vec<String>,
    /// The program as the pod has it: what variables make of it may be secret.
    pub(super) program: String,
    /// How it is run.
    pub(super) invocation: Arc<Invocation>,
}

/// What the pod says cannot be done.
pub(super) fn misconfigured(message: String) -> CannotStart {
    CannotStart { reason: "CreateContainerConfigError".into(), message }
}

/// A volume is not there. A container that waits for one is still being created.
fn without_volume(message: String) -> CannotStart {
    CannotStart { reason: "ContainerCreating".into(), message }
}

/// The process could not be started.
pub(super) fn cannot_run(message: String) -> CannotStart {
    CannotStart { reason: "RunContainerError".into(), message }
}

fn cannot_write(what: &str) -> impl Fn(io::Error) -> CannotStart + '_ {
    move |error| CannotStart { reason: "CreateContainerError".into(), message: format!("{what}: {error}") }
}

/// Prepares a container for one attempt. Its root is new each time, its pod's volumes are not.
pub(super) async fn prepare(shared: &Shared, launch: &Launch) -> Result<Prepared, CannotStart> {
    let pod = &launch.object;
    let name = &launch.container;
    let container =
        find_container(pod, name).ok_or_else(|| misconfigured(format!("container {name} not found")))?;
    let image = container.image.as_deref().unwrap_or_default();
    let entrypoint = shared.options.images.find(image);
    let entrypoint = entrypoint
        .ok_or_else(|| misconfigured(format!("image {image:?} does not run as a local process")))?;
    let spec = pod.spec.clone().unwrap_or_default();
    if let Some(message) = refused(&spec, container, &shared.identity) {
        return Err(misconfigured(message));
    }
    let namespace = &launch.pod.namespace;
    let wanted = References::of_volumes(pod).with_variables(container);
    let (sources, network, allocatable) = tokio::try_join!(
        observe_sources(&shared.client, namespace, &wanted),
        observe_network(&shared.client),
        observe_allocatable(&shared.client, pod),
    )
    .map_err(misconfigured)?;
    let downward =
        Downward { pod, address: &launch.address, host: &shared.options.host, allocatable: &allocatable };
    let links = spec.enable_service_links != Some(false);
    let services = service_variables(&network, namespace, links, shared.options.api.as_ref());
    let declared = declared(container, &sources, &downward, &services).map_err(misconfigured)?;

    let directory = shared.layout.pod(&launch.pod);
    let mut volumes = BTreeMap::new();
    for volume in spec.volumes.iter().flatten() {
        let content = content(pod, volume, &sources, &downward).map_err(without_volume)?;
        let place = set_up(shared, launch, &volume.name, content).await?;
        volumes.insert(volume.name.clone(), place);
    }
    let mounts = mounts(container, &declared).map_err(misconfigured)?;
    let root = shared.write(&launch.pod, || new_root(&directory, name));
    let root = root.map_err(cannot_write("cannot make the container's root"))?;
    let linked = shared.write(&launch.pod, || link_mounts(&root, &mounts, &volumes));
    linked.map_err(cannot_write("cannot mount a volume"))?;
    let hosts = render_hosts(pod, &launch.address, &network);
    shared.write_hosts(&launch.pod, &hosts).map_err(cannot_write("cannot write the hosts file"))?;

    let hosts = directory.hosts();
    let kubeconfig = kubeconfig(shared, entrypoint, pod, namespace).await?;
    let place =
        Place { root: &root, hosts: &hosts, address: &launch.address, kubeconfig: kubeconfig.as_deref() };
    let own = |name: &str| std::env::var(name).ok();
    let variables = whole(own, pod, &place, [&entrypoint.env, &services, &declared]);
    let line = command_line(container, entrypoint, &variables).map_err(misconfigured)?;
    for name in ["HOME", "TMPDIR"] {
        // Only those that are below the root are ours to make.
        if let Some(path) = variables.get(name).map(PathBuf::from).filter(|path| path.starts_with(&root)) {
            let made = shared.write(&launch.pod, || fs::create_dir_all(path));
            made.map_err(cannot_write("cannot make the container's root"))?;
        }
    }
    let working = working_directory(container, entrypoint, &root).map_err(cannot_run)?;
    let invocation = Arc::new(Invocation { variables, root, directory: working });
    let program =
        container.command.as_ref().and_then(|command| command.first()).or(entrypoint.command.first());
    let program = program.cloned().unwrap_or_default();
    Ok(Prepared { container: container.clone(), line, program, invocation })
}

/// Makes a volume, and says where it is.
async fn set_up(
    shared: &Shared,
    launch: &Launch,
    name: &str,
    content: Content,
) -> Result<PathBuf, CannotStart> {
    let fail =
        |error: io::Error| without_volume(format!("MountVolume.SetUp failed for volume {name:?} : {error}"));
    match content {
        Content::Files(files) => shared.write_volume(&launch.pod, name, &files).map_err(fail),
        Content::Scratch => {
            let own = shared.layout.pod(&launch.pod).volume(name);
            shared.write(&launch.pod, || fs::create_dir_all(&own)).map_err(fail)?;
            Ok(own)
        }
        Content::Claim(claim) => {
            let claimed = observe_claim(&shared.client, &launch.pod.namespace, &claim).await;
            let (volume, found) = claimed.map_err(without_volume)?;
            if let Some(message) = found.and_then(|found| refused_volume(name, &found)) {
                return Err(misconfigured(message));
            }
            let place = shared.layout.volume(&volume).map_err(fail)?;
            fs::create_dir_all(&place).map_err(fail)?;
            Ok(place)
        }
    }
}

/// An empty root, in the place of the last attempt's.
fn new_root(directory: &PodDirectory, container: &str) -> io::Result<PathBuf> {
    let root = directory.root(container);
    match fs::remove_dir_all(&root) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir_all(&root)?,
    }
    Ok(root)
}

/// The kubeconfig that a container gets, if it is of an image that may have one.
async fn kubeconfig(
    shared: &Shared,
    image: &Entrypoint,
    pod: &Pod,
    namespace: &str,
) -> Result<Option<PathBuf>, CannotStart> {
    let Some(path) = shared.options.kubeconfig.clone().filter(|_| image.cluster_access) else {
        return Ok(None);
    };
    let access = observe_access(&shared.client, namespace, pod).await.map_err(misconfigured)?;
    Ok(access.then_some(path))
}
