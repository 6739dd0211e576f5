//! What is in a pod's volumes. Pure: [`files`] writes it, [`mounts`] makes it found where containers look for it.
//!
//! Errors name objects and keys, never what is in them.

pub(super) mod files;
pub(super) mod mounts;
#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "fixtures and expectations are literals")]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    ConfigMap, Container, DownwardAPIVolumeFile, KeyToPath, Pod, ProjectedVolumeSource, Secret, Volume,
};

use super::environment::{Downward, Sources};
use crate::controllers::ephemeral::claim_name;

/// A file of a volume.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// What is in it.
    pub(crate) data: Vec<u8>,
    /// Its permissions.
    pub(crate) mode: u32,
}

/// Files by their paths in a volume.
pub(crate) type Files = BTreeMap<String, File>;

/// What a volume is.
pub(crate) enum Content {
    /// These files, and what they become when their sources change.
    Files(Files),
    /// A directory that is the pod's, empty at first.
    Scratch,
    /// The directory of a claim of this name.
    Claim(String),
}

/// What a volume is, in the errors of a mount that fails.
pub(crate) fn content(
    pod: &Pod,
    volume: &Volume,
    sources: &Sources,
    downward: &Downward<'_>,
) -> Result<Content, String> {
    let content = if let Some(source) = &volume.config_map {
        let found = sources.config_map(&source.name, source.optional);
        let items = source.items.as_deref().unwrap_or_default();
        found.and_then(|found| {
            let found = config_map_files(found, items, source.default_mode, source.optional)?;
            Ok(Content::Files(found))
        })
    } else if let Some(source) = &volume.secret {
        let found = sources.secret(source.secret_name.as_deref().unwrap_or_default(), source.optional);
        let items = source.items.as_deref().unwrap_or_default();
        found.and_then(|found| {
            Ok(Content::Files(secret_files(found, items, source.default_mode, source.optional)?))
        })
    } else if let Some(source) = &volume.projected {
        projected_files(source, sources, downward).map(Content::Files)
    } else if let Some(source) = &volume.downward_api {
        let items = source.items.as_deref().unwrap_or_default();
        downward_files(items, source.default_mode, downward).map(Content::Files)
    } else if let Some(source) = &volume.persistent_volume_claim {
        Ok(Content::Claim(source.claim_name.clone()))
    } else if let Some(claim) = claim_name(pod.metadata.name.as_deref().unwrap_or_default(), volume) {
        Ok(Content::Claim(claim))
    } else {
        Ok(Content::Scratch)
    };
    content.map_err(|error| format!("MountVolume.SetUp failed for volume {:?} : {error}", volume.name))
}

/// Permissions where none are given.
const MODE: i32 = 0o644;

fn mode(own: Option<i32>, of_all: Option<i32>) -> u32 {
    u32::try_from(own.or(of_all).unwrap_or(MODE)).unwrap_or_default() & 0o777
}

/// The files of a set of keys: all of them, or those that items pick.
fn picked<'a>(
    all: impl Iterator<Item = (&'a str, &'a [u8])>,
    items: &[KeyToPath],
    default_mode: Option<i32>,
    optional: Option<bool>,
    missing: &str,
) -> Result<Files, String> {
    let all: BTreeMap<&str, &[u8]> = all.collect();
    if items.is_empty() {
        let file = |data: &[u8]| File { data: data.to_vec(), mode: mode(None, default_mode) };
        return Ok(all.into_iter().map(|(key, data)| (key.to_owned(), file(data))).collect());
    }
    let mut files = Files::new();
    for item in items {
        match all.get(item.key.as_str()) {
            Some(data) => {
                files.insert(
                    item.path.clone(),
                    File { data: data.to_vec(), mode: mode(item.mode, default_mode) },
                );
            }
            None if optional == Some(true) => {}
            None => return Err(format!("{missing}: {}", item.key)),
        }
    }
    Ok(files)
}

fn config_map_files(
    found: Option<&ConfigMap>,
    items: &[KeyToPath],
    default_mode: Option<i32>,
    optional: Option<bool>,
) -> Result<Files, String> {
    let text = found.and_then(|found| found.data.as_ref()).into_iter().flatten();
    let binary = found.and_then(|found| found.binary_data.as_ref()).into_iter().flatten();
    let all = text.map(|(key, data)| (key.as_str(), data.as_bytes()));
    let all = all.chain(binary.map(|(key, data)| (key.as_str(), data.0.as_slice())));
    picked(all, items, default_mode, optional, "configmap references non-existent config key")
}

