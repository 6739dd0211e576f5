//! What the operator's Job tells in its environment.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::peers::{self, CannotRead, Peer};
use crate::config::BootstrapConfig;
use crate::kinds::EdgeSpec;
use crate::runner::environment::{Environment, WrongVariable};
use crate::topology::NamedEdges;
use serde::de::DeserializeOwned;

/// Where the Job finds the peers unless it is told.
const PEERS_PATH: &str = "/network/peers.json";
/// For how long it is tried unless told.
const DEADLINE: Duration = Duration::from_mins(1);
/// How long a peer may take to answer unless told. A dial waits for the network too.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What can be declared.
const METHODS: &str = "one of ring, random, sentinel, full, star, kRegular, smallWorld, explicit";

/// Why it cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// A variable has no such value.
    #[error(transparent)]
    Variable(#[from] WrongVariable),
    /// The connections that are declared cannot be read.
    #[error("{of} at {path}")]
    Edges {
        /// The variable or the file that they are in.
        of: String,
        /// Where in it.
        path: String,
        /// What is wrong there.
        source: serde_json::Error,
    },
    /// An edge in the file names no peer of it.
    #[error("{} has an edge whose end is no place of its peers", .0.display())]
    EdgeWithoutPeer(PathBuf),
    /// The file is not there.
    #[error("cannot read {}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is no `peers.json`.
    #[error("{}", .path.display())]
    Peers {
        /// Which.
        path: PathBuf,
        /// Where in it, and what is wrong there.
        source: CannotRead,
    },
    /// Two peers are the same.
    #[error("{}: [{second}].{tag}.{field} is that of [{first}] too: `{value}`", .path.display())]
    Twice {
        /// Which file.
        path: PathBuf,
        /// The place of the first.
        first: usize,
        /// The place of the second.
        second: usize,
        /// The tag of the second.
        tag: String,
        /// What they share.
        field: &'static str,
        /// And what it is.
        value: String,
    },
}

/// All that the program goes by.
#[derive(Debug, PartialEq)]
pub struct Settings {
    /// What is declared.
    pub bootstrap: BootstrapConfig,
    /// The file with the peers.
    pub peers_path: PathBuf,
    /// For how long it is tried.
    pub deadline: Duration,
    /// How long a peer may take to answer.
    pub timeout: Duration,
}

fn read_edges<T: DeserializeOwned>(text: &str, of: &str) -> Result<T, UsageError> {
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| UsageError::Edges {
        of: of.to_owned(),
        path: error.path().to_string(),
        source: error.into_inner(),
    })
}

/// As the operator writes them if a variable cannot hold them.
fn edges_of_file(path: &Path) -> Result<Vec<EdgeSpec>, UsageError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| UsageError::File { path: path.to_owned(), source })?;
    let edges: NamedEdges = read_edges(&text, &path.display().to_string())?;
    edges.named().ok_or_else(|| UsageError::EdgeWithoutPeer(path.to_owned()))
}

impl Settings {
    /// Reads the environment. What is not there is as in [`BootstrapConfig::default`].
    pub fn read(environment: impl Fn(&str) -> Option<String>) -> Result<Self, UsageError> {
        let environment = Environment::new(environment);
        let defaults = BootstrapConfig::default();
        let edges = match (environment.text("BOOTSTRAP_EDGES"), environment.path("BOOTSTRAP_EDGES_PATH")) {
            (Some(text), _) => read_edges(&text, "BOOTSTRAP_EDGES")?,
            (None, Some(path)) => edges_of_file(&path)?,
            (None, None) => defaults.edges.clone(),
        };
        let seconds = environment.value("BOOTSTRAP_DEADLINE_SECONDS", "a number of seconds")?;
        let timeout = environment.value("BOOTSTRAP_TIMEOUT_MILLISECONDS", "a number of milliseconds")?;
        let path = environment.path("BOOTSTRAP_PEERS_PATH");
        Ok(Self {
            bootstrap: BootstrapConfig {
                method: environment.word("BOOTSTRAP_METHOD", METHODS)?.unwrap_or(defaults.method),
                degree: environment.value("BOOTSTRAP_N", "a number")?.unwrap_or(defaults.degree),
                seed: environment.value("BOOTSTRAP_SEED", "a number")?.unwrap_or(defaults.seed),
                edges,
                rewire_percent: environment
                    .value("BOOTSTRAP_REWIRE_PERCENT", "a number")?
                    .unwrap_or(defaults.rewire_percent),
                ..defaults
            },
            peers_path: path.unwrap_or_else(|| environment.below_root(PEERS_PATH)),
            deadline: seconds.map_or(DEADLINE, Duration::from_secs),
            timeout: timeout.map_or(TIMEOUT, Duration::from_millis),
        })
    }

    /// The method as users write it.
    pub(super) fn method(&self) -> String {
        let written = serde_json::to_value(self.bootstrap.method).ok();
        written.and_then(|written| written.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// The peers of the file.
    pub fn peers(&self) -> Result<Vec<Peer>, UsageError> {
        let path = &self.peers_path;
        let text = std::fs::read_to_string(path)
            .map_err(|source| UsageError::File { path: path.clone(), source })?;
        let peers = peers::read(&text).map_err(|source| UsageError::Peers { path: path.clone(), source })?;
        self.distinct(&peers, "name", |peer| &peer.name)?;
        self.distinct(&peers, "peerId", |peer| &peer.peer_id)?;
        Ok(peers)
    }

    fn distinct<'a>(
        &self,
        peers: &'a [Peer],
        field: &'static str,
        value: impl Fn(&'a Peer) -> &'a String,
    ) -> Result<(), UsageError> {
        let mut seen = BTreeMap::new();
        for (second, peer) in peers.iter().enumerate() {
            if let Some(first) = seen.insert(value(peer), second) {
                let (path, tag, value) = (self.peers_path.clone(), peer.tag.clone(), value(peer).clone());
                return Err(UsageError::Twice { path, first, second, tag, field, value });
            }
        }
        Ok(())
    }
}
