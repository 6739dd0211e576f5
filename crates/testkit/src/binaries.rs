//! Where the binaries of a real control plane are found.
//!
//! Either in the directory that `KUBEBUILDER_ASSETS` names, or in the cache that `make kubernetes` fills:
//! `${MAINSTAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mainstay}/kubernetes/<version>`.

use std::env;
use std::path::{Path, PathBuf};

/// The version that `hack/kubernetes/go.mod` pins.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

/// The programs a control plane is made of.
const NEEDED: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

/// A directory that holds every program of a control plane.
#[derive(Debug, Clone)]
pub struct Binaries {
    directory: PathBuf,
}

/// Not every program is there. The text says which, where they were looked for, and how to get them.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "no {} in {}\n  next: run `make kubernetes` (builds Kubernetes {KUBERNETES_VERSION} once), or set \
     KUBEBUILDER_ASSETS to a directory that has them",
    missing.join(", "),
    directory.display()
)]
pub struct MissingBinaries {
    missing: Vec<&'static str>,
    directory: PathBuf,
}

impl Binaries {
    /// Looks in the two places this module names.
    pub fn find() -> Result<Self, MissingBinaries> {
        Self::in_directory(directory())
    }

    /// Looks in one directory.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Result<Self, MissingBinaries> {
        let directory = directory.into();
        let missing: Vec<_> =
            NEEDED.into_iter().filter(|program| !directory.join(program).is_file()).collect();
        if missing.is_empty() { Ok(Self { directory }) } else { Err(MissingBinaries { missing, directory }) }
    }

    /// The path of one program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The directory of all of them; `kubectl` is usually in it too.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// One program that a control plane does not need, `kubectl` say, from the same places.
pub fn find_program(name: &'static str) -> Result<PathBuf, MissingBinaries> {
    let directory = directory();
    let path = directory.join(name);
    if path.is_file() { Ok(path) } else { Err(MissingBinaries { missing: vec![name], directory }) }
}

fn directory() -> PathBuf {
    env::var_os("KUBEBUILDER_ASSETS")
        .filter(|value| !value.is_empty())
        .map_or_else(|| cache_directory().join("kubernetes").join(KUBERNETES_VERSION), PathBuf::from)
}

fn cache_directory() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("MAINSTAY_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("mainstay")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/mainstay")))
        .unwrap_or_else(|| PathBuf::from(".cache/mainstay"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_command_that_gets_it() {
        let error = Binaries::in_directory("/nowhere").unwrap_err().to_string();
        assert!(error.starts_with("no etcd, kube-apiserver, kube-controller-manager in /nowhere"), "{error}");
        assert!(error.contains("make kubernetes"), "{error}");
    }

    #[test]
    fn the_version_looked_for_is_the_one_that_is_built() {
        let go_mod =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../hack/kubernetes/go.mod"))
                .unwrap();
        assert!(go_mod.contains(&format!("require k8s.io/kubernetes {KUBERNETES_VERSION}\n")));
    }
}
