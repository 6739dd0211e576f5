//! Finds networks and what belongs to them.

use crate::cluster::{Cluster, get, list, missing};
use crate::failure::Failure;
use crate::systems;
use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::{Key, Kind};
use mainstay_networks::config::NetworkConfig;
use mainstay_networks::kinds::{Network, Simulation};
use serde::de::DeserializeOwned;

/// All networks, by name.
pub(super) async fn networks(cluster: &Cluster) -> Result<Vec<Network>, Failure> {
    all(cluster, &Kind::of::<Network>(), None).await
}

/// Simulations, in a namespace or in all, by name.
pub(super) async fn simulations(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<Vec<Simulation>, Failure> {
    all(cluster, &Kind::of::<Simulation>(), namespace).await
}

async fn all<T: DeserializeOwned>(
    cluster: &Cluster,
    kind: &Kind,
    namespace: Option<&str>,
) -> Result<Vec<T>, Failure> {
    match list(&cluster.client, &kind.collection_path(namespace)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Err(undefined(kind)),
        Err(error) => Err(cluster.failed(&format!("list {}", kind.plural()), error)),
        // What nobody can read any more is of a version that is long gone.
        Ok(found) => Ok(found.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect()),
    }
}

fn undefined(kind: &Kind) -> Failure {
    let failure = Failure::new(anyhow::anyhow!("the cluster does not have the kind {kind}"));
    match systems::find(mainstay_networks::NAME, "look at") {
        Ok(system) => failure.next(system.define()),
        Err(_) => failure,
    }
}

/// The network of this name.
pub(super) async fn network(cluster: &Cluster, name: &str) -> Result<Network, Failure> {
    one(cluster, &Key::new(None, name)).await
}

/// The simulation of this name.
pub(super) async fn simulation(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Simulation, Failure> {
    one(cluster, &Key::new(Some(namespace), name)).await
}

async fn one<K>(cluster: &Cluster, key: &Key) -> Result<K, Failure>
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned,
    K::Scope: 'static,
{
    let kind = Kind::of::<K>();
    let found = get(&cluster.client, &kind.object_path(key)).await;
    let found = found.map_err(|error| cluster.failed(&format!("read {} {key}", kind.kind()), error))?;
    let Some(found) = found else {
        // The kind may be what is missing.
        all::<serde_json::Value>(cluster, &kind, None).await?;
        return Err(missing(&kind, key));
    };
    let read = serde_json::from_value(found);
    read.map_err(|error| Failure::new(error).context(format!("cannot read {} {key}", kind.kind())))
}

/// What a ConfigMap of a network holds under a key.
pub(super) async fn held(
    cluster: &Cluster,
    network: &str,
    map: &str,
    key: &str,
) -> Result<Option<String>, Failure> {
    held_in(cluster, &NetworkConfig::namespace(network), map, key).await
}

/// What a ConfigMap holds under a key.
pub(super) async fn held_in(
    cluster: &Cluster,
    namespace: &str,
    map: &str,
    key: &str,
) -> Result<Option<String>, Failure> {
    let path = Kind::of::<ConfigMap>().object_path(&Key::new(Some(namespace), map));
    let found = get(&cluster.client, &path).await;
    let found = found.map_err(|error| cluster.failed(&format!("read ConfigMap {namespace}/{map}"), error))?;
    Ok(found.and_then(|map| Some(map["data"][key].as_str()?.to_owned())))
}
