//! `mainstay networks simulations`: how they stand, and what they found.

use super::{find, list};
use crate::cluster::{Cluster, Connection};
use crate::failure::Failure;
use crate::output::{
    Cell, Format, OBJECTS, Paint, REPORTS, Table, Tone, age, count, json, name, patiently, print, say, yaml,
};
use jiff::Timestamp;
use kube::ResourceExt as _;
use mainstay_networks::config::{NetworkConfig, SimulationConfig, Throttle};
use mainstay_networks::kinds::{Simulation, SimulationStatus, Verdict};
use mainstay_networks::simulation::report::{PeerReport, REPORT_KEY, Report};
use serde_json::json as object;
use std::fmt::Write as _;
use std::process::ExitCode;

/// How `mainstay networks simulations` is called.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List simulations of all networks.
    List(ListOptions),
    /// Show what a simulation found, and its verdict.
    Report(ReportOptions),
}

#[derive(Debug, clap::Args)]
struct ListOptions {
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(OBJECTS))]
    output: Format,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct ReportOptions {
    /// Which simulation.
    name: String,
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(REPORTS))]
    output: Format,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct Place {
    /// Of this network [default: all].
    #[arg(long, value_name = "NETWORK")]
    network: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Does what is asked.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    match &options.verb {
        Verb::List(options) => show_all(options).await,
        Verb::Report(options) => report(options).await,
    }
}

async fn found(cluster: &Cluster, place: &Place) -> Result<Vec<Simulation>, Failure> {
    let namespace = place.network.as_deref().map(NetworkConfig::namespace);
    find::simulations(cluster, namespace.as_deref()).await
}

async fn show_all(options: &ListOptions) -> Result<ExitCode, Failure> {
    let cluster = options.place.connection.open().await?;
    let simulations = patiently("reading the cluster", found(&cluster, &options.place)).await?;
    print(&match options.output {
        Format::Json => json(&simulations)?,
        Format::Yaml => yaml(&simulations)?,
        Format::Name => names(&simulations),
        Format::Table => table(&simulations, true, Timestamp::now(), Paint::of_stdout()),
    })?;
    if options.output == Format::Table {
        say(&summary(&simulations, options.place.network.is_some()));
    }
    Ok(ExitCode::SUCCESS)
}

/// How many there are, and what is useful next: to look at one that did not pass, if there is one.
fn summary(simulations: &[Simulation], is_of_network: bool) -> String {
    let verdict = |one: &Simulation| one.status.as_ref().and_then(|status| status.verdict);
    let first = simulations.iter().find(|one| verdict(one) != Some(Verdict::Passed)).or(simulations.first());
    let Some(first) = first else {
        let here = if is_of_network { " of this network" } else { "" };
        return format!("there are no simulations{here}\nnext: mainstay up --demo shows one\n");
    };
    let network = network_of(first).map_or_else(String::new, |network| format!(" --network {network}"));
    let next = format!("mainstay networks simulations report {}{network}", first.name_any());
    format!("{}\nnext: {next}\n", count(simulations.len(), "simulation"))
}

/// The network whose namespace a simulation is in, if it is in one of a network.
fn network_of(simulation: &Simulation) -> Option<String> {
    let namespace = simulation.namespace()?;
    let network = namespace.strip_prefix(&NetworkConfig::namespace(""))?;
    Some(network.to_owned())
}

/// As kubectl names them, a line each.
fn names(simulations: &[Simulation]) -> String {
    simulations.iter().map(|simulation| name(&object!(simulation)) + "\n").collect()
}

/// A row for each simulation.
pub(super) fn table(
    simulations: &[Simulation],
    with_namespace: bool,
    now: Timestamp,
    paint: Paint,
) -> String {
    if simulations.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["NAMESPACE", "SIMULATION", "SCENARIO", "PHASE", "VERDICT", "AGE", "WHY"]);
    for simulation in simulations {
        let new = SimulationStatus::default();
        let status = simulation.status.as_ref().unwrap_or(&new);
        let namespace = simulation.namespace().filter(|_| with_namespace).unwrap_or_default();
        let scenario = object!(simulation.spec.scenario);
        let ready = list::ready(&status.conditions);
        table.row([
            namespace.into(),
            simulation.name_any().into(),
            scenario.as_str().unwrap_or_default().into(),
            format!("{:?}", status.phase).into(),
            verdict(status.verdict),
            simulation.creation_timestamp().map_or_else(String::new, |created| age(created.0, now)).into(),
            ready.map_or_else(String::new, |ready| ready.message.clone()).into(),
        ]);
    }
    table.render(paint)
}

fn verdict(verdict: Option<Verdict>) -> Cell {
    match verdict {
        Some(Verdict::Passed) => Cell::new("Passed", Tone::Good),
        Some(Verdict::Failed) => Cell::new("Failed", Tone::Bad),
        None => "".into(),
    }
}

/// Tells what was found. The code is 1 if the network did not stand it, or there is no verdict yet.
async fn report(options: &ReportOptions) -> Result<ExitCode, Failure> {
    let cluster = options.place.connection.open().await?;
    let (simulation, report) = patiently("reading the cluster", look(&cluster, options)).await?;
    let status = simulation.status.clone().unwrap_or_default();
    let data = || object!({"simulation": simulation, "report": report});
    print(&match options.output {
        Format::Json => json(&data())?,
        Format::Yaml => yaml(&data())?,
        Format::Table | Format::Name => {
            text(&simulation, &status, report.as_ref(), Timestamp::now(), Paint::of_stdout())
        }
    })?;
    Ok(u8::from(status.verdict != Some(Verdict::Passed)).into())
}

