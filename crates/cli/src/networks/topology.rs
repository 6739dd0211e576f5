//! `mainstay networks topology`: who shall be connected, and who is.

use super::find;
use crate::cluster::{Cluster, Connection};
use crate::failure::Failure;
use crate::output::{Cell, Paint, Table, Tone, count, patiently, print, say};
use mainstay_networks::config::{BootstrapConfig, NetworkConfig};
use mainstay_networks::graph::{self, Dial, EDGES_KEY, Edge, Edges, OMITTED_KEY};
use mainstay_networks::kinds::UnreadyPeer;
use mainstay_networks::objects::EDGES_CONFIG_MAP;
use mainstay_networks::peers::{self, PEERS_KEY};
use mainstay_networks::picture::Drawing;
use mainstay_networks::topology;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// How `mainstay networks topology` is called.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Which network.
    name: String,
    /// How to show it: a picture as svg, dot for Graphviz.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A line for each peer.
    Table,
    Svg,
    Dot,
    Json,
}

/// What is declared and what is there, as the operator saw it last.
struct Topology {
    name: String,
    peers: Vec<String>,
    unready: Vec<UnreadyPeer>,
    declared: Vec<Dial>,
    observed: Edges,
    /// Number of connections that are there and not in `observed`, because a ConfigMap has no room for them.
    omitted: usize,
    /// Number of missing connections that the operator counted.
    counted: Option<usize>,
}

impl Topology {
    /// Number of declared connections that are missing. Where connections are omitted, only the operator's count can be right.
    fn missing(&self) -> usize {
        match self.counted {
            Some(counted) if self.omitted > 0 => counted,
            _ => graph::compare(&self.declared, &self.observed).missing.len(),
        }
    }
}

/// Shows. The code is 1 if connections are missing.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let cluster = options.connection.open().await?;
    let seen = patiently("reading the cluster", look(&cluster, &options.name)).await?;
    let drawing = || Drawing::new(&seen.name, &seen.peers, &seen.unready, &seen.declared, &seen.observed);
    print(&match options.output {
        Format::Table => table(&seen, Paint::of_stdout()),
        Format::Svg => drawing().svg(),
        Format::Dot => drawing().dot(),
        Format::Json => drawing().json() + "\n",
    })?;
    let missing = seen.missing();
    if options.output == Format::Table {
        say(&summary(&seen, missing));
    }
    Ok(u8::from(missing > 0).into())
}

async fn look(cluster: &Cluster, name: &str) -> Result<Topology, Failure> {
    let network = find::network(cluster, name).await?;
    let config = NetworkConfig::from(&network.spec);
    let mut edges = find::held(cluster, name, EDGES_CONFIG_MAP, EDGES_KEY).await?;
    if edges.is_none() {
        // Operators of former versions wrote them beside the peers.
        edges = find::held(cluster, name, &config.peers_config_map, EDGES_KEY).await?;
    }
    let omitted = find::held(cluster, name, EDGES_CONFIG_MAP, OMITTED_KEY).await?;
    let status = network.status.unwrap_or_default();
    let mut peers: Vec<String> = status.peers.into_iter().map(|peer| peer.name).collect();
    if status.peers_omitted > 0 {
        let text = find::held(cluster, name, &config.peers_config_map, PEERS_KEY).await?;
        let listed = peers::read(&text.unwrap_or_else(|| "[]".into())).map_err(Failure::new)?;
        peers = listed.into_iter().map(|peer| peer.name).collect();
    }
    let BootstrapConfig { enabled, .. } = config.bootstrap;
    let declared = if enabled { topology::declared(&config.bootstrap, &peers) } else { Vec::new() };
    let mut observed = graph::read(&edges.unwrap_or_default());
    // It is written before the status is: what is told has to be of one moment as far as it can.
    let listed: BTreeSet<&str> = peers.iter().map(String::as_str).collect();
    observed.retain(|edge| <[&str; 2]>::from(edge.ends()).iter().all(|end| listed.contains(end)));
    let omitted = omitted.and_then(|count| count.parse().ok()).unwrap_or_default();
    let counted = status.edges.map(|edges| usize::try_from(edges.missing).unwrap_or_default());
    let unready = status.unready;
    Ok(Topology { name: name.to_owned(), peers, unready, declared, observed, omitted, counted })
}

fn table(seen: &Topology, paint: Paint) -> String {
    if seen.peers.is_empty() && seen.unready.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["PEER", "CONNECTED", "DIALS", "MISSING", "WHY"]);
    for peer in &seen.peers {
        let connected =
            seen.observed.iter().filter(|edge| <[&str; 2]>::from(edge.ends()).contains(&peer.as_str()));
        let dials: Vec<&str> =
            seen.declared.iter().filter(|dial| dial.from == *peer).map(|dial| dial.to.as_str()).collect();
        let is_missing = |to: &&&str| Edge::new(peer, to).is_some_and(|edge| !seen.observed.contains(&edge));
        let missing: Vec<&str> = dials.iter().filter(is_missing).copied().collect();
        table.row([
            peer.clone().into(),
            connected.count().to_string().into(),
            dials.join(" ").into(),
            Cell::new(missing.join(" "), Tone::Bad),
            "".into(),
        ]);
    }
    for UnreadyPeer { name, reason, .. } in &seen.unready {
        let why = Cell::new(format!("does not answer: {reason}"), Tone::Bad);
        table.row([name.clone().into(), "".into(), "".into(), "".into(), why]);
    }
    table.render(paint)
}

fn summary(seen: &Topology, missing: usize) -> String {
    if seen.peers.is_empty() {
        return format!("no peer answers yet\nnext: mainstay networks describe {}\n", seen.name);
    }
    let islands = graph::components(&seen.peers, &seen.observed);
    let (declared, there, name) = (seen.declared.len(), seen.observed.len() + seen.omitted, &seen.name);
    let unseen = match seen.omitted {
        0 => String::new(),
        omitted => {
            format!("{omitted} of the connections that are there are not recorded, and shown as missing\n")
        }
    };
    format!(
        "{unseen}{declared} declared, {there} there, {missing} missing; {}\nnext: mainstay networks topology {name} -o svg > {name}.svg\n",
        count(islands, "island")
    )
}
