//! Multiaddresses, as far as peers need them: `/ip4/10.0.0.1/tcp/4001/p2p/12D3…`. Pure.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use super::Identity;

/// The longest that is read.
const LENGTH_MAX: usize = 1024;
/// Addresses of one peer that are published.
pub const PUBLISHED_MAX: usize = 4;
/// Bytes of an address that is published, its peer's id included. Kubo's longest has about 230.
pub const PUBLISHED_BYTES_MAX: usize = 256;
/// Parts that stand alone.
const BARE: [&str; 10] =
    ["quic", "quic-v1", "ws", "wss", "tls", "noise", "http", "https", "webtransport", "webrtc-direct"];
/// Parts that have a value which says nothing about where a peer is.
const VALUED: [&str; 3] = ["certhash", "sni", "http-path"];

/// Where a peer can be reached, and who is expected there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multiaddr {
    text: String,
    host: Host,
    port: Option<Port>,
    peer_id: Option<String>,
    relayed: bool,
    /// Whether anything is spoken between port and peer: `WebSockets`, QUIC.
    layered: bool,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// By address.
    Ip(IpAddr),
    /// By name.
    Name(String),
}

/// The port there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// Of TCP.
    Tcp(u16),
    /// Of UDP.
    Udp(u16),
}

/// Why a text is no multiaddress that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no address of a peer: {why}")]
pub struct NotAnAddress {
    text: String,
    why: &'static str,
}

impl NotAnAddress {
    /// The reason alone, of something called it.
    pub fn why(&self) -> &'static str {
        self.why
    }
}

impl Multiaddr {
    /// The address, if it is one and not a name.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.host {
            Host::Ip(ip) => Some(ip),
            Host::Name(_) => None,
        }
    }

    /// The machine.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, if it is said.
    pub fn port(&self) -> Option<Port> {
        self.port
    }

    /// Where TCP, and nothing on top of it, leads to the peer itself.
    pub fn socket(&self) -> Option<SocketAddr> {
        match (self.ip()?, self.port?) {
            (ip, Port::Tcp(port)) if !self.relayed && !self.layered => Some(SocketAddr::new(ip, port)),
            _ => None,
        }
    }

    /// Who is there, if it is said.
    pub fn peer_id(&self) -> Option<&str> {
        self.peer_id.as_deref()
    }

    /// Whether it is reached by way of another peer.
    pub fn is_relayed(&self) -> bool {
        self.relayed
    }

    /// The same with who is there, if that was not said yet.
    #[must_use]
    pub fn of_peer(mut self, peer_id: &str) -> Self {
        if self.peer_id.is_none() {
            self.text = format!("{}/p2p/{peer_id}", self.text);
            self.peer_id = Some(peer_id.to_owned());
        }
        self
    }
}

impl fmt::Display for Multiaddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Multiaddr {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        read(text).map_err(|why| NotAnAddress { text: text.chars().take(100).collect(), why })
    }
}

fn read(text: &str) -> Result<Multiaddr, &'static str> {
    if text.len() > LENGTH_MAX {
        return Err("it is too long");
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it has characters that no address has");
    }
    let mut parts = text.strip_prefix('/').ok_or("it must begin with /")?.trim_end_matches('/').split('/');
    let mut address = Multiaddr {
        text: text.trim_end_matches('/').to_owned(),
        host: read_host(&mut parts)?,
        port: None,
        peer_id: None,
        relayed: false,
        layered: false,
    };
    while let Some(part) = parts.next() {
        match part {
            "tcp" | "udp" if address.port.is_none() && address.peer_id.is_none() => {
                let port = parts.next().and_then(|port| port.parse().ok()).ok_or("its port is no number")?;
                address.port = Some(if part == "tcp" { Port::Tcp(port) } else { Port::Udp(port) });
            }
            // The last one is who is to be reached; one before it is a relay.
            "p2p" | "ipfs" => {
                let id = parts.next().filter(|id| is_peer_id(id)).ok_or("it has no id of a peer")?;
                address.peer_id = Some(id.to_owned());
            }
            "p2p-circuit" => {
                address.relayed = true;
                address.peer_id = None;
            }
            _ if BARE.contains(&part) => address.layered = true,
            _ if VALUED.contains(&part) => {
                parts.next().filter(|value| !value.is_empty()).ok_or("a part of it lacks its value")?;
                address.layered = true;
            }
            _ => return Err("it has a part that is not known"),
        }
    }
    Ok(address)
}

