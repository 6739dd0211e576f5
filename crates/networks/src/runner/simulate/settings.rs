//! What manager and workers are told by their environment.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::config::Throttle;
use crate::kinds::Scenario;

/// Why an environment cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongEnvironment {
    /// A variable is missing.
    #[error("{0} is not set")]
    Missing(&'static str),
    /// A variable cannot be understood.
    #[error("{name} is {value:?}, which is not {expected}")]
    Wrong {
        /// Which.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// What all of them are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Which run it is.
    pub run: String,
    /// What users do.
    pub scenario: Scenario,
    /// How many there are for each peer.
    pub users: i32,
    /// For how long they do it.
    pub run_time: Duration,
}

/// What a manager is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerSettings {
    /// The load.
    pub load: Load,
    /// How many workers there shall be.
    pub workers: usize,
    /// How long they are waited for.
    pub start: Duration,
    /// How long after the load their reports are waited for.
    pub grace: Duration,
    /// How long the report can be read, unless somebody has read it.
    pub linger: Duration,
    /// Where it listens.
    pub address: SocketAddr,
}

/// What a worker is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSettings {
    /// The load.
    pub load: Load,
    /// Which worker it is, from 0.
    pub worker: usize,
    /// The name of its peer.
    pub peer: String,
    /// Where the manager is: `http://10.0.0.1:5115`.
    pub manager: String,
    /// Where `peers.json` is.
    pub peers_path: PathBuf,
    /// The most requests per second.
    pub throttle: Throttle,
    /// What chance is made from.
    pub seed: i64,
    /// How long an answer is waited for.
    pub timeout: Duration,
}

/// An environment.
pub struct Environment<F>(pub F);

impl<F: Fn(&str) -> Option<String>> Environment<F> {
    fn text(&self, name: &'static str) -> Result<String, WrongEnvironment> {
        (self.0)(name).filter(|value| !value.is_empty()).ok_or(WrongEnvironment::Missing(name))
    }

    fn number<T: std::str::FromStr>(&self, name: &'static str) -> Result<T, WrongEnvironment> {
        let value = self.text(name)?;
        let expected = "a number that fits";
        value.parse().map_err(|_| WrongEnvironment::Wrong { name, value, expected })
    }

    fn seconds(&self, name: &'static str) -> Result<Duration, WrongEnvironment> {
        self.number(name).map(Duration::from_secs)
    }

    fn load(&self) -> Result<Load, WrongEnvironment> {
        let name = "SIMULATE_SCENARIO";
        let value = self.text(name)?;
        let scenario = serde_json::from_value(Value::String(value.clone()))
            .map_err(|_| WrongEnvironment::Wrong { name, value, expected: "identity, peers or blocks" })?;
        Ok(Load {
            run: self.text("SIMULATE_RUN")?,
            scenario,
            users: self.number("SIMULATE_USERS")?,
            run_time: self.seconds("SIMULATE_RUN_TIME_SECONDS")?,
        })
    }

    /// What a manager is told.
    ///
    /// # Errors
    /// If something is missing, or cannot be understood.
    pub fn manager(&self) -> Result<ManagerSettings, WrongEnvironment> {
        let ip = match self.text("POD_IP") {
            Ok(_) => self.number::<IpAddr>("POD_IP")?,
            Err(_) => Ipv4Addr::UNSPECIFIED.into(),
        };
        Ok(ManagerSettings {
            load: self.load()?,
            workers: self.number("SIMULATE_WORKERS")?,
            start: self.seconds("SIMULATE_START_SECONDS")?,
            grace: self.seconds("SIMULATE_GRACE_SECONDS")?,
            linger: self.seconds("SIMULATE_LINGER_SECONDS")?,
            address: SocketAddr::new(ip, self.number("SIMULATE_PORT")?),
        })
    }

    /// What a worker is told. Paths are below `MAINSTAY_ROOT`, where there is one.
    ///
    /// # Errors
    /// If something is missing, or cannot be understood.
    pub fn worker(&self) -> Result<WorkerSettings, WrongEnvironment> {
        let path = self.text("SIMULATE_PEERS_PATH")?;
        let peers_path = match self.text("MAINSTAY_ROOT") {
            Ok(root) => PathBuf::from(root).join(path.trim_start_matches('/')),
            Err(_) => path.into(),
        };
        let throttle = match self.text("SIMULATE_THROTTLE_REQUESTS") {
            Ok(_) => Throttle::PerSecond(self.number("SIMULATE_THROTTLE_REQUESTS")?),
            Err(_) => Throttle::None,
        };
        Ok(WorkerSettings {
            load: self.load()?,
            worker: self.number("SIMULATE_WORKER")?,
            peer: self.text("SIMULATE_PEER")?,
            manager: self.text("SIMULATE_MANAGER")?,
            peers_path,
            throttle,
            seed: self.number("SIMULATE_SEED")?,
            timeout: Duration::from_secs(5),
        })
    }
}
