//! What is read of the cluster for a pod.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{
    ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ListParams;
use kube::{Api, Client};

use super::environment::{Network, Sources};
use super::volumes::References;

/// Why something could not be read. Holds nothing of what was being read: it may be secret.
fn unreadable(what: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("cannot read {what}: {}", status.message),
        _ => format!("cannot read {what}: the API server does not answer"),
    }
}

/// The config maps and secrets that a pod refers to.
pub(super) async fn observe_sources(
    client: &Client,
    namespace: &str,
    wanted: &References,
) -> Result<Sources, String> {
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let config_maps = wanted.config_maps.iter().map(|name| {
        let api = &config_maps;
        async move {
            let found = api
                .get_opt(name)
                .await
                .map_err(|error| unreadable(&format!("configmap {name:?}"), &error))?;
            Ok::<_, String>((name.clone(), found))
        }
    });
    let secrets = wanted.secrets.iter().map(|name| {
        let api = &secrets;
        async move {
            let found =
                api.get_opt(name).await.map_err(|error| unreadable(&format!("secret {name:?}"), &error))?;
            Ok::<_, String>((name.clone(), found))
        }
    });
    let (config_maps, secrets) = tokio::try_join!(try_join_all(config_maps), try_join_all(secrets))?;
    Ok(Sources { config_maps: config_maps.into_iter().collect(), secrets: secrets.into_iter().collect() })
}

/// All services, and what is behind them.
pub(super) async fn observe_network(client: &Client) -> Result<Network, String> {
    let services: Api<Service> = Api::all(client.clone());
    let slices: Api<EndpointSlice> = Api::all(client.clone());
    let all = ListParams::default();
    let (services, slices) = tokio::try_join!(services.list(&all), slices.list(&all))
        .map_err(|error| unreadable("services", &error))?;
    Ok(Network { services: services.items, slices: slices.items })
}

/// What the node of a pod has.
pub(super) async fn observe_allocatable(
    client: &Client,
    pod: &Pod,
) -> Result<BTreeMap<String, Quantity>, String> {
    let Some(name) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) else {
        return Ok(BTreeMap::new());
    };
    let nodes: Api<Node> = Api::all(client.clone());
    let node = nodes.get_opt(name).await.map_err(|error| unreadable(&format!("node {name:?}"), &error))?;
    Ok(node.and_then(|node| node.status?.allocatable).unwrap_or_default())
}

/// The name of the volume that a claim is bound to, and the volume if there is one of that name.
pub(super) async fn observe_claim(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<(String, Option<PersistentVolume>), String> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let found = claims.get_opt(name).await.map_err(|error| unreadable("a claim", &error))?;
    let claim = found.ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
    let bound = claim.status.and_then(|status| status.phase).as_deref() == Some("Bound");
    let volume = claim.spec.and_then(|spec| spec.volume_name).filter(|volume| bound && !volume.is_empty());
    let volume =
        volume.ok_or_else(|| format!("persistentvolumeclaim {name:?} is not bound to a volume yet"))?;
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let found = volumes.get_opt(&volume).await.map_err(|error| unreadable("a volume", &error))?;
    Ok((volume, found))
}

/// Whether a pod is told how to reach the API server: not if it or its service account says no.
pub(super) async fn observe_access(client: &Client, namespace: &str, pod: &Pod) -> Result<bool, String> {
    let spec = pod.spec.as_ref();
    if let Some(given) = spec.and_then(|spec| spec.automount_service_account_token) {
        return Ok(given);
    }
    let name = spec.and_then(|spec| spec.service_account_name.as_deref()).filter(|name| !name.is_empty());
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let found = accounts.get_opt(name.unwrap_or("default")).await;
    let found = found.map_err(|error| unreadable("a service account", &error))?;
    Ok(found.and_then(|account| account.automount_service_account_token).unwrap_or(true))
}
