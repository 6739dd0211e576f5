//! The file that lets clients find the way in. One process at a time writes it, and none writes over a file of somebody else.
//!
//! The claim is a lock of the operating system on the file: it ends with the process however that ends, and leaves nothing beside the
//! file. A file that is not there appears when it is complete, with the lock on it. Writing puts another file in the place of one that
//! is there, so that nobody reads a half; the claim is then on both. What users have put into it stays: see [`merge`].

mod merge;

use super::refuse;
use crate::failure::Failure;
use crate::input::{FILE_BYTES_MAX, read_file, read_text};
use mainstay_apiserver::write_private;
use serde::Deserialize;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A kubeconfig that this process alone writes, as long as this lives.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    held: Vec<File>,
    may_be_foreign: bool,
    /// What was in it.
    before: Option<String>,
}

impl Claim {
    /// Claims the file, if it is there. One that holds something else than a kubeconfig of ours is refused, unless it is in a
    /// directory that is ours anyway. One that is not there is claimed when it is written.
    pub(super) fn new(path: &Path, may_be_foreign: bool) -> Result<Self, Failure> {
        let failed = |error| refuse::kubeconfig(error, path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut claim = Claim { path: path.to_owned(), held: Vec::new(), may_be_foreign, before: None };
        match File::open(path) {
            Ok(file) => claim.take(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(claim)
    }

    /// Claims a file that is there.
    fn take(&mut self, mut file: File) -> Result<(), Failure> {
        hold(&file, &self.path)?;
        let read = read_text(&mut file, FILE_BYTES_MAX);
        let text = read.as_deref().unwrap_or_default();
        // What is no text is no kubeconfig either. A blank file says nothing that could be lost.
        let is_blank = text.trim().is_empty();
        let is_ours = is_blank || Config::parse(text).is_some_and(|config| config.is_ours());
        if self.may_be_foreign && (read.is_err() || !is_ours) {
            return Err(refuse::foreign_kubeconfig(&self.path));
        }
        self.before = read.ok();
        self.held.push(file);
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts this text into the file, and keeps what users have added to it.
    pub(super) fn write(&mut self, text: &str) -> Result<(), Failure> {
        if self.held.is_empty() && self.appear(text)? {
            return Ok(());
        }
        let text = merge::merged(self.before.as_deref().unwrap_or_default(), text);
        let failed = |error| refuse::kubeconfig(error, &self.path);
        write_private(&self.path, text.as_bytes()).map_err(failed)?;
        let written = File::open(&self.path).map_err(failed)?;
        hold(&written, &self.path)?;
        self.held.push(written);
        Ok(())
    }

    /// Makes the file, complete and locked from the first moment on. False if there is one by now, which is claimed like any other.
    fn appear(&mut self, text: &str) -> Result<bool, Failure> {
        let failed = |error| refuse::kubeconfig(error, &self.path);
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let complete = self.path.with_file_name(name);
        write_private(&complete, text.as_bytes()).map_err(failed)?;
        let linked = File::open(&complete).and_then(|file| {
            file.try_lock().map_err(io::Error::from)?;
            std::fs::hard_link(&complete, &self.path).map(|()| file)
        });
        let _ = std::fs::remove_file(&complete);
        match linked {
            Ok(file) => {
                self.held.push(file);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.take(File::open(&self.path).map_err(failed)?)?;
                Ok(false)
            }
            // Not every file system has links. Then it is made as any other file.
            Err(_) => {
                self.take(File::create_new(&self.path).map_err(failed)?)?;
                Ok(false)
            }
        }
    }

    /// Removes the file: what it leads to is gone.
    pub(super) fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn hold(file: &File, path: &Path) -> Result<(), Failure> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let text = read_file(path, FILE_BYTES_MAX).unwrap_or_default();
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
        let claim = Claim::new(&path, true).unwrap();
        assert!(!path.exists(), "nobody finds a file that says nothing");
        drop(claim);
        assert!(!path.exists());
    }

    #[test]
    fn a_claim_is_on_the_file_from_when_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let own = mainstay_apiserver::Credentials::generate().unwrap().kubeconfig("https://127.0.0.1:1");
        let mut claim = Claim::new(&path, true).unwrap();
        let mut second = Claim::new(&path, true).unwrap();
        claim.write(&own).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), own);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
        let refused = second.write(&own).unwrap_err().render();
        assert!(refused.contains("https://127.0.0.1:1"), "{refused}");
        let refused = Claim::new(&path, true).unwrap_err().render();
        assert!(refused.contains("https://127.0.0.1:1"), "{refused}");
        claim.write(&own).unwrap();
        drop(claim);
        Claim::new(&path, true).unwrap();
        assert!(path.exists());
    }

    #[test]
    fn what_a_user_has_set_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let own = |port: u16| {
            mainstay_apiserver::Credentials::generate()
                .unwrap()
                .kubeconfig(&format!("https://127.0.0.1:{port}"))
        };
        Claim::new(&path, true).unwrap().write(&own(1)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("    user: admin\n", "    user: admin\n    namespace: shop\n"))
            .unwrap();
        Claim::new(&path, true).unwrap().write(&own(2)).unwrap();
        let config = kube::config::Kubeconfig::read_from(&path).unwrap();
        let context = config.contexts[0].context.as_ref().unwrap();
        assert_eq!(context.namespace.as_deref(), Some("shop"));
        let server = config.clusters[0].cluster.as_ref().unwrap().server.as_deref();
        assert_eq!(server, Some("https://127.0.0.1:2"));
    }
}
