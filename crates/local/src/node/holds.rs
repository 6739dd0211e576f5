//! What keeps a pod or one of its containers from starting: what it refers to and is not there.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMap, Container, EnvFromSource, EnvVar, KeyToPath, PersistentVolumeClaim, Pod, Secret, Volume,
    VolumeProjection,
};
use mainstay::{Error, SyncRequest};

use super::runtime::CannotStart;
use crate::controllers::ephemeral;

/// What is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Holds {
    /// What no container of the pod starts without.
    pub(super) pod: Option<String>,
    /// What one container does not start without, by its name.
    pub(super) containers: BTreeMap<String, CannotStart>,
}

/// Looks for all that a pod refers to. The pod is synced again when any of it comes or changes.
pub(super) fn observe_holds(request: &SyncRequest, pod: &Pod) -> Result<Holds, Error> {
    let mut holds = Holds::default();
    let Some(spec) = &pod.spec else { return Ok(holds) };
    for volume in spec.volumes.iter().flatten() {
        if let Some(missing) = missing_for_volume(request, pod, volume)? {
            holds.pod.get_or_insert(missing);
        }
    }
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        if let Some(message) = missing_for_container(request, container)? {
            let refused = CannotStart { reason: "CreateContainerConfigError".to_owned(), message };
            holds.containers.insert(container.name.clone(), refused);
        }
    }
    Ok(holds)
}

fn missing_for_volume(request: &SyncRequest, pod: &Pod, volume: &Volume) -> Result<Option<String>, Error> {
    let named = volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.clone());
    let own = ephemeral::claim_name(request.name(), volume);
    let is_own = own.is_some();
    if let Some(name) = named.or(own) {
        let claim: Option<PersistentVolumeClaim> = request.get(&name)?;
        let mismatch = claim.as_ref().and_then(|claim| ephemeral::mismatch(pod, claim));
        if let Some(mismatch) = mismatch.filter(|_| is_own) {
            return Ok(Some(mismatch));
        }
        let phase = claim.and_then(|claim| claim.status?.phase);
        return Ok((phase.as_deref() != Some("Bound"))
            .then(|| format!("persistentvolumeclaim \"{name}\" is not bound")));
    }
    if let Some(source) = &volume.config_map {
        return config_map_files(request, &source.name, source.items.as_deref(), source.optional);
    }
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        return secret_files(request, name, source.items.as_deref(), source.optional);
    }
    for source in volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten()) {
        if let Some(missing) = missing_for_projection(request, source)? {
            return Ok(Some(missing));
        }
    }
    Ok(None)
}

fn missing_for_projection(request: &SyncRequest, source: &VolumeProjection) -> Result<Option<String>, Error> {
    if let Some(source) = &source.config_map {
        return config_map_files(request, &source.name, source.items.as_deref(), source.optional);
    }
    if let Some(source) = &source.secret {
        return secret_files(request, &source.name, source.items.as_deref(), source.optional);
    }
    Ok(None)
}

/// What a volume lacks that shows a config map, or the keys of it that `items` names.
fn config_map_files(
    request: &SyncRequest,
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
) -> Result<Option<String>, Error> {
    for item in items.unwrap_or_default() {
        if config_map(request, name, Some(&item.key), optional)?.is_some()
            && request.get::<ConfigMap>(name)?.is_some()
        {
            return Ok(Some(format!("configmap references non-existent config key: {}", item.key)));
        }
    }
    config_map(request, name, None, optional)
}

/// What a volume lacks that shows a secret, or the keys of it that `items` names.
fn secret_files(
    request: &SyncRequest,
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
) -> Result<Option<String>, Error> {
    for item in items.unwrap_or_default() {
        if secret(request, name, Some(&item.key), optional)?.is_some()
            && request.get::<Secret>(name)?.is_some()
        {
            return Ok(Some(format!("references non-existent secret key: {}", item.key)));
        }
    }
    secret(request, name, None, optional)
}

fn missing_for_container(request: &SyncRequest, container: &Container) -> Result<Option<String>, Error> {
    for source in container.env_from.iter().flatten() {
        if let Some(missing) = missing_for_all(request, source)? {
            return Ok(Some(missing));
        }
    }
    for variable in container.env.iter().flatten() {
        if let Some(missing) = missing_for_variable(request, variable)? {
            return Ok(Some(missing));
        }
    }
    Ok(None)
}

fn missing_for_all(request: &SyncRequest, source: &EnvFromSource) -> Result<Option<String>, Error> {
    if let Some(source) = &source.config_map_ref {
        return config_map(request, &source.name, None, source.optional);
    }
    match &source.secret_ref {
        Some(source) => secret(request, &source.name, None, source.optional),
        None => Ok(None),
    }
}

fn missing_for_variable(request: &SyncRequest, variable: &EnvVar) -> Result<Option<String>, Error> {
    let Some(source) = &variable.value_from else { return Ok(None) };
    if let Some(source) = &source.config_map_key_ref {
        return config_map(request, &source.name, Some(&source.key), source.optional);
    }
    match &source.secret_key_ref {
        Some(source) => secret(request, &source.name, Some(&source.key), source.optional),
        None => Ok(None),
    }
}

fn config_map(
    request: &SyncRequest,
    name: &str,
    key: Option<&str>,
    optional: Option<bool>,
) -> Result<Option<String>, Error> {
    if optional == Some(true) {
        return Ok(None);
    }
    let Some(found) = request.get::<ConfigMap>(name)? else {
        return Ok(Some(format!("configmap \"{name}\" not found")));
    };
    let has = |key: &&str| {
        found.data.as_ref().is_some_and(|data| data.contains_key(*key))
            || found.binary_data.as_ref().is_some_and(|data| data.contains_key(*key))
    };
    Ok(missing_key(request, "ConfigMap", name, key.filter(|key| !has(key))))
}

fn secret(
    request: &SyncRequest,
    name: &str,
    key: Option<&str>,
    optional: Option<bool>,
) -> Result<Option<String>, Error> {
    if optional == Some(true) {
        return Ok(None);
    }
    let Some(found) = request.get::<Secret>(name)? else {
        return Ok(Some(format!("secret \"{name}\" not found")));
    };
    let has = |key: &&str| found.data.as_ref().is_some_and(|data| data.contains_key(*key));
    Ok(missing_key(request, "Secret", name, key.filter(|key| !has(key))))
}

fn missing_key(request: &SyncRequest, kind: &str, name: &str, key: Option<&str>) -> Option<String> {
    let namespace = request.namespace().unwrap_or_default();
    key.map(|key| format!("couldn't find key {key} in {kind} {namespace}/{name}"))
}