async fn look(cluster: &Cluster, options: &ReportOptions) -> Result<(Simulation, Option<Report>), Failure> {
    let mut all = found(cluster, &options.place).await?;
    all.retain(|simulation| simulation.name_any() == options.name);
    let namespace = match all.as_slice() {
        [one] => one.namespace().unwrap_or_default(),
        [] => {
            let network = options.place.network.as_deref();
            let place = network.map_or_else(String::new, |network| format!(" of network {network}"));
            return Err(Failure::new(anyhow::anyhow!("there is no simulation {}{place}", options.name))
                .next("mainstay networks simulations list"));
        }
        several => {
            let places: Vec<String> = several.iter().filter_map(kube::ResourceExt::namespace).collect();
            return Err(Failure::new(anyhow::anyhow!(
                "several simulations are called {}: in {}",
                options.name,
                places.join(", ")
            ))
            .next("name its network with --network"));
        }
    };
    let simulation = find::simulation(cluster, &namespace, &options.name).await?;
    let map = simulation.status.as_ref().and_then(|status| status.report.clone());
    let held = match map {
        Some(map) => find::held_in(cluster, &namespace, &map, REPORT_KEY).await?,
        None => None,
    };
    Ok((simulation, held.and_then(|text| serde_json::from_str(&text).ok())))
}

fn text(
    simulation: &Simulation,
    status: &SimulationStatus,
    report: Option<&Report>,
    now: Timestamp,
    paint: Paint,
) -> String {
    let title = format!("Simulation {}", simulation.name_any());
    let mut text = format!("{}\n\n", paint.paint(Tone::Strong, &title));
    for (label, line) in facts(simulation, status, now, paint) {
        let _ = writeln!(text, "{}{line}", paint.paint(Tone::Quiet, &format!("{label:<12}")));
    }
    for part in [criteria(status, paint), faults(status, paint), peers(report, paint)] {
        if !part.is_empty() {
            let _ = write!(text, "\n{part}");
        }
    }
    text
}

/// What can be said in a line each.
fn facts(
    simulation: &Simulation,
    status: &SimulationStatus,
    now: Timestamp,
    paint: Paint,
) -> Vec<(&'static str, String)> {
    let told = match status.verdict {
        Some(Verdict::Passed) => paint.paint(Tone::Good, "Passed"),
        Some(Verdict::Failed) => paint.paint(Tone::Bad, "Failed"),
        None => format!("none, it is {:?}", status.phase),
    };
    let mut facts = vec![("verdict", told)];
    let why = list::ready(&status.conditions).map(|ready| ready.message.clone());
    facts.extend(why.map(|why| ("why", why)));
    facts.push(("network", network_of(simulation).unwrap_or_else(|| "none".to_owned())));
    let config = SimulationConfig::from(simulation.spec.clone());
    let scenario = object!(config.scenario);
    let (users, seconds) = (count(config.users.unsigned_abs() as usize, "user"), config.run_time_seconds);
    let most = match config.throttle_requests {
        Throttle::None => String::new(),
        Throttle::PerSecond(most) => format!(", at most {most} requests a second to each"),
    };
    let scenario = scenario.as_str().unwrap_or_default();
    facts.push(("load", format!("{scenario}, {users} for each peer, for {seconds} s{most}")));
    match (&status.started_at, &status.finished_at) {
        (Some(from), Some(to)) => facts.push(("took", age(from.0, to.0))),
        (Some(from), None) => facts.push(("begun", format!("{} ago", age(from.0, now)))),
        _ => {}
    }
    facts
}

fn criteria(status: &SimulationStatus, paint: Paint) -> String {
    if status.criteria.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["CRITERION", "MET", "WHY"]);
    for criterion in &status.criteria {
        let met = if criterion.met { Cell::new("yes", Tone::Good) } else { Cell::new("no", Tone::Bad) };
        table.row([criterion.name.clone().into(), met, criterion.message.clone().into()]);
    }
    table.render(paint)
}

fn faults(status: &SimulationStatus, paint: Paint) -> String {
    if status.faults.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["FAULT", "STATE", "PEERS", "WHY"]);
    for fault in &status.faults {
        table.row([
            format!("{:?}", fault.action).to_lowercase().into(),
            format!("{:?}", fault.phase).into(),
            fault.peers.join(" ").into(),
            fault.message.clone().into(),
        ]);
    }
    table.render(paint)
}

fn peers(report: Option<&Report>, paint: Paint) -> String {
    let Some(report) = report else { return String::new() };
    let mut table = Table::new(["PEER", "REQUESTS", "FAILED", "PER-SECOND", "P50-MS", "P99-MS"]);
    for peer in report.peers.iter().chain([&report.total]) {
        table.row(numbers(peer));
    }
    table.render(paint)
}

#[expect(clippy::cast_precision_loss, reason = "nobody counts so many requests that it would matter")]
fn numbers(peer: &PeerReport) -> [Cell; 6] {
    let seconds = peer.duration_milliseconds as f64 / 1000.0;
    let rate = if seconds > 0.0 { peer.requests as f64 / seconds } else { 0.0 };
    let failed = peer.failed();
    let told = |value: f64| if peer.requests > failed { format!("{value:.1}") } else { String::new() };
    [
        peer.peer.clone().into(),
        peer.requests.to_string().into(),
        Cell::new(failed.to_string(), if failed > 0 { Tone::Bad } else { Tone::Plain }),
        format!("{rate:.0}").into(),
        told(peer.latency_milliseconds.p50).into(),
        told(peer.latency_milliseconds.p99).into(),
    ]
}