fn read_host<'a>(parts: &mut impl Iterator<Item = &'a str>) -> Result<Host, &'static str> {
    let mut kind = parts.next();
    if kind == Some("ip6zone") {
        parts.next().filter(|zone| !zone.is_empty()).ok_or("a part of it lacks its value")?;
        kind = parts.next().filter(|kind| *kind == "ip6");
    }
    let value = parts.next().filter(|value| !value.is_empty());
    match kind {
        Some("ip4") => {
            let ip = value.and_then(|value| value.parse().ok()).ok_or("it has no IPv4 address")?;
            Ok(Host::Ip(IpAddr::V4(ip)))
        }
        Some("ip6") => {
            let ip = value.and_then(|value| value.parse().ok()).ok_or("it has no IPv6 address")?;
            Ok(Host::Ip(IpAddr::V6(ip)))
        }
        Some("dns" | "dns4" | "dns6" | "dnsaddr") => {
            Ok(Host::Name(value.ok_or("it has no name")?.to_owned()))
        }
        _ => Err("it begins with neither an IP address nor a name"),
    }
}

/// Whether this can be the id of a peer, whoever makes them: one word that needs no quoting anywhere.
pub fn is_peer_id(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'=');
    (1..=256).contains(&text.len()) && text.bytes().all(allowed)
}

/// The address of a machine, as a multiaddress begins: `/ip4/10.0.0.1`.
pub fn of_ip(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => format!("/ip4/{ip}"),
        IpAddr::V6(ip) => format!("/ip6/{ip}"),
    }
}

/// The addresses that a peer may announce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// Those of its pod.
    pub own: Vec<IpAddr>,
    /// Whether it may announce addresses of other machines, too.
    pub others: bool,
}

impl Announced {
    /// The address of a pod, and no other.
    pub fn only(own: IpAddr) -> Self {
        Self { own: vec![own], others: false }
    }

    /// A loopback address leads others to themselves, unless the pod really has it, as on a cluster of one machine.
    fn allows(&self, ip: IpAddr) -> bool {
        self.own.contains(&ip) || self.others && !(ip.is_loopback() || ip.is_unspecified())
    }
}

/// Where others reach a peer, of what it announces: all with its id, sorted, each once.
///
/// At most [`PUBLISHED_MAX`] of at most [`PUBLISHED_BYTES_MAX`] bytes are kept; plain TCP comes before everything else. Addresses that lead through
/// other peers, or that are names, are left out.
pub fn published(identity: &Identity, announced: &Announced) -> Vec<String> {
    let addresses = identity.addresses.iter().filter_map(|text| text.parse::<Multiaddr>().ok());
    let allowed = addresses
        .filter(|address| address.ip().is_some_and(|ip| announced.allows(ip)) && !address.is_relayed());
    let named = allowed.map(|address| address.of_peer(&identity.peer_id));
    let short = named.filter(|address| address.text.len() <= PUBLISHED_BYTES_MAX);
    // A peer announces them in any order; which of them are kept does not depend on it.
    let ranked: BTreeSet<(bool, String)> =
        short.map(|address| (address.socket().is_none(), address.text)).collect();
    let mut kept: Vec<String> = ranked.into_iter().take(PUBLISHED_MAX).map(|(_, text)| text).collect();
    kept.sort_unstable();
    kept
}

/// The address to keep where there is room for one only: plain TCP, if there is any.
pub fn preferred(addresses: &[String]) -> Option<&String> {
    let is_plain = |text: &&String| text.parse::<Multiaddr>().is_ok_and(|address| address.socket().is_some());
    addresses.iter().find(is_plain).or(addresses.first())
}
