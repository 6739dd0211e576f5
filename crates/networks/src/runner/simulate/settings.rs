//! What manager and workers are told by their environment.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::config::Throttle;
use crate::kinds::Scenario;
use crate::runner::environment::{Environment, WrongVariable};

/// What numbers are of unless it is said.
const SERVICE: &str = "mainstay-simulation";
/// How long a worker waits for an answer of its peer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

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
    /// Where its numbers are sent besides.
    pub collector: Option<Collector>,
}

/// Somebody who takes numbers by OTLP, as OpenTelemetry's environment variables say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector {
    /// Where it is: `http://collector:4318`.
    pub endpoint: String,
    /// What the numbers are of.
    pub resource: Vec<(String, String)>,
}

impl Collector {
    fn read(environment: &Environment<impl Fn(&str) -> Option<String>>) -> Option<Self> {
        let endpoint = environment.text("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        let service = environment.text("OTEL_SERVICE_NAME").unwrap_or_else(|| SERVICE.to_owned());
        let mut resource = vec![("service.name".to_owned(), service)];
        let others = environment.text("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let others = others.split(',').filter_map(|pair| pair.split_once('='));
        resource.extend(others.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())));
        Some(Self { endpoint, resource })
    }
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

impl Load {
    fn read(environment: &Environment<impl Fn(&str) -> Option<String>>) -> Result<Self, WrongVariable> {
        let name = "SIMULATE_SCENARIO";
        let scenario = environment.word(name, "one of identity, peers, blocks")?;
        Ok(Self {
            run: environment.need_text("SIMULATE_RUN")?,
            scenario: scenario.ok_or(WrongVariable::Missing(name))?,
            users: environment.need("SIMULATE_USERS", "a number")?,
            run_time: environment.need_seconds("SIMULATE_RUN_TIME_SECONDS")?,
        })
    }
}

impl ManagerSettings {
    /// Reads the environment.
    ///
    /// # Errors
    /// If something is missing, or cannot be understood.
    pub fn read(environment: impl Fn(&str) -> Option<String>) -> Result<Self, WrongVariable> {
        let environment = Environment::new(environment);
        let ip = environment.value("POD_IP", "an IP address")?.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        Ok(Self {
            load: Load::read(&environment)?,
            workers: environment.need("SIMULATE_WORKERS", "a number")?,
            start: environment.need_seconds("SIMULATE_START_SECONDS")?,
            grace: environment.need_seconds("SIMULATE_GRACE_SECONDS")?,
            linger: environment.need_seconds("SIMULATE_LINGER_SECONDS")?,
            address: SocketAddr::new(ip, environment.need("SIMULATE_PORT", "a port")?),
            collector: Collector::read(&environment),
        })
    }
}

impl WorkerSettings {
    /// Reads the environment.
    ///
    /// # Errors
    /// If something is missing, or cannot be understood.
    pub fn read(environment: impl Fn(&str) -> Option<String>) -> Result<Self, WrongVariable> {
        let environment = Environment::new(environment);
        let throttle = environment.value("SIMULATE_THROTTLE_REQUESTS", "a number of requests")?;
        let path = "SIMULATE_PEERS_PATH";
        Ok(Self {
            load: Load::read(&environment)?,
            worker: environment.need("SIMULATE_WORKER", "a number")?,
            peer: environment.need_text("SIMULATE_PEER")?,
            manager: environment.need_text("SIMULATE_MANAGER")?,
            peers_path: environment.path(path).ok_or(WrongVariable::Missing(path))?,
            throttle: throttle.map_or(Throttle::None, Throttle::PerSecond),
            seed: environment.need("SIMULATE_SEED", "a number")?,
            timeout: ANSWER_TIMEOUT,
        })
    }
}
