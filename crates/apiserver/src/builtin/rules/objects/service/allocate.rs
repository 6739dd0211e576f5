//! Cluster IPs and node ports: chosen among those nobody uses, on a single-stack IPv4 cluster.
//!
//! The caller keeps one [`Allocations`] beside its services and tells it of every service that is stored
//! ([`Allocations::claim`]) or gone ([`Allocations::release`]). Choosing changes nothing: a write that fails
//! later has taken nothing.

use super::families::printed;
use super::stack::{choose_families, refuse};
use super::{SPEC, kind, needs_health_check};
use crate::builtin::rules::json::{int, list, list_mut, object_mut, put, same_field, set, text};
use crate::builtin::rules::names::address::{Cidr, parse_lenient};
use crate::field::FieldError;
use crate::status::ApiError;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

/// What services may be given.
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    /// Cluster IPs; its first and last address are never given.
    pub cluster_ips: Cidr,
    /// Node ports.
    pub node_ports: RangeInclusive<u16>,
}

impl Default for Ranges {
    fn default() -> Self {
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0));
        Ranges { cluster_ips: Cidr { address, prefix: 24 }, node_ports: 30_000..=32_767 }
    }
}

/// What services have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allocations {
    cluster_ips: HashSet<IpAddr>,
    node_ports: HashSet<i64>,
}

impl Allocations {
    /// A service is stored with what it holds.
    pub(crate) fn claim(&mut self, service: &Value) {
        self.cluster_ips.extend(cluster_ips(service));
        self.node_ports.extend(all_node_ports(service));
    }

    /// A service is gone, or stored anew without what it held.
    pub(crate) fn release(&mut self, service: &Value) {
        for address in cluster_ips(service) {
            self.cluster_ips.remove(&address);
        }
        for port in all_node_ports(service) {
            self.node_ports.remove(&port);
        }
    }
}

/// All that a service has, one text for each.
pub(crate) fn claimed(service: &Value) -> Vec<String> {
    let addresses = cluster_ips(service).map(|address| format!("cluster IP {}", address.to_canonical()));
    addresses.chain(all_node_ports(service).map(|port| format!("node port {port}"))).collect()
}

fn cluster_ips(service: &Value) -> impl Iterator<Item = IpAddr> {
    list(&service["spec"], "clusterIPs").iter().filter_map(|text| parse_lenient(text.as_str()?))
}

fn node_port(port: &Value) -> i64 {
    int(port, "nodePort").unwrap_or(0)
}

fn node_ports(service: &Value) -> impl Iterator<Item = i64> {
    list(&service["spec"], "ports").iter().map(node_port).filter(|port| *port != 0)
}

fn all_node_ports(service: &Value) -> impl Iterator<Item = i64> {
    let health = int(&service["spec"], "healthCheckNodePort").filter(|port| *port != 0);
    node_ports(service).chain(health)
}

/// One write that takes addresses and ports.
struct Choice<'a> {
    ranges: &'a Ranges,
    taken: &'a Allocations,
    random: &'a mut dyn FnMut() -> u64,
    dry_run: bool,
    ports: Vec<i64>,
}

/// Fills in families, cluster IPs and node ports of a new service.
pub(crate) fn begin_create(
    service: &mut Value,
    ranges: &Ranges,
    taken: &Allocations,
    random: &mut dyn FnMut() -> u64,
    dry_run: bool,
) -> Result<(), ApiError> {
    let single = text(&service["spec"], "clusterIP").to_owned();
    if !single.is_empty()
        && list(&service["spec"], "clusterIPs").is_empty()
        && let Some(spec) = object_mut(service, "spec")
    {
        put(spec, "clusterIPs", json!([single]));
    }
    choose_families(service, None)?;
    let mut choice = Choice { ranges, taken, random, dry_run, ports: Vec::new() };
    choice.choose_address(service)?;
    if matches!(kind(service), "NodePort" | "LoadBalancer") {
        choice.choose_node_ports(service)?;
    }
    if needs_health_check(service) {
        choice.choose_health_port(service)?;
    }
    Ok(())
}

