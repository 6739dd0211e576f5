//! Keeps files of running pods as their sources are. Watches tell only that something changed, without what is in it; then all that
//! a concerned pod refers to is read again. A watch that was interrupted begins with everything there is, so nothing is missed.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::super::runtime::PodId;
use super::Shared;
use super::environment::{Downward, Network, render_hosts};
use super::sources::{observe_allocatable, observe_network, observe_sources};
use super::volumes::{Content, References, content};

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    ConfigMap { namespace: String, name: String },
    Secret { namespace: String, name: String },
    Pod { namespace: String, name: String },
    Network,
}

impl Change {
    /// Whether the volumes of a pod may be others after it.
    fn concerns(&self, id: &PodId, references: &References) -> bool {
        match self {
            Self::ConfigMap { namespace, name } => {
                *namespace == id.namespace && references.config_maps.contains(name)
            }
            Self::Secret { namespace, name } => {
                *namespace == id.namespace && references.secrets.contains(name)
            }
            Self::Pod { namespace, name } => {
                references.downward && (namespace, name) == (&id.namespace, &id.name)
            }
            Self::Network => false,
        }
    }
}

/// How long changes are gathered before they are acted on: they come in swarms.
const GATHERING: Duration = Duration::from_millis(100);

/// After a watch that could not be opened.
const BACKOFF: Duration = Duration::from_secs(1);

/// Follows the cluster until the node is gone.
pub(super) async fn follow(shared: Weak<Shared>, client: Client) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let named = |make: fn(String, String) -> Change| make;
    let watches = async {
        tokio::join!(
            watch::<ConfigMap>(
                &client,
                &tell,
                named(|namespace, name| Change::ConfigMap { namespace, name })
            ),
            watch::<Secret>(&client, &tell, named(|namespace, name| Change::Secret { namespace, name })),
            watch::<Pod>(&client, &tell, named(|namespace, name| Change::Pod { namespace, name })),
            watch::<Service>(&client, &tell, named(|_, _| Change::Network)),
            watch::<EndpointSlice>(&client, &tell, named(|_, _| Change::Network)),
        )
    };
    let acts = async {
        while let Some(first) = told.recv().await {
            tokio::time::sleep(GATHERING).await;
            let mut changes = BTreeSet::from([first]);
            while let Ok(next) = told.try_recv() {
                changes.insert(next);
            }
            let Some(shared) = shared.upgrade() else { return };
            act(&shared, &changes).await;
        }
    };
    // The watches never end by themselves.
    tokio::select! {
        _ = watches => {}
        () = acts => {}
    }
}

/// Tells of every change of a kind.
async fn watch<K>(client: &Client, tell: &mpsc::UnboundedSender<Change>, change: fn(String, String) -> Change)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    loop {
        if let Ok(events) = api.watch_metadata(&WatchParams::default(), "0").await {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(object)
                | WatchEvent::Modified(object)
                | WatchEvent::Deleted(object) = event
                {
                    let PartialObjectMeta { metadata, .. } = object;
                    let name = metadata.name.unwrap_or_default();
                    if tell.send(change(metadata.namespace.unwrap_or_default(), name)).is_err() {
                        return;
                    }
                }
            }
        }
        tokio::time::sleep(BACKOFF).await;
    }
}

/// Brings the files of all pods up to date that the changes concern.
async fn act(shared: &Arc<Shared>, changes: &BTreeSet<Change>) {
    let pods = shared.running_pods();
    let concerned = pods.iter().filter(|(id, pod, _)| {
        let references = References::of_volumes(pod);
        changes.iter().any(|change| change.concerns(id, &references))
    });
    for (id, pod, address) in concerned {
        if let Err(why) = refresh_volumes(shared, id, pod, address).await {
            tracing::warn!(namespace = id.namespace, pod = id.name, why, "cannot bring volumes up to date");
        }
    }
    if changes.contains(&Change::Network) && !pods.is_empty() {
        match observe_network(&shared.client).await {
            Ok(network) => {
                for (id, pod, address) in &pods {
                    refresh_hosts(shared, id, pod, address, &network);
                }
            }
            Err(why) => tracing::warn!(why, "cannot bring hosts files up to date"),
        }
    }
}

/// Writes the volumes of a pod again that are made of files. What fails leaves them as they are.
async fn refresh_volumes(shared: &Arc<Shared>, id: &PodId, pod: &Pod, address: &str) -> Result<(), String> {
    let wanted = References::of_volumes(pod);
    let pods: Api<Pod> = Api::namespaced(shared.client.clone(), &id.namespace);
    let now = pods.get_opt(&id.name).await.map_err(|_| "cannot read the pod".to_owned())?;
    // Another pod of the same name is none of ours.
    let Some(now) = now.filter(|now| now.metadata.uid.as_deref() == Some(&id.uid)) else { return Ok(()) };
    let (sources, allocatable) = tokio::try_join!(
        observe_sources(&shared.client, &id.namespace, &wanted),
        observe_allocatable(&shared.client, &now),
    )?;
    let downward = Downward { pod: &now, address, host: &shared.options.host, allocatable: &allocatable };
    let mut first_error = Ok(());
    for volume in now.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        let written = match content(&now, volume, &sources, &downward) {
            Ok(Content::Files(files)) => {
                shared.write_volume(id, &volume.name, &files).map(drop).map_err(|error| error.to_string())
            }
            Ok(Content::Scratch | Content::Claim(_)) => Ok(()),
            Err(why) => Err(why),
        };
        first_error = first_error.and(written);
    }
    first_error
}

fn refresh_hosts(shared: &Shared, id: &PodId, pod: &Pod, address: &str, network: &Network) {
    if let Err(error) = shared.write_hosts(id, &render_hosts(pod, address, network)) {
        tracing::warn!(namespace = id.namespace, pod = id.name, %error, "cannot write a hosts file");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_concerns_pods_that_refer_to_it() {
        let id = PodId { namespace: "shop".into(), name: "web".into(), uid: "u".into() };
        let references =
            References { config_maps: ["c".to_owned()].into(), downward: true, ..References::default() };
        let change = |namespace: &str, name: &str| Change::ConfigMap {
            namespace: namespace.into(),
            name: name.into(),
        };
        assert!(change("shop", "c").concerns(&id, &references));
        assert!(!change("shop", "d").concerns(&id, &references));
        assert!(!change("other", "c").concerns(&id, &references));
        let pod = Change::Pod { namespace: "shop".into(), name: "web".into() };
        assert!(pod.concerns(&id, &references));
        assert!(!pod.concerns(&id, &References::default()));
    }
}
