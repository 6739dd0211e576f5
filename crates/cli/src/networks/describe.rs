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
use mainstay_networks::kinds::{Network, NetworkStatus, Simulation};
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
        say(&format!(
            "next: mainstay networks topology {0}, or kubectl get all -n {1}\n",
            options.name,
            NetworkConfig::namespace(&options.name)
        ));
    }
    Ok(ExitCode::SUCCESS)
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
    let method = serde_json::to_value(bootstrap.method).unwrap_or_default();
    facts.push((
        "topology",
        if bootstrap.enabled {
            format!("{}, n {}, seed {}", method.as_str().unwrap_or_default(), bootstrap.n, bootstrap.seed)
        } else {
            "none is declared".to_owned()
        },
    ));
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
    let left = status.peers.len().saturating_sub(PEERS) + status.unready.len().saturating_sub(PEERS);
    let more = if left > 0 { format!("… and {left} more (-o json shows all)\n") } else { String::new() };
    table.render(paint) + &more
}