/// Keeps what the service has, and fills in what the update needs beyond it.
pub(crate) fn begin_update(
    new: &mut Value,
    old: &Value,
    ranges: &Ranges,
    taken: &Allocations,
    random: &mut dyn FnMut() -> u64,
    dry_run: bool,
) -> Result<(), ApiError> {
    keep_allocated(new, old);
    follow_cluster_ip(new, old);
    choose_families(new, Some(old))?;
    let mut choice = Choice { ranges, taken, random, dry_run, ports: Vec::new() };
    if kind(old) == "ExternalName" && kind(new) != "ExternalName" {
        choice.choose_address(new)?;
    }
    if matches!(kind(new), "NodePort" | "LoadBalancer") {
        choice.update_node_ports(new, old)?;
    }
    if needs_health_check(new) && !needs_health_check(old) {
        choice.choose_health_port(new)?;
    }
    Ok(())
}

fn wants_node_ports(service: &Value) -> bool {
    match kind(service) {
        "NodePort" => true,
        "LoadBalancer" => service["spec"]["allocateLoadBalancerNodePorts"] != Value::Bool(false),
        _ => false,
    }
}

/// An update that names no cluster IP or node port means the ones the service has.
fn keep_allocated(new: &mut Value, old: &Value) {
    let addresses = kind(new) != "ExternalName" && kind(old) != "ExternalName";
    let ports = wants_node_ports(new) && wants_node_ports(old);
    let health = needs_health_check(new) && needs_health_check(old);
    let reused: HashSet<i64> = node_ports(new).collect();
    let Some(spec) = object_mut(new, "spec") else { return };
    if addresses {
        let before = text(&old["spec"], "clusterIP");
        if text(spec, "clusterIP").is_empty() && !before.is_empty() {
            put(spec, "clusterIP", before);
        }
        let before = list(&old["spec"], "clusterIPs");
        if list(spec, "clusterIPs").is_empty() && !before.is_empty() {
            put(spec, "clusterIPs", before.to_vec());
        }
    }
    if ports {
        let before = list(&old["spec"], "ports");
        let by_name: HashMap<&str, i64> = before.iter().map(|p| (text(p, "name"), node_port(p))).collect();
        for port in list_mut(spec, "ports").iter_mut().filter(|port| node_port(port) == 0) {
            if let Some(number) = by_name.get(text(port, "name")).filter(|n| **n != 0 && !reused.contains(n))
            {
                put(port, "nodePort", *number);
            }
        }
    }
    if health && int(spec, "healthCheckNodePort").unwrap_or(0) == 0 {
        put(spec, "healthCheckNodePort", old["spec"]["healthCheckNodePort"].clone());
    }
}

/// An update may change the one address and leave the list as it was, or the other way round.
fn follow_cluster_ip(new: &mut Value, old: &Value) {
    let same_list = same_field(&new["spec"], &old["spec"], "clusterIPs");
    let (before, after) = (text(&old["spec"], "clusterIP"), text(&new["spec"], "clusterIP").to_owned());
    let unlisted = list(&new["spec"], "clusterIPs").is_empty();
    let Some(spec) = object_mut(new, "spec") else { return };
    if before == after {
        if unlisted && let Some(addresses) = set(&old["spec"], "clusterIPs") {
            put(spec, "clusterIPs", addresses.clone());
        }
    } else if same_list {
        let addresses = if after.is_empty() { Value::Null } else { json!([after]) };
        put(spec, "clusterIPs", addresses);
    }
}

