//! Monitors, where the cluster has that kind. A controller waits for all kinds of its children, so networks must not have children of a kind
//! that may never be there. Instead the definition of that kind has a controller run, for as long as it is there, that gives each group's
//! `StatefulSet` its monitor.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use mainstay::{ChildKind, Controller, Error, Kind, Registration, Scope, SyncRequest, SyncResponse};

use crate::config::NetworkConfig;
use crate::kinds::{Network, labels};
use crate::objects::{MONITORS, pod_monitor};

/// The controller of definitions: it is about one of them.
pub(crate) fn controller() -> Controller {
    Controller::of::<CustomResourceDefinition>().runs(of_groups()).sync(|request: &SyncRequest| {
        let [name, _, version, ..] = MONITORS;
        if request.name() != name {
            return Ok(SyncResponse::new());
        }
        let definition: CustomResourceDefinition = request.parent()?;
        let is_served = definition.spec.versions.iter().any(|known| known.name == version && known.served);
        let conditions = definition.status.and_then(|status| status.conditions).unwrap_or_default();
        let is_established =
            conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True");
        let response = SyncResponse::new();
        Ok(if is_served && is_established {
            response.with_controller(Registration::new(of_groups(), version))
        } else {
            response
        })
    })
}

/// The controller of groups.
fn of_groups() -> Controller {
    let [_, group, version, kind, plural] = MONITORS;
    let monitors = Kind::new(&format!("{group}/{version}"), kind, plural, Scope::Namespaced);
    Controller::of::<StatefulSet>().child(ChildKind::new(monitors)).reads::<Network>().sync(of_group)
}

fn of_group(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let set: StatefulSet = request.parent()?;
    let all = set.metadata.labels.unwrap_or_default();
    let owners = set.metadata.owner_references.unwrap_or_default();
    let response = SyncResponse::new();
    let (Some(name), Some(group)) = (all.get(labels::NETWORK), all.get(labels::GROUP)) else {
        return Ok(response);
    };
    if request.namespace() != Some(NetworkConfig::namespace(name).as_str()) {
        return Ok(response);
    }
    let Some(network) = request.get::<Network>(name)? else { return Ok(response) };
    if !owners.iter().any(|owner| Some(&owner.uid) == network.metadata.uid.as_ref()) {
        return Ok(response);
    }
    let config = NetworkConfig::from(&network.spec);
    let place = (0..config.peers.len()).find(|place| config.group_name(*place) == *group);
    match place {
        Some(place) if config.monitoring.pod_monitor.enabled => {
            response.with_child(pod_monitor(name, &config, place))
        }
        _ => Ok(response),
    }
}
