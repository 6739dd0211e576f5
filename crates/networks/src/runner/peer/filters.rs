//! Addresses that a peer has no connections with, for a time or for good. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use tokio::time::Instant;

use crate::rpc::multiaddr::of_ip;

/// Filters, each with the time at which it ends; without one it is there until somebody takes it off.
#[derive(Debug, Default)]
pub(super) struct Filters {
    /// Those of one address, of which there may be thousands.
    hosts: BTreeMap<Filter, Option<Instant>>,
    /// All others.
    ranges: BTreeMap<Filter, Option<Instant>>,
}

impl Filters {
    /// Adds filters, or sets when they end. One without an end keeps having none. Filters that have ended are dropped.
    pub(super) fn add(&mut self, filters: &[Filter], until: Option<Instant>, now: Instant) {
        for part in [&mut self.hosts, &mut self.ranges] {
            part.retain(|_, until| is_on(*until, now));
        }
        for filter in filters {
            let known = self.part(filter).entry(*filter).or_insert(until);
            *known = known.and(until);
        }
    }

    pub(super) fn remove(&mut self, filter: &Filter) -> bool {
        self.part(filter).remove(filter).is_some()
    }

    fn part(&mut self, filter: &Filter) -> &mut BTreeMap<Filter, Option<Instant>> {
        if Filter::host(filter.ip) == *filter { &mut self.hosts } else { &mut self.ranges }
    }

    /// Whether there shall be no connection with an address.
    pub(super) fn matches(&self, ip: IpAddr, now: Instant) -> bool {
        let host = self.hosts.get(&Filter::host(ip)).is_some_and(|until| is_on(*until, now));
        host || self.ranges.iter().any(|(filter, until)| is_on(*until, now) && filter.matches(ip))
    }

    /// All that have not ended.
    pub(super) fn all(&self, now: Instant) -> Vec<Filter> {
        let on = self.hosts.iter().chain(&self.ranges).filter(|(_, until)| is_on(**until, now));
        let mut all: Vec<Filter> = on.map(|(filter, _)| *filter).collect();
        all.sort_unstable();
        all
    }
}

fn is_on(until: Option<Instant>, now: Instant) -> bool {
    until.is_none_or(|until| now < until)
}

/// Addresses that begin alike: `/ip4/10.0.0.0/ipcidr/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Filter {
    ip: IpAddr,
    length: u8,
}

impl Filter {
    /// One address.
    pub(super) fn host(ip: IpAddr) -> Self {
        let ip = ip.to_canonical();
        Self { ip, length: if ip.is_ipv4() { 32 } else { 128 } }
    }

    pub(super) fn matches(&self, ip: IpAddr) -> bool {
        // An address of version 4 may come in the clothes of version 6.
        match (self.ip, ip.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => {
                let differ = u32::from(own) ^ u32::from(ip);
                differ.checked_shr(32 - u32::from(self.length)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(ip)) => {
                let differ = u128::from(own) ^ u128::from(ip);
                differ.checked_shr(128 - u32::from(self.length)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "invalid multiaddr-filter format".to_owned();
        let parts: Vec<&str> = text.split('/').collect();
        let ["", version, ip, "ipcidr", length] = parts[..] else { return Err(wrong()) };
        let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
        let (expected, longest) = if ip.is_ipv4() { ("ip4", 32) } else { ("ip6", 128) };
        let length: u8 = length.parse().map_err(|_| wrong())?;
        if version != expected || length > longest {
            return Err(wrong());
        }
        Ok(Self { ip, length })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/ipcidr/{}", of_ip(self.ip), self.length)
    }
}