fn secret_files(
    found: Option<&Secret>,
    items: &[KeyToPath],
    default_mode: Option<i32>,
    optional: Option<bool>,
) -> Result<Files, String> {
    let all = found.and_then(|found| found.data.as_ref()).into_iter().flatten();
    let all = all.map(|(key, data)| (key.as_str(), data.0.as_slice()));
    picked(all, items, default_mode, optional, "references non-existent secret key")
}

fn downward_files(
    items: &[DownwardAPIVolumeFile],
    default_mode: Option<i32>,
    downward: &Downward<'_>,
) -> Result<Files, String> {
    let mut files = Files::new();
    for item in items {
        let text = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => downward.field(&field.field_path)?,
            (None, Some(resource)) => downward.resource(resource, None)?,
            (None, None) => String::new(),
        };
        files
            .insert(item.path.clone(), File { data: text.into_bytes(), mode: mode(item.mode, default_mode) });
    }
    Ok(files)
}

/// The files of all sources. Tokens of service accounts are left out: nobody here would know them. What else there is beside one is
/// for whoever has the token, so it may be missing.
fn projected_files(
    source: &ProjectedVolumeSource,
    sources: &Sources,
    downward: &Downward<'_>,
) -> Result<Files, String> {
    let all = source.sources.as_deref().unwrap_or_default();
    let beside_token = all.iter().any(|source| source.service_account_token.is_some());
    let optional = |given: Option<bool>| if beside_token { Some(true) } else { given };
    let mut files = Files::new();
    for part in all {
        if let Some(from) = &part.config_map {
            let found = sources.config_map(&from.name, optional(from.optional))?;
            let items = from.items.as_deref().unwrap_or_default();
            files.extend(config_map_files(found, items, source.default_mode, optional(from.optional))?);
        } else if let Some(from) = &part.secret {
            let found = sources.secret(&from.name, optional(from.optional))?;
            let items = from.items.as_deref().unwrap_or_default();
            files.extend(secret_files(found, items, source.default_mode, optional(from.optional))?);
        } else if let Some(from) = &part.downward_api {
            let items = from.items.as_deref().unwrap_or_default();
            files.extend(downward_files(items, source.default_mode, downward)?);
        } else if part.service_account_token.is_none() {
            return Err("only configMap, secret and downwardAPI sources are supported".into());
        }
    }
    Ok(files)
}

/// The objects that a container's variables and its pod's volumes refer to, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct References {
    /// Config maps.
    pub(crate) config_maps: BTreeSet<String>,
    /// Secrets.
    pub(crate) secrets: BTreeSet<String>,
    /// Whether there are files that tell of the pod itself.
    pub(crate) downward: bool,
}

impl References {
    /// Those of a pod's volumes.
    pub(crate) fn of_volumes(pod: &Pod) -> Self {
        let mut all = Self::default();
        for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
            all.config_maps.extend(volume.config_map.iter().map(|source| source.name.clone()));
            all.secrets.extend(volume.secret.iter().filter_map(|source| source.secret_name.clone()));
            all.downward |= volume.downward_api.is_some();
            for part in volume.projected.iter().flat_map(|source| source.sources.iter().flatten()) {
                all.config_maps.extend(part.config_map.iter().map(|source| source.name.clone()));
                all.secrets.extend(part.secret.iter().map(|source| source.name.clone()));
                all.downward |= part.downward_api.is_some();
            }
        }
        all
    }

    /// Adds those of a container's variables.
    pub(crate) fn with_variables(mut self, container: &Container) -> Self {
        for from in container.env_from.iter().flatten() {
            self.config_maps.extend(from.config_map_ref.iter().map(|source| source.name.clone()));
            self.secrets.extend(from.secret_ref.iter().map(|source| source.name.clone()));
        }
        for from in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
            self.config_maps.extend(from.config_map_key_ref.iter().map(|source| source.name.clone()));
            self.secrets.extend(from.secret_key_ref.iter().map(|source| source.name.clone()));
        }
        self
    }
}
