//! `mainstay networks describe`: all there is to know of a network, on one screen.

use super::{find, list, simulations};
use crate::cluster::{Cluster, Connection};
use crate::failure::Failure;
use crate::output::{
    Cell, Format, Paint, REPORTS, Table, Tone, conditions, events, json, patiently, print, say, yaml,
};
use jiff::Timestamp;
use kube::ResourceExt as _;
use mainstay_networks::config::{BootstrapConfig, NetworkConfig};
use mainstay_networks::kinds::{Method, Network, NetworkStatus, Simulation};
use mainstay_networks::network::reason::Unready;
use serde_json::{Value, json as object};
use std::fmt::Write as _;
use std::process::ExitCode;

/// Peers that are shown by name.
const PEERS: usize = 20;

/// How `mainstay networks describe` is called.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Which network.
    name: String,
    /// How to print it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(REPORTS))]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

/// All that is told of a network.
struct Described {
    network: Network,
    simulations: Vec<Simulation>,
    /// The newest first.
    events: Vec<Value>,
}

/// Describes.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let cluster = options.connection.open().await?;
    let described = patiently("reading the cluster", look(&cluster, &options.name)).await?;
    let data = || object!({"network": described.network, "simulations": described.simulations, "events": described.events});
    print(&match options.output {
        Format::Json => json(&data())?,
        Format::Yaml => yaml(&data())?,
        Format::Table | Format::Name => text(&described, Timestamp::now(), Paint::of_stdout()),
    })?;
    if options.output == Format::Table {
        say(&next(&options.name, &described.network));
    }
    Ok(ExitCode::SUCCESS)
}

/// What helps: for a peer in trouble its pod, and otherwise all there is.
fn next(name: &str, network: &Network) -> String {
    let namespace = NetworkConfig::namespace(name);
    let unready = network.status.as_ref().and_then(|status| status.unready.first());
    match unready {
        Some(peer) if peer.reason == Unready::Simulated.reason() => {
            "next: name an image that is a program of this machine; mainstay up --rules FILE says which are\n"
                .to_owned()
        }
        Some(peer) => format!(
            "next: kubectl describe pod -n {namespace} {0}, or kubectl logs -n {namespace} {0}\n",
            peer.name
        ),
        None => format!("next: mainstay networks topology {name}, or kubectl get all -n {namespace}\n"),
    }
}

async fn look(cluster: &Cluster, name: &str) -> Result<Described, Failure> {
    let network = find::network(cluster, name).await?;
    let namespace = NetworkConfig::namespace(name);
    let simulations = find::simulations(cluster, Some(&namespace)).await?;
    let events = cluster.events_about(None, &network.uid().unwrap_or_default()).await?;
    Ok(Described { network, simulations, events })
}

fn text(described: &Described, now: Timestamp, paint: Paint) -> String {
    let network = &described.network;
    let status = network.status.clone().unwrap_or_default();
    let mut text = format!("{}\n\n", paint.paint(Tone::Strong, &format!("Network {}", network.name_any())));
    for (label, line) in facts(network, &status, now) {
        let _ = writeln!(text, "{}{line}", paint.paint(Tone::Quiet, &format!("{label:<12}")));
    }
    for part in [
        peers(&status, paint),
        simulations::table(&described.simulations, false, now, paint),
        conditions(&status.conditions, now, paint),
        events(&described.events, now, paint),
    ] {
        if !part.is_empty() {
            let _ = write!(text, "\n{part}");
        }
    }
    text
}

/// What can be said in a line each.
fn facts(network: &Network, status: &NetworkStatus, now: Timestamp) -> Vec<(&'static str, String)> {
    let why = list::ready(&status.conditions);
    let mut facts = vec![
        (
            "state",
            why.map_or_else(|| "nobody has looked at it yet".to_owned(), |ready| ready.message.clone()),
        ),
        ("namespace", NetworkConfig::namespace(&network.name_any())),
        ("peers", format!("{} of {} answer", status.ready_replicas, network.spec.replicas)),
    ];
    let bootstrap = BootstrapConfig::from(network.spec.bootstrap.clone());
    let topology = if bootstrap.enabled { declared(&bootstrap) } else { "none is declared".to_owned() };
    facts.push(("topology", topology));
    if let Some(edges) = &status.edges {
        let mut line = format!("{} declared, {} there", edges.desired, edges.observed);
        if edges.missing > 0 {
            let _ = write!(line, ", {} missing: {}", edges.missing, edges.examples.join(", "));
        }
        if edges.severed > 0 {
            let _ = write!(line, "; {} kept apart by a simulation", edges.severed);
        }
        facts.push(("edges", line));
    }
    if let Some(islands) = status.components {
        facts.push(("islands", islands.to_string()));
    }
    if let Some(at) = &status.expiration_time {
        facts.push(("expires", format!("{} ({})", list::expires(at.0, now), at.0)));
    }
    facts
}

/// How peers shall be connected, with what that depends on.
fn declared(bootstrap: &BootstrapConfig) -> String {
    let method = object!(bootstrap.method);
    let mut text = method.as_str().unwrap_or_default().to_owned();
    if !matches!(bootstrap.method, Method::Full | Method::Star | Method::Explicit) {
        let _ = write!(text, ", degree {}", bootstrap.degree);
    }
    if matches!(bootstrap.method, Method::Random | Method::SmallWorld) {
        let _ = write!(text, ", seed {}", bootstrap.seed);
    }
    text
}

fn peers(status: &NetworkStatus, paint: Paint) -> String {
    if status.peers.is_empty() && status.unready.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["PEER", "STATE", "ID", "RPC", "WHY"]);
    // Those in trouble first: that is what one looks for.
    for peer in status.unready.iter().take(PEERS) {
        let state = Cell::new(peer.reason.clone(), Tone::Bad);
        table.row([peer.name.clone().into(), state, "".into(), "".into(), peer.message.clone().into()]);
    }
    for peer in status.peers.iter().take(PEERS) {
        let state = Cell::new("answers", Tone::Good);
        table.row([
            peer.name.clone().into(),
            state,
            peer.peer_id.clone().into(),
            peer.rpc_addr.clone().into(),
            "".into(),
        ]);
    }
    let omitted =
        usize::try_from(status.peers_omitted.saturating_add(status.unready_omitted)).unwrap_or_default();
    let left =
        status.peers.len().saturating_sub(PEERS) + status.unready.len().saturating_sub(PEERS) + omitted;
    let more = match (left, omitted) {
        (0, _) => String::new(),
        (left, 0) => format!("… and {left} more (-o json shows all)\n"),
        (left, _) => {
            format!("… and {left} more (-o json shows {})\n", status.peers.len() + status.unready.len())
        }
    };
    table.render(paint) + &more
}
