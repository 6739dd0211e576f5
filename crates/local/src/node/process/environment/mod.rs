//! The variables of a container, as its pod declares them.
//!
//! Errors name objects and keys, never what is in them.

mod expand;
mod fields;
mod hosts;
mod services;
#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "fixtures and expectations are literals")]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvFromSource, EnvVarSource, PodSpec, Secret};

pub(super) use expand::expand;
pub(super) use fields::{Downward, find_container};
pub(super) use hosts::render_hosts;
pub use services::ApiAddress;
pub(super) use services::{Network, service_variables};

/// The objects of the pod's namespace that a pod refers to; none where there is none of that name.
#[derive(Default)]
pub(super) struct Sources {
    /// By name.
    pub(super) config_maps: BTreeMap<String, Option<ConfigMap>>,
    /// By name.
    pub(super) secrets: BTreeMap<String, Option<Secret>>,
}

impl Sources {
    /// The config map of this name. One that is not there is nothing if it is optional.
    pub(super) fn config_map(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<Option<&ConfigMap>, String> {
        let found = self.config_maps.get(name).and_then(Option::as_ref);
        match (found, optional) {
            (None, Some(true)) | (Some(_), _) => Ok(found),
            (None, _) => Err(format!("configmap {name:?} not found")),
        }
    }

    /// The secret of this name. One that is not there is nothing if it is optional.
    pub(super) fn secret(&self, name: &str, optional: Option<bool>) -> Result<Option<&Secret>, String> {
        let found = self.secrets.get(name).and_then(Option::as_ref);
        match (found, optional) {
            (None, Some(true)) | (Some(_), _) => Ok(found),
            (None, _) => Err(format!("secret {name:?} not found")),
        }
    }
}

/// The variables that a container declares, in addition to those that every process gets. Later declarations win, `env` over
/// `envFrom`; a value refers to what was declared before it, and to services.
pub(super) fn declared(
    container: &Container,
    sources: &Sources,
    downward: &Downward<'_>,
    services: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let mut variables = BTreeMap::new();
    for from in container.env_from.iter().flatten() {
        add_all(&mut variables, from, sources)?;
    }
    for variable in container.env.iter().flatten() {
        let given = variable.value.as_deref().unwrap_or_default();
        let value = match &variable.value_from {
            Some(from) if given.is_empty() => resolve(from, container, sources, downward)?,
            _ => Some(expand(given, |name| variables.get(name).or_else(|| services.get(name)).cloned())),
        };
        if let Some(value) = value {
            variables.insert(variable.name.clone(), value);
        }
    }
    match variables.iter().find(|(name, value)| name.contains('\0') || value.contains('\0')) {
        Some((name, _)) => Err(format!("environment variable {name:?} holds a NUL byte")),
        None => Ok(variables),
    }
}

/// Adds all that a config map or a secret holds.
fn add_all(
    variables: &mut BTreeMap<String, String>,
    from: &EnvFromSource,
    sources: &Sources,
) -> Result<(), String> {
    let prefix = from.prefix.as_deref().unwrap_or_default();
    if let Some(reference) = &from.config_map_ref {
        let found = sources.config_map(&reference.name, reference.optional)?;
        for (key, value) in found.and_then(|found| found.data.as_ref()).into_iter().flatten() {
            variables.insert(format!("{prefix}{key}"), value.clone());
        }
    }
    if let Some(reference) = &from.secret_ref {
        let found = sources.secret(&reference.name, reference.optional)?;
        for (key, value) in found.and_then(|found| found.data.as_ref()).into_iter().flatten() {
            variables.insert(format!("{prefix}{key}"), text(&value.0));
        }
    }
    Ok(())
}

/// The value that a source has; none if it is optional and not there.
fn resolve(
    from: &EnvVarSource,
    container: &Container,
    sources: &Sources,
    downward: &Downward<'_>,
) -> Result<Option<String>, String> {
    let namespace = downward.pod.metadata.namespace.as_deref().unwrap_or_default();
    let missing =
        |kind: &str, key: &str, name: &str| format!("couldn't find key {key} in {kind} {namespace}/{name}");
    if let Some(field) = &from.field_ref {
        return downward.field(&field.field_path).map(Some);
    }
    if let Some(resource) = &from.resource_field_ref {
        return downward.resource(resource, Some(container)).map(Some);
    }
    if let Some(reference) = &from.config_map_key_ref {
        let Some(found) = sources.config_map(&reference.name, reference.optional)? else { return Ok(None) };
        let value = found.data.as_ref().and_then(|data| data.get(&reference.key)).cloned();
        return match value {
            None if reference.optional != Some(true) => {
                Err(missing("ConfigMap", &reference.key, &reference.name))
            }
            value => Ok(value),
        };
    }
    if let Some(reference) = &from.secret_key_ref {
        let Some(found) = sources.secret(&reference.name, reference.optional)? else { return Ok(None) };
        let value = found.data.as_ref().and_then(|data| data.get(&reference.key)).map(|value| text(&value.0));
        return match value {
            None if reference.optional != Some(true) => {
                Err(missing("Secret", &reference.key, &reference.name))
            }
            value => Ok(value),
        };
    }
    if from.file_key_ref.is_some() {
        return Err("valueFrom.fileKeyRef is not supported for pods that run as local processes".into());
    }
    Ok(Some(String::new()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The name of the host that a pod takes itself for, and the domain it is in.
pub(super) fn host_name(name: &str, namespace: &str, spec: &PodSpec) -> (String, Option<String>) {
    let given = spec.hostname.as_deref().filter(|hostname| !hostname.is_empty()).unwrap_or(name);
    let host = match given.get(..HOST_NAME_MAX) {
        Some(beginning) if given.len() > HOST_NAME_MAX => beginning.trim_end_matches(['-', '.']),
        _ => given,
    };
    let subdomain = spec.subdomain.as_deref().filter(|subdomain| !subdomain.is_empty());
    (host.to_owned(), subdomain.map(|subdomain| format!("{subdomain}.{namespace}.svc.cluster.local")))
}

/// The longest name that a host can have.
const HOST_NAME_MAX: usize = 63;
