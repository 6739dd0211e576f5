//! The file that lets clients find the way in. One process at a time writes it, and none writes over a file of somebody else.
//!
//! The claim is a lock of the operating system on the file: it ends with the process however that ends, and leaves nothing beside the
//! file. Writing puts another file in its place, so that nobody reads a half; the claim is then on both.

use super::refuse;
use crate::failure::Failure;
use mainstay_apiserver::write_private;
use serde::Deserialize;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A kubeconfig that this process alone writes, as long as this lives.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    held: Vec<File>,
    /// It was made to be held, and says nothing yet.
    is_blank: bool,
}

impl Claim {
    /// Claims the file, which may be there or not. One that holds something else than a kubeconfig of ours is refused, unless it is
    /// in a directory that is ours anyway.
    pub(super) fn new(path: &Path, may_be_foreign: bool) -> Result<Self, Failure> {
        let failed = |error| refuse::kubeconfig(error, path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let (mut file, is_blank) = match File::create_new(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (File::open(path).map_err(failed)?, false)
            }
            Err(error) => return Err(failed(error)),
        };
        hold(&file, path)?;
        let mut claim = Claim { path: path.to_owned(), held: Vec::new(), is_blank };
        if !is_blank && may_be_foreign {
            let mut text = String::new();
            let read = file.read_to_string(&mut text);
            // What is no text is no kubeconfig either. One that was killed before it wrote anything has left a blank file.
            let is_blank = text.trim().is_empty();
            let is_ours = is_blank || Config::parse(&text).is_some_and(|config| config.is_ours());
            if read.is_err() || !is_ours {
                return Err(refuse::foreign_kubeconfig(path));
            }
        }
        claim.held.push(file);
        Ok(claim)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts this text into the file.
    pub(super) fn write(&mut self, text: &str) -> Result<(), Failure> {
        let failed = |error| refuse::kubeconfig(error, &self.path);
        write_private(&self.path, text.as_bytes()).map_err(failed)?;
        self.is_blank = false;
        let written = File::open(&self.path).map_err(failed)?;
        hold(&written, &self.path)?;
        self.held.push(written);
        Ok(())
    }

    /// Removes the file: what it leads to is gone.
    pub(super) fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.is_blank {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn hold(file: &File, path: &Path) -> Result<(), Failure> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let server = Config::parse(&text).and_then(Config::into_server);
            Err(refuse::taken_kubeconfig(path, server.as_deref()))
        }
        Err(TryLockError::Error(error)) => Err(refuse::kubeconfig(error, path)),
    }
}

/// What matters of a kubeconfig.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    clusters: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(default)]
    cluster: Cluster,
}

#[derive(Default, Deserialize)]
struct Cluster {
    server: Option<String>,
}

impl Config {
    fn parse(text: &str) -> Option<Self> {
        serde_saphyr::from_str(text).ok()
    }

    /// Whether it has no cluster but ours.
    fn is_ours(&self) -> bool {
        matches!(self.clusters.as_slice(), [cluster] if cluster.name == "mainstay")
    }

    fn into_server(self) -> Option<String> {
        self.clusters.into_iter().next()?.cluster.server
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_is_ours_if_it_has_no_other_cluster() {
        let is_ours = |text: &str| Config::parse(text).is_some_and(|config| config.is_ours());
        let credentials = mainstay_apiserver::Credentials::generate().unwrap();
        let own = credentials.kubeconfig("https://127.0.0.1:6443");
        assert!(is_ours(&own));
        assert_eq!(Config::parse(&own).and_then(Config::into_server).unwrap(), "https://127.0.0.1:6443");
        assert!(!is_ours("apiVersion: v1\nclusters:\n- name: work\n  cluster: {}\n"));
        assert!(!is_ours("apiVersion: v1\nclusters:\n- name: mainstay\n- name: work\n"));
        assert!(!is_ours("shopping list"));
        assert!(!is_ours(""));
    }

    #[test]
    fn a_claim_that_comes_to_nothing_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        drop(Claim::new(&path, true).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn a_claim_is_on_the_file_before_and_after_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let own = mainstay_apiserver::Credentials::generate().unwrap().kubeconfig("https://127.0.0.1:1");
        let mut claim = Claim::new(&path, true).unwrap();
        assert!(Claim::new(&path, true).is_err());
        assert!(path.exists(), "who is refused does not remove it");
        claim.write(&own).unwrap();
        let refused = Claim::new(&path, true).unwrap_err().render();
        assert!(refused.contains("https://127.0.0.1:1"), "{refused}");
        drop(claim);
        Claim::new(&path, true).unwrap();
        assert!(path.exists());
    }
}
