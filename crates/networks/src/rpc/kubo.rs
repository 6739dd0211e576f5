//! The RPC of Kubo, which the reference peer speaks too: `POST /api/v0/…`, arguments in the query.

use bytes::Bytes;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use std::net::IpAddr;

use super::dialect::{Answer, Ask, Dialect, ids, plausible, quote};
use super::multiaddr::{Multiaddr, of_ip};
use super::{Disturbance, Identity, RpcError};

pub(super) struct Kubo;

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
            Disturbance::Block(ips) if ips.is_empty() => Ok(Vec::new()),
            Disturbance::Unblock(ips) if ips.is_empty() => Ok(Vec::new()),
            // Filters keep new connections away and leave those alone that there are.
            Disturbance::Block(ips) => match answers {
                [] => Ok(vec![post("swarm/filters/add", &filters(ips)), post("swarm/peers", &[])]),
                [filtered, swarm] => {
                    accepted(filtered)?;
                    Ok(disconnect(connections(swarm)?, ips).into_iter().collect())
                }
                [.., last] => accepted(last).map(|_| Vec::new()),
            },
            Disturbance::Unblock(ips) => match answers {
                [] => Ok(vec![post("swarm/filters/rm", &filters(ips))]),
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
}

/// A request that peers of other makers don't know.
fn extension(
    what: &'static str,
    answers: &[Answer],
    query: impl FnOnce() -> String,
) -> Result<Vec<Ask>, RpcError> {
    match answers {
        [] => Ok(vec![ask(format!("/api/v0/mainstay/disturb?{}", query()))]),
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

/// Ends the connections with these addresses, if there are any.
fn disconnect(connections: Vec<Connection>, ips: &[IpAddr]) -> Option<Ask> {
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
    (!peers.is_empty()).then(|| post("swarm/disconnect", &peers))
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
