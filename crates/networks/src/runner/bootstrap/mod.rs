//! `mainstay runner bootstrap`: connects the peers of `peers.json` as declared, once, and tells what came of it.
//!
//! ```text
//! settings, peers.json ─▶ topology::declared ─▶ ask everyone ─▶ plan: what is missing (pure) ─▶ dial ─┐
//!                                                     ▲                                            │
//!                                                     └──────── until nothing is, or the deadline ◀┘
//! ```
//!
//! What is there already is not dialled, so that a second run does only what the first could not. A connection counts once either end tells of it,
//! whatever the answer to its dial was.

mod plan;
mod settings;
#[cfg(test)]
mod tests;

pub use settings::{Settings, UsageError};

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use futures::FutureExt as _;
use mainstay::clock::later;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::graph::{self, Dial, Edges};
use crate::peers::{self, Peer};
use crate::rpc::{Endpoint, Rpc, RpcError, each};
use crate::topology;
use plan::Attempts;

/// The code when connections are missing in the end.
pub const MISSING: u8 = 1;
/// The code when it cannot begin.
pub const USAGE: u8 = 2;

/// How many peers are asked or dial at once.
const AT_ONCE: usize = 64;

/// Connects peers as the environment says, and gives the exit code. `tell` gets what a person should read.
pub async fn run(environment: impl Fn(&str) -> Option<String>, rpc: &dyn Rpc, tell: impl Fn(&str)) -> u8 {
    let (settings, peers) = match Settings::read(environment).and_then(|settings| {
        let peers = settings.peers()?;
        Ok((settings, peers))
    }) {
        Ok(read) => read,
        Err(error) => {
            tell(&format!("error: cannot connect peers: {}", chain(&error)));
            return USAGE;
        }
    };
    let names: Vec<String> = peers.iter().map(|peer| peer.name.clone()).collect();
    let declared = topology::declared(&settings.bootstrap, &names);
    let deadline = later(Instant::now(), settings.deadline);
    let outcome = connect(&peers, &declared, rpc, settings.timeout, deadline).await;
    tell(&outcome.render(&settings, peers.len()));
    if outcome.is_complete() { 0 } else { MISSING }
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Connections that were there before.
    pub already: Edges,
    /// Connections that are there now and were not before.
    pub made: Edges,
    /// Dials that came to nothing, with the reason.
    pub failed: Vec<(Dial, String)>,
    /// Peers that did not tell their connections when last asked, with the reason.
    pub silent: Vec<(String, RpcError)>,
}

impl Outcome {
    /// Whether everything that is declared is there.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }

    /// For a person, in a few lines.
    fn render(&self, settings: &Settings, peers: usize) -> String {
        let declared = self.already.len() + self.made.len() + self.failed.len();
        let mut text = format!("{peers} peers, {declared} connections declared ({})\n", settings.method());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  already there: {}", self.already.len());
        let _ = writeln!(text, "  dialled: {}", self.made.len());
        let _ = write!(text, "  failed: {}", self.failed.len());
        for (dial, why) in &self.failed {
            let _ = write!(text, "\n    {} > {}: {why}", dial.from, dial.to);
        }
        for (peer, why) in &self.silent {
            let _ = write!(text, "\n  {peer} does not tell its connections: {why}");
        }
        text
    }
}

/// Makes those of the declared connections that are missing, and tries again until the deadline.
pub async fn connect(
    peers: &[Peer],
    declared: &[Dial],
    rpc: &dyn Rpc,
    timeout: Duration,
    deadline: Instant,
) -> Outcome {
    let mut before: Option<Edges> = None;
    let mut attempts = Attempts::default();
    loop {
        let asked = ask_all(peers, rpc, timeout).await;
        let told = asked.told.iter().map(|(name, ids)| (name.as_str(), ids.as_slice()));
        let observed = graph::observed(peers, told);
        let already = before.get_or_insert_with(|| plan::present(declared, &observed));
        let missing = graph::compare(declared, &observed).missing;
        let pause = attempts.pause();
        if missing.is_empty() || (attempts.any() && Instant::now() + pause >= deadline) {
            let present = plan::present(declared, &observed);
            return Outcome {
                made: present.difference(already).cloned().collect(),
                // One that was there and has gone since is among the failed.
                already: present.intersection(already).cloned().collect(),
                failed: missing.into_iter().map(|dial| attempts.explained(dial)).collect(),
                silent: asked.silent,
            };
        }
        if attempts.any() {
            sleep_until(Instant::now() + pause).await;
        }
        attempts.round(dial_all(peers, missing, &asked.silent, rpc, timeout, deadline).await);
    }
}

/// What everyone told when asked.
struct Asked {
    told: BTreeMap<String, Vec<String>>,
    silent: Vec<(String, RpcError)>,
}

async fn ask_all(peers: &[Peer], rpc: &dyn Rpc, timeout: Duration) -> Asked {
    let ask = |peer: &Peer| {
        let (name, endpoint) = (peer.name.clone(), endpoint(peer, timeout));
        async move { (name, rpc.connections(&endpoint).await) }.boxed()
    };
    let mut asked = Asked { told: BTreeMap::new(), silent: Vec::new() };
    for (name, answer) in each(peers, AT_ONCE, ask).await {
        match answer {
            Ok(ids) => drop(asked.told.insert(name, ids)),
            Err(error) => asked.silent.push((name, error)),
        }
    }
    asked
}

/// Dials once each. Those of one dialler follow each other: it has them queue anyway, and its deadline is for one.
async fn dial_all(
    peers: &[Peer],
    missing: Vec<Dial>,
    silent: &[(String, RpcError)],
    rpc: &dyn Rpc,
    timeout: Duration,
    deadline: Instant,
) -> Vec<(Dial, Result<(), RpcError>)> {
    let by_name: BTreeMap<&str, &Peer> = peers.iter().map(|peer| (peer.name.as_str(), peer)).collect();
    let by_name = &by_name;
    let dial_in_turn = |dials: Vec<Dial>| {
        async move {
            let mut results = Vec::new();
            let mut dead = None;
            for dial in dials {
                let ends = (by_name.get(dial.from.as_str()), by_name.get(dial.to.as_str()));
                let (Some(from), Some(to)) = ends else { continue };
                let result = if let Some(error) = &dead {
                    Err(RpcError::clone(error))
                } else {
                    let (endpoint, addresses) = (endpoint(from, timeout), plan::addresses(to));
                    let dialling = rpc.connect(&endpoint, &addresses);
                    timeout_at(deadline, dialling).await.unwrap_or(Err(RpcError::Timeout(timeout)))
                };
                // Who does not even tell its connections is asked once in a round. Who does and then takes too long waits for somebody else, and
                // its other dials may well succeed.
                if let Err(error) = &result
                    && silent.iter().any(|(name, _)| *name == dial.from)
                {
                    dead = Some(error.clone());
                }
                results.push((dial, result));
            }
            results
        }
        .boxed()
    };
    each(plan::by_dialler(missing), AT_ONCE, dial_in_turn).await.into_iter().flatten().collect()
}

fn endpoint(peer: &Peer, timeout: Duration) -> Endpoint {
    Endpoint { adapter: peer.adapter, url: peer.rpc_addr.clone(), timeout }
}

/// An error with what is below it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}
