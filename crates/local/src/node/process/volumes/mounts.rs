//! Where containers find their volumes. A process without rights cannot mount anything, so each container has a directory that
//! stands for its root, and a mount is a link in it: what a container expects at `/etc/app` is at `$MAINSTAY_ROOT/etc/app`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Container;

use super::super::environment::expand;
use super::files::{inside, link, remove_link};

/// A link in a container's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Where it is, relative to the root.
    path: PathBuf,
    /// Which volume it shows.
    volume: String,
    /// Which part of that volume.
    part: Option<PathBuf>,
}

/// The mounts of a container, outer ones before those inside them.
pub(crate) fn mounts(
    container: &Container,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<Mount>, String> {
    let mut all = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let fail = |error: io::Error| {
            format!("mountPath {:?} of volume {:?}: {error}", mount.mount_path, mount.name)
        };
        let path = inside(mount.mount_path.trim_start_matches('/')).map_err(fail)?;
        let given = mount.sub_path.clone().filter(|part| !part.is_empty());
        let part = match mount.sub_path_expr.as_deref().filter(|part| !part.is_empty()) {
            Some(expression) => Some(expanded(expression, variables)?),
            None => given,
        };
        // What variables make of a path may be secret.
        let out = |_| format!("subPath of volume {:?} at {:?} leads out of it", mount.name, mount.mount_path);
        let part = part.map(|part| inside(&part)).transpose().map_err(out)?;
        all.push(Mount { path, volume: mount.name.clone(), part });
    }
    all.sort_by_key(|mount| mount.path.components().count());
    Ok(all)
}

/// A path in which all variables must have values.
fn expanded(expression: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut missing = Vec::new();
    let path = expand(expression, |name| {
        let value = variables.get(name).filter(|value| !value.is_empty());
        if value.is_none() {
            missing.push(name.to_owned());
        }
        value.cloned().or(Some(String::new()))
    });
    missing.sort();
    missing.dedup();
    if missing.is_empty() { Ok(path) } else { Err(format!("missing value for {}", missing.join(", "))) }
}

/// Makes the mounts in a root that has none yet. `volumes` says in which directory each volume is.
pub(crate) fn link_mounts(
    root: &Path,
    mounts: &[Mount],
    volumes: &BTreeMap<String, PathBuf>,
) -> io::Result<()> {
    for mount in mounts {
        let Some(volume) = volumes.get(&mount.volume) else {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no volume {:?}", mount.volume),
            ));
        };
        let target = match &mount.part {
            Some(part) => volume.join(part),
            None => volume.clone(),
        };
        if !target.exists() {
            fs::create_dir_all(&target)?;
        }
        let name = root.join(&mount.path);
        if let Some(parent) = name.parent() {
            fs::create_dir_all(parent)?;
        }
        remove_link(&name)?;
        link(&target, &name)?;
    }
    Ok(())
}

#[cfg(all(test, unix))]
#[expect(clippy::needless_pass_by_value, reason = "fixtures and expectations are literals")]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn plan(all: Value, variables: &[(&str, &str)]) -> Result<Vec<Mount>, String> {
        let container = serde_json::from_value(json!({"name": "main", "volumeMounts": all})).unwrap();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        mounts(&container, &variables.collect())
    }

    #[test]
    fn mounts_are_found_below_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let (root, volume) = (directory.path().join("root"), directory.path().join("v"));
        fs::create_dir_all(volume.join("deep")).unwrap();
        fs::write(volume.join("deep/file"), "text").unwrap();
        let plan = plan(
            json!([
                {"name": "v", "mountPath": "/data/inner", "subPath": "new"},
                {"name": "v", "mountPath": "/data"},
                {"name": "v", "mountPath": "/etc/app.conf", "subPathExpr": "$(WHERE)/file"},
            ]),
            &[("WHERE", "deep")],
        )
        .unwrap();
        let volumes = [("v".to_owned(), volume.clone())].into();
        link_mounts(&root, &plan, &volumes).unwrap();
        assert_eq!(fs::read_to_string(root.join("data/deep/file")).unwrap(), "text");
        assert_eq!(fs::read_to_string(root.join("etc/app.conf")).unwrap(), "text");
        fs::write(root.join("data/inner/x"), "1").unwrap();
        assert_eq!(fs::read_to_string(volume.join("new/x")).unwrap(), "1");
    }

    #[test]
    fn mounts_that_lead_out_are_refused() {
        assert!(plan(json!([{"name": "v", "mountPath": "/../../x"}]), &[]).is_err());
        assert!(plan(json!([{"name": "v", "mountPath": "/"}]), &[]).is_err());
        assert!(plan(json!([{"name": "v", "mountPath": "/a", "subPath": "../b"}]), &[]).is_err());
    }

    #[test]
    fn variables_of_a_part_must_have_values() {
        let mount = json!([{"name": "v", "mountPath": "/a", "subPathExpr": "$(B)/$(A)"}]);
        assert_eq!(plan(mount, &[("A", "")]), Err("missing value for A, B".into()));
    }
}
