//! `mainstay run`: systems at work in a cluster, until they are told to end.
//!
//! ```text
//! SYSTEM… ─▶ an Operator each ─▶ works, and serves /livez /readyz /metrics /debug/parents
//!                  └─▶ watched here: what it waits for and that it is ready is told on stderr
//! ```

pub(crate) mod announce;
mod narrate;

use crate::cluster::{Cluster, Connection};
use crate::failure::Failure;
use crate::output::{patiently, say};
use crate::systems::{self, Reach, System};
use crate::token;
use mainstay::{Operator, RunError};
use narrate::Narrator;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How often the operators are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How `mainstay run` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The systems [default: all but the examples].
    #[arg(value_name = "SYSTEM")]
    systems: Vec<String>,
    /// Where to serve health, metrics and debug pages; each further system takes the next port. Port 0 takes any free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    serve: SocketAddr,
    /// Answer metrics and debug pages only to who sends the token in this file. Without it, every user of this machine can read them.
    #[arg(long, value_name = "FILE")]
    debug_token_file: Option<PathBuf>,
    /// Look at this namespace only.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Of all processes that are given the same namespace here, one works at a time.
    #[arg(long, value_name = "NAMESPACE")]
    leases: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Options {
    fn reach(&self) -> Reach<'_> {
        Reach { namespace: self.namespace.as_deref(), leases: self.leases.as_deref() }
    }
}

/// Runs until a signal ends it.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let systems = systems::chosen(&options.systems, "run")?;
    let cluster = options.connection.open().await?;
    let version =
        patiently("asking the API server for its version", cluster.client.apiserver_version()).await;
    let version = version.map_err(|error| cluster.failed("run anything", error))?;
    say(&format!("Kubernetes {} at {}\n", version.git_version, cluster.url));
    let mut operators = Vec::new();
    for (place, system) in (0..).zip(systems) {
        operators.push((system, build(system, &cluster, options, next_port(options.serve, place))?));
    }
    serve_until(&operators, &cluster, mainstay::termination()).await?;
    say("ended; what was made stays as it is\n");
    Ok(ExitCode::SUCCESS)
}

fn build(
    system: &System,
    cluster: &Cluster,
    options: &Options,
    serve: SocketAddr,
) -> Result<Operator, Failure> {
    let mut operator = system.operator(cluster.client.clone(), options.reach()).serve(serve);
    if let Some(path) = &options.debug_token_file {
        operator = operator.debug_token(&token::read(path)?);
    }
    operator.build().map_err(|error| Failure::new(error).context(format!("cannot run {}", system.name)))
}

/// Where the system at this place serves.
fn next_port(first: SocketAddr, place: u16) -> SocketAddr {
    match first.port() {
        0 => first,
        port => SocketAddr::new(first.ip(), port.saturating_add(place)),
    }
}

/// Has all operators work until `stop` is done, or one of them cannot. Then all have ended.
pub(crate) async fn serve_until(
    operators: &[(&'static System, Operator)],
    cluster: &Cluster,
    stop: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let (tell, told) = watch::channel(false);
    let mut running: JoinSet<Result<(), (&str, RunError)>> = JoinSet::new();
    for (system, operator) in operators {
        let (name, operator, mut told) = (system.name, operator.clone(), told.clone());
        let stopped = async move {
            // The sender lives until all of them have ended.
            let _ = told.wait_for(|stop| *stop).await;
        };
        running.spawn(async move { operator.run(stopped).await.map_err(|error| (name, error)) });
    }
    let mut narrator = Narrator::default();
    let mut stop = std::pin::pin!(stop);
    let mut failed = None;
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            // Without any, there is nothing to end but by being told to.
            Some(ended) = running.join_next() => {
                failed = failure_of(ended);
                break;
            }
            () = tokio::time::sleep(LOOK_EVERY) => narrator.look(operators, cluster).await,
        }
    }
    tell.send_replace(true);
    while let Some(ended) = running.join_next().await {
        failed = failed.or_else(|| failure_of(ended));
    }
    narrator.leave(cluster).await;
    failed.map_or(Ok(()), Err)
}

/// Why an operator ended, if it was not told to.
fn failure_of(ended: Result<Result<(), (&str, RunError)>, tokio::task::JoinError>) -> Option<Failure> {
    match ended {
        Ok(Ok(())) => None,
        Ok(Err((system, error))) => {
            let failure = Failure::new(error).context(format!("cannot run {system}"));
            Some(failure.unchanged("the cluster").next("mainstay run --serve ADDR serves elsewhere"))
        }
        Err(error) => Some(Failure::new(error).context("a system ended in disorder")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_a_port_of_its_own() {
        let port = |first: &str, place| next_port(first.parse().unwrap(), place).to_string();
        assert_eq!(
            (port("0.0.0.0:8080", 0), port("0.0.0.0:8080", 1)),
            ("0.0.0.0:8080".into(), "0.0.0.0:8081".into())
        );
        assert_eq!(port("127.0.0.1:0", 3), "127.0.0.1:0");
    }
}
