//! The RPC of Kubo, which the reference peer speaks too: `POST /api/v0/…`, arguments in the query.

use bytes::Bytes;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::net::IpAddr;

use super::dialect::{Answer, Ask, Dialect, ids, plausible, quote};
use super::multiaddr::{Multiaddr, of_ip};
use super::{Disturbance, Ending, Identity, RpcError, plain};

pub(super) struct Kubo;

/// What only reference peers know.
const DISTURB: &str = "/api/v0/mainstay/disturb";
/// Arguments of one request: a URL has 64 KiB at most, and an address needs 90 bytes of it.
const BATCH: usize = 256;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Id {
    #[serde(rename = "ID")]
    id: String,
    // Null where it listens nowhere.
    addresses: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Swarm {
    // Null where there are none. Not optional: any document would do as one without connections.
    #[serde(deserialize_with = "Option::deserialize")]
    peers: Option<Vec<Connection>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Connection {
    peer: String,
    addr: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Strings {
    strings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    message: String,
}

impl Dialect for Kubo {
    fn ask_identity(&self) -> Ask {
        post("id", &[])
    }

    fn identity(&self, answer: &Answer) -> Result<Identity, RpcError> {
        let id: Id = accepted(answer)?.read()?;
        plausible(id.id, id.addresses.unwrap_or_default())
    }

    fn ask_connections(&self) -> Ask {
        post("swarm/peers", &[])
    }

    fn connections(&self, answer: &Answer) -> Result<Vec<String>, RpcError> {
        ids(connections(answer)?.into_iter().map(|connection| connection.peer))
    }

    fn ask_connect(&self, addresses: &[String]) -> Ask {
        post("swarm/connect", addresses)
    }

    fn connected(&self, answer: &Answer, addresses: &[String]) -> Result<(), RpcError> {
        let told: Strings = accepted(answer)?.read()?;
        if told.strings.is_empty() {
            return Err(RpcError::Garbage("it says of nobody that they are connected".into()));
        }
        if let Some(failed) = told.strings.iter().find(|line| !line.ends_with("success")) {
            return Err(answer.refused(Some(failed.clone())));
        }
        let asked: Vec<Multiaddr> = addresses.iter().filter_map(|text| text.parse().ok()).collect();
        for id in asked.iter().filter_map(Multiaddr::peer_id) {
            if !told.strings.iter().any(|line| line.split_whitespace().any(|word| word == id)) {
                let lines = told.strings.join(", ");
                return Err(RpcError::Garbage(quote(&format!(
                    "asked to connect to {id}, it says `{lines}`"
                ))));
            }
        }
        Ok(())
    }

    fn disturb(&self, disturbance: &Disturbance, answers: &[Answer]) -> Result<Vec<Ask>, RpcError> {
        match disturbance {
            Disturbance::Block { addresses: ips, .. } | Disturbance::Unblock(ips) if ips.is_empty() => {
                Ok(Vec::new())
            }
            Disturbance::Block { addresses: ips, .. } => match answers {
                [] => Ok(vec![timed(disturbance)]),
                [own] if is_unknown(own) => {
                    let mut asks = in_batches("swarm/filters/add", &filters(ips));
                    asks.push(post("swarm/peers", &[]));
                    Ok(asks)
                }
                [own] => accepted(own).map(|_| Vec::new()),
                [_, filtered @ .., swarm] if filtered.len() == ips.len().div_ceil(BATCH) => {
                    filtered.iter().try_for_each(|answer| accepted(answer).map(drop))?;
                    // Filters keep new connections away and leave those alone that there are.
                    Ok(disconnect(connections(swarm)?, ips))
                }
                [.., last] => accepted(last).map(|_| Vec::new()),
            },
            Disturbance::Unblock(ips) => match answers {
                [] => Ok(vec![timed(disturbance)]),
                [own] if is_unknown(own) => Ok(in_batches("swarm/filters/rm", &filters(ips))),
                [.., last] => accepted(last).map(|_| Vec::new()),
            },
            Disturbance::Pause(lasts) => {
                extension("pause", answers, || format!("action=pause&milliseconds={}", lasts.as_millis()))
            }
            Disturbance::Latency { late, lasts } => extension("be late", answers, || {
                let (lasts, late) = (lasts.as_millis(), late.as_millis());
                format!("action=latency&milliseconds={lasts}&lateMilliseconds={late}")
            }),
        }
    }

    fn ending(&self, disturbance: &Disturbance, answers: &[Answer]) -> Ending {
        match (disturbance, answers) {
            // Its own filters know no time.
            (Disturbance::Block { .. }, [own, ..]) if is_unknown(own) => Ending::WhenUndone,
            _ => Ending::ByItself,
        }
    }
}

/// A request for a partition that the peer itself ends, which only reference peers know. Its body holds any number of addresses.
fn timed(disturbance: &Disturbance) -> Ask {
    let body = plain::partition(disturbance).to_string().into();
    Ask { method: Method::POST, path: DISTURB.into(), body }
}

/// Whether a peer does not know a request of ours. Reference peers of former versions refuse it.
fn is_unknown(answer: &Answer) -> bool {
    matches!(answer.status, 400 | 404)
}

/// The same command for all arguments, in requests whose addresses are not too long.
fn in_batches(command: &str, arguments: &[String]) -> Vec<Ask> {
    arguments.chunks(BATCH).map(|batch| post(command, batch)).collect()
}

/// A request that peers of other makers don't know.
fn extension(
    what: &'static str,
    answers: &[Answer],
    query: impl FnOnce() -> String,
) -> Result<Vec<Ask>, RpcError> {
    match answers {
        [] => Ok(vec![ask(format!("{DISTURB}?{}", query()))]),
        [answer, ..] if answer.status == 404 => Err(RpcError::Unsupported(what)),
        [answer, ..] => accepted(answer).map(|_| Vec::new()),
    }
}

fn ask(path: String) -> Ask {
    Ask { method: Method::POST, path, body: Bytes::new() }
}

fn post(command: &str, arguments: &[String]) -> Ask {
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| format!("arg={}", utf8_percent_encode(argument, NON_ALPHANUMERIC)))
        .collect();
    let query = if arguments.is_empty() { String::new() } else { format!("?{}", arguments.join("&")) };
    ask(format!("/api/v0/{command}{query}"))
}

/// Filters that each match one address.
fn filters(ips: &[IpAddr]) -> Vec<String> {
    let filter = |ip: &IpAddr| format!("{}/ipcidr/{}", of_ip(*ip), if ip.is_ipv4() { 32 } else { 128 });
    ips.iter().map(filter).collect()
}

/// Ends the connections with these addresses.
fn disconnect(connections: Vec<Connection>, ips: &[IpAddr]) -> Vec<Ask> {
    let ips: BTreeSet<&IpAddr> = ips.iter().collect();
    let blocked = |connection: &Connection| {
        let ip = connection.addr.parse::<Multiaddr>().ok().and_then(|address| address.ip());
        ip.is_some_and(|ip| ips.contains(&ip))
    };
    let mut peers: Vec<String> = connections
        .into_iter()
        .filter(blocked)
        .map(|connection| format!("/p2p/{}", connection.peer))
        .collect();
    peers.sort_unstable();
    peers.dedup();
    in_batches("swarm/disconnect", &peers)
}

fn connections(answer: &Answer) -> Result<Vec<Connection>, RpcError> {
    let swarm: Swarm = accepted(answer)?.read()?;
    Ok(swarm.peers.unwrap_or_default())
}

fn accepted(answer: &Answer) -> Result<&Answer, RpcError> {
    if answer.is_success() {
        return Ok(answer);
    }
    Err(answer.refused(answer.read::<Failure>().ok().map(|failure| failure.message)))
}