impl Choice<'_> {
    fn choose_address(&mut self, service: &mut Value) -> Result<(), ApiError> {
        if kind(service) == "ExternalName" || super::is_headless(service) {
            return Ok(());
        }
        let wanted = list(&service["spec"], "clusterIPs").first().and_then(Value::as_str).unwrap_or("");
        let chosen = if wanted.is_empty() {
            self.free_address(text(&service["metadata"], "name"))?.to_string()
        } else {
            let wanted = wanted.to_owned();
            if let Some(why) = self.address_refusal(&wanted) {
                let detail = format!("failed to allocate IP {wanted}: {why}");
                let path = SPEC.field("clusterIPs");
                let error = FieldError::invalid(&path, &printed(service, "clusterIPs"), detail);
                return Err(refuse(service, &[error]));
            }
            wanted
        };
        if let Some(spec) = object_mut(service, "spec") {
            put(spec, "clusterIP", chosen.as_str());
            put(spec, "clusterIPs", json!([chosen]));
        }
        Ok(())
    }

    fn bounds(&self) -> (u32, u32) {
        let range = &self.ranges.cluster_ips;
        match range.first() {
            IpAddr::V4(first) => {
                let first = u32::from(first);
                (first, first | u32::MAX.checked_shr(range.prefix).unwrap_or(0))
            }
            IpAddr::V6(_) => (0, 0),
        }
    }

    fn address_refusal(&self, wanted: &str) -> Option<String> {
        let address = parse_lenient(wanted)?.to_canonical();
        let (network, broadcast) = self.bounds();
        let usable =
            matches!(address, IpAddr::V4(v4) if network < u32::from(v4) && u32::from(v4) < broadcast);
        if !usable {
            let range = &self.ranges.cluster_ips;
            return Some(if self.dry_run {
                format!(
                    "the provided IP ({address}) is not in the valid range. The range of valid IPs is {}/{}",
                    range.address, range.prefix
                )
            } else {
                "the provided network does not match the current range".to_owned()
            });
        }
        let taken = !self.dry_run && self.taken.cluster_ips.contains(&address);
        taken.then(|| "provided IP is already allocated".to_owned())
    }

    /// A free address: of the upper part while there is one, so that people can name lower ones.
    fn free_address(&mut self, name: &str) -> Result<IpAddr, ApiError> {
        let (network, broadcast) = self.bounds();
        if self.dry_run {
            return Ok(IpAddr::V4(network.into()));
        }
        let usable = i64::from(broadcast - network) - 1;
        let reserved = (usable / 16).clamp(16, 256);
        let low = i64::from(network) + 1;
        let taken = &self.taken.cluster_ips;
        let free =
            |at: i64| u32::try_from(at).ok().map(|at| IpAddr::V4(at.into())).filter(|a| !taken.contains(a));
        pick(low, low + usable - 1, reserved, self.random, free).ok_or_else(|| {
            ApiError::internal(format!(
                "failed to allocate a serviceIP for Service \"{name}\": range is full"
            ))
        })
    }

    fn take_port(&mut self, port: i64) -> Result<(), String> {
        let range = &self.ranges.node_ports;
        let inside = u16::try_from(port).is_ok_and(|port| range.contains(&port));
        if !self.dry_run && !inside {
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                range.start(),
                range.end()
            ));
        }
        if self.taken.node_ports.contains(&port) || self.ports.contains(&port) {
            return Err("provided port is already allocated".to_owned());
        }
        self.ports.push(port);
        Ok(())
    }

    fn free_port(&mut self) -> Result<i64, ApiError> {
        let port = if self.dry_run {
            // A made-up number: the real server answers a dry run with one past its range, too.
            self.ports.iter().max().copied().unwrap_or(32_768) + 1
        } else {
            let (low, high) =
                (i64::from(*self.ranges.node_ports.start()), i64::from(*self.ranges.node_ports.end()));
            let reserved = ((high - low + 1) / 32).clamp(16, 128);
            let (taken, mine) = (&self.taken.node_ports, &self.ports);
            let free = |port: i64| (!taken.contains(&port) && !mine.contains(&port)).then_some(port);
            pick(low, high, reserved, self.random, free)
                .ok_or_else(|| ApiError::internal("failed to allocate a nodePort: range is full"))?
        };
        self.ports.push(port);
        Ok(port)
    }

    fn choose_node_ports(&mut self, service: &mut Value) -> Result<(), ApiError> {
        let allocate = wants_node_ports(service);
        let wanted: Vec<(i64, i64)> = list(&service["spec"], "ports")
            .iter()
            .map(|port| (int(port, "port").unwrap_or(0), node_port(port)))
            .collect();
        // TCP and UDP of one port get one node port.
        let mut by_port: HashMap<i64, i64> = HashMap::new();
        let mut chosen = Vec::with_capacity(wanted.len());
        for (index, (port, given)) in wanted.iter().copied().enumerate() {
            if given == 0 && !allocate {
                chosen.push(0);
                continue;
            }
            let number = match by_port.get(&port).copied() {
                None => {
                    let requested = wanted.iter().find(|(p, n)| *p == port && *n != 0).map(|(_, n)| *n);
                    let number = match requested {
                        None => self.free_port()?,
                        Some(number) => self.named_port(service, index, number)?,
                    };
                    by_port.insert(port, number);
                    number
                }
                Some(number) if given == 0 || given == number => number,
                Some(_) => self.named_port(service, index, given)?,
            };
            chosen.push(number);
        }
        if let Some(spec) = object_mut(service, "spec") {
            for (port, number) in list_mut(spec, "ports").iter_mut().zip(chosen).filter(|(_, n)| *n != 0) {
                put(port, "nodePort", number);
            }
        }
        Ok(())
    }

    fn named_port(&mut self, service: &Value, index: usize, number: i64) -> Result<i64, ApiError> {
        self.take_port(number).map(|()| number).map_err(|why| {
            let path = SPEC.field("ports");
            let path = path.index(index);
            refuse(service, &[FieldError::invalid(&path.field("nodePort"), &number.into(), why)])
        })
    }

    fn update_node_ports(&mut self, new: &mut Value, old: &Value) -> Result<(), ApiError> {
        let allocate = wants_node_ports(new);
        let had: HashSet<i64> = node_ports(old).collect();
        let given: Vec<i64> = list(&new["spec"], "ports").iter().map(node_port).collect();
        let mut chosen = Vec::with_capacity(given.len());
        for (index, number) in given.into_iter().enumerate() {
            if number == 0 {
                chosen.push(if allocate { self.free_port()? } else { 0 });
            } else {
                if !had.contains(&number) && !self.ports.contains(&number) {
                    self.named_port(new, index, number)?;
                }
                chosen.push(number);
            }
        }
        if let Some(spec) = object_mut(new, "spec") {
            for (port, number) in list_mut(spec, "ports").iter_mut().zip(chosen).filter(|(_, n)| *n != 0) {
                put(port, "nodePort", number);
            }
        }
        Ok(())
    }

    fn choose_health_port(&mut self, service: &mut Value) -> Result<(), ApiError> {
        let given = int(&service["spec"], "healthCheckNodePort").unwrap_or(0);
        if given != 0 {
            return self.take_port(given).map_err(|why| {
                ApiError::internal(format!(
                    "failed to allocate requested HealthCheck NodePort {given}: {why}"
                ))
            });
        }
        let port = self.free_port()?;
        if let Some(spec) = object_mut(service, "spec") {
            put(spec, "healthCheckNodePort", port);
        }
        Ok(())
    }
}

/// The first free number at or after a random one in `low + reserved..=high`, else in the reserved part.
fn pick<T>(
    low: i64,
    high: i64,
    reserved: i64,
    random: &mut dyn FnMut() -> u64,
    free: impl Fn(i64) -> Option<T>,
) -> Option<T> {
    let split = (low + reserved).min(high + 1);
    for (first, last) in [(split, high), (low, split - 1)] {
        let size = last - first + 1;
        if size <= 0 {
            continue;
        }
        let start = i64::try_from(random() % size.unsigned_abs()).unwrap_or(0);
        if let Some(found) = (0..size).find_map(|step| free(first + (start + step) % size)) {
            return Some(found);
        }
    }
    None
}
