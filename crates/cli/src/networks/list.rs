//! `mainstay networks list`.

use super::find;
use crate::cluster::Connection;
use crate::failure::Failure;
use crate::output::{
    Cell, Format, OBJECTS, Paint, Table, Tone, age, count, json, name, patiently, print, say, yaml,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use mainstay_networks::kinds::{Network, NetworkStatus};
use serde_json::json as object;
use std::process::ExitCode;

/// How `mainstay networks list` is called.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(OBJECTS))]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Lists.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let cluster = options.connection.open().await?;
    let networks = patiently("reading the cluster", find::networks(&cluster)).await?;
    print(&match options.output {
        Format::Json => json(&networks)?,
        Format::Yaml => yaml(&networks)?,
        Format::Name => names(&networks),
        Format::Table => table(&networks, Timestamp::now(), Paint::of_stdout()),
    })?;
    if options.output == Format::Table {
        say(&summary(&networks));
    }
    Ok(ExitCode::SUCCESS)
}

/// As kubectl names them, a line each.
fn names(networks: &[Network]) -> String {
    networks.iter().map(|network| name(&object!(network)) + "\n").collect()
}

/// The condition that sums it up.
pub(super) fn ready(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == "Ready")
}

/// `True`, `False`, or that nobody has looked yet.
pub(super) fn ready_cell(conditions: &[Condition]) -> Cell {
    match ready(conditions) {
        Some(ready) if ready.status == "True" => Cell::new("yes", Tone::Good),
        Some(ready) => Cell::new(ready.reason.clone(), Tone::Bad),
        None => Cell::new("(new)", Tone::Quiet),
    }
}

fn table(networks: &[Network], now: Timestamp, paint: Paint) -> String {
    if networks.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["NAME", "PEERS", "EDGES", "MISSING", "ISLANDS", "READY", "EXPIRES", "AGE"]);
    for network in networks {
        let new = NetworkStatus::default();
        let status = network.status.as_ref().unwrap_or(&new);
        let edges = status.edges.as_ref();
        table.row([
            network.name_any().into(),
            format!("{}/{}", status.ready_replicas, network.spec.replicas).into(),
            edges.map_or_else(String::new, |edges| edges.observed.to_string()).into(),
            edges.map_or_else(String::new, |edges| edges.missing.to_string()).into(),
            status.components.map_or_else(String::new, |islands| islands.to_string()).into(),
            ready_cell(&status.conditions),
            status.expiration_time.as_ref().map_or_else(String::new, |at| expires(at.0, now)).into(),
            network.creation_timestamp().map_or_else(String::new, |created| age(created.0, now)).into(),
        ]);
    }
    table.render(paint)
}

/// When something goes: `in 5m`.
pub(super) fn expires(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("in {}", age(now, at)) } else { "now".to_owned() }
}

fn summary(networks: &[Network]) -> String {
    if networks.is_empty() {
        return "there are no networks\nnext: mainstay up --demo shows one\n".to_owned();
    }
    let troubled = networks.iter().find(|network| {
        let conditions = network.status.as_ref().map(|status| status.conditions.as_slice());
        ready(conditions.unwrap_or_default()).is_none_or(|ready| ready.status != "True")
    });
    let next = troubled.map_or_else(String::new, |network| {
        format!("next: mainstay networks describe {}\n", network.name_any())
    });
    format!("{}\n{next}", count(networks.len(), "network"))
}
