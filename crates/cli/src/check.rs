//! `mainstay check`: whether the environment is one that systems can work in, as a list of passes and failures with fixes.
//!
//! ```text
//! kubeconfig ─▶ server ─▶ version, clock ─▶ webhooks ─▶ for each system: definitions, permissions
//! ```
//!
//! Nothing is changed. What rests on something that failed is not tried.

mod definitions;
mod finding;
mod permissions;
mod server;
mod webhooks;

use crate::cluster::Connection;
use crate::failure::Failure;
use crate::output::{Format, Paint, REPORTS, json, patiently, print, say, yaml};
use crate::systems::{self, Reach, System};
use finding::Finding;
use std::process::ExitCode;

/// How `mainstay check` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Systems that are to work [default: those whose kinds the cluster has].
    #[arg(value_name = "SYSTEM")]
    systems: Vec<String>,
    /// They look at this namespace only.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(REPORTS))]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Examines. The code is 1 if something fails.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let named = options.systems.iter().map(|name| systems::find(name, "check"));
    let named: Vec<&System> = named.collect::<Result<_, _>>()?;
    let findings = patiently("examining", examine(options, &named)).await?;
    print(&match options.output {
        Format::Json => json(&findings)?,
        Format::Yaml => yaml(&findings)?,
        Format::Table | Format::Name => finding::table(&findings, Paint::of_stdout()),
    })?;
    say(&finding::summary(&findings));
    Ok(u8::from(findings.iter().any(Finding::is_failure)).into())
}

async fn examine(options: &Options, named: &[&System]) -> Result<Vec<Finding>, Failure> {
    let cluster = match options.connection.open().await {
        Ok(cluster) => cluster,
        Err(failure) => return Ok(vec![Finding::failed_with("kubeconfig", &failure)]),
    };
    let mut findings =
        vec![Finding::passed("kubeconfig", format!("{} leads to {}", cluster.source, cluster.url))];
    let (found, reachable) = server::examine(&cluster).await;
    findings.extend(found);
    if !reachable {
        return Ok(findings);
    }
    findings.extend(webhooks::examine(&cluster).await);
    let systems: Vec<&System> = if named.is_empty() { systems::ALL.iter().collect() } else { named.to_vec() };
    for system in systems {
        let (found, is_there) = definitions::examine(&cluster, system, !named.is_empty()).await?;
        findings.extend(found);
        if is_there || !named.is_empty() {
            let reach = Reach { namespace: options.namespace.as_deref(), leases: None };
            findings.push(permissions::examine(&cluster, system, reach).await?);
        }
    }
    Ok(findings)
}
