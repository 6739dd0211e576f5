//! Ownership of `replicas`, seen through the scale subresource.

use super::managers::{Manager, Managers};
use super::path::Element;
use super::set::FieldSet;
use serde_json::Value;

const SCALE: &str = "autoscaling/v1";

/// Where each version of a kind keeps its replicas; nowhere (no steps) in one without a scale subresource.
pub(crate) type ReplicasPaths<'a> = &'a [(&'a str, &'a [&'a str])];

fn steps(path: &[&str]) -> Vec<Element> {
    path.iter().map(|name| Element::field(name)).collect()
}

fn single(path: &[&str]) -> FieldSet {
    FieldSet::of_fields(&[path])
}

fn path_of<'a>(paths: ReplicasPaths<'a>, version: &str) -> Option<&'a [&'a str]> {
    paths.iter().find(|(served, _)| *served == version).map(|(_, path)| *path)
}

/// The `managedFields` of a scale: those entries of the scaled object that own its replicas.
pub(crate) fn managers_of_scale(scaled: Option<&Value>, paths: ReplicasPaths<'_>) -> Option<Value> {
    let mut managers = Managers::decode(scaled).ok()?;
    managers.list.retain_mut(|manager| {
        let Some(path) = path_of(paths, &manager.api_version) else { return false };
        let owns = manager.fields.has(&steps(path));
        manager.fields = single(&["spec", "replicas"]);
        SCALE.clone_into(&mut manager.api_version);
        owns
    });
    managers.encode()
}

/// The `managedFields` of the scaled object after a write to its scale: managers that no longer own the
/// replicas there lose them here, and new ones get them in the terms of `api_version`.
pub(crate) fn managers_of_scaled(
    scaled: Option<&Value>,
    scale: Option<&Value>,
    paths: ReplicasPaths<'_>,
    api_version: &str,
) -> Option<Value> {
    let (Ok(mut managers), Ok(mut through)) = (Managers::decode(scaled), Managers::decode(scale)) else {
        return scaled.cloned();
    };
    managers.list.retain_mut(|manager| {
        let Some(path) = path_of(paths, &manager.api_version) else { return false };
        if !manager.fields.has(&steps(path)) {
            return true;
        }
        if through.take(&manager.identity).is_some() {
            return true;
        }
        manager.fields = std::mem::take(&mut manager.fields).difference(&single(path));
        !manager.fields.is_empty()
    });
    let replicas = steps(&["spec", "replicas"]);
    if let Some(path) = path_of(paths, api_version) {
        for Manager { identity, fields, .. } in through.list {
            if fields.has(&replicas) {
                // kube-apiserver looks for the time among the entries of the scaled object, in vain.
                let time = managers.get_mut(&identity).and_then(|manager| manager.time);
                let api_version = api_version.to_owned();
                managers.put(Manager { identity, api_version, fields: single(path), time });
            }
        }
    }
    managers.encode()
}
