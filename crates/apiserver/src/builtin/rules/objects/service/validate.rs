//! What a service must look like once its addresses and ports are filled in.

use super::families::validate_addresses;
use super::{HINTS, SPEC, TOPOLOGY, externally_accessible, is_headless, kind, needs_health_check};
use crate::builtin::rules::json::{int, list, set, text};
use crate::builtin::rules::names::address::{parse_lenient, validate_legacy_cidr, validate_legacy_ip};
use crate::builtin::rules::names::{
    complain, dns1123_label, dns1123_subdomain, label_key, port_name, port_number, validate_labels,
};
use crate::builtin::rules::objects::{check_meta_again, one_of};
use crate::field::{FieldError, Path, Problem};
use serde_json::Value;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const BALANCER_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";

pub(super) fn validate(service: &Value, errors: &mut Vec<FieldError>) {
    validate_with(service, None, errors);
}

/// Checks a service; values that stand in `old` already are not checked again.
pub(super) fn validate_with(service: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    validate_topology(service, errors);
    validate_type(service, errors);
    validate_ports(service, errors);
    validate_labels(&service["spec"]["selector"], &SPEC.field("selector"), errors);
    validate_affinity(&service["spec"], errors);
    validate_addresses(service, old, errors);
    validate_external_ips(service, old, errors);
    one_of(text(&service["spec"], "type"), &SPEC.field("type"), TYPES, errors);
    validate_port_numbers(service, errors);
    validate_source_ranges(service, old, errors);
    validate_balancer(service, errors);
    validate_traffic(service, errors);
}

const DISTRIBUTIONS: &[&str] = &["PreferClose", "PreferSameZone", "PreferSameNode"];
const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

fn validate_topology(service: &Value, errors: &mut Vec<FieldError>) {
    let annotations = &service["metadata"]["annotations"];
    if let (Some(mode), Some(hints)) = (set(annotations, TOPOLOGY), set(annotations, HINTS))
        && mode != hints
    {
        let path = Path::of("metadata");
        let path = path.field("annotations");
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        errors.push(FieldError::invalid(&path.key(TOPOLOGY), mode, detail));
    }
}

fn validate_type(service: &Value, errors: &mut Vec<FieldError>) {
    let spec = &service["spec"];
    let headless = is_headless(service);
    if list(spec, "ports").is_empty() && !headless && kind(service) != "ExternalName" {
        errors.push(FieldError::required(&SPEC.field("ports"), ""));
    }
    match kind(service) {
        kind @ ("LoadBalancer" | "NodePort") if headless => {
            let path = SPEC.field("clusterIPs");
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(&path.index(0), &"None".into(), detail));
        }
        "ExternalName" => {
            let given =
                |field: &&str| set(spec, field).is_some_and(|v| v.as_array().is_none_or(|l| !l.is_empty()));
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].iter().filter(|f| given(f)) {
                let detail = "may not be set for ExternalName services";
                errors.push(FieldError::forbidden(&SPEC.field(field), detail));
            }
            let name = text(spec, "externalName");
            let path = SPEC.field("externalName");
            match name.strip_suffix('.').unwrap_or(name) {
                "" => errors.push(FieldError::required(&path, "")),
                host => complain(errors, &path, host, dns1123_subdomain(host)),
            }
        }
        _ => {}
    }
}

fn validate_ports(service: &Value, errors: &mut Vec<FieldError>) {
    let ports = list(&service["spec"], "ports");
    let path = SPEC.field("ports");
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        match text(port, "name") {
            "" if ports.len() > 1 => errors.push(FieldError::required(&path.field("name"), "")),
            "" => {}
            name => {
                complain(errors, &path.field("name"), name, dns1123_label(name));
                if !names.insert(name) {
                    errors.push(FieldError::duplicate(&path.field("name"), &name.into()));
                }
            }
        }
        let number = int(port, "port").unwrap_or(0);
        for why in port_number(number) {
            errors.push(FieldError::invalid(&path.field("port"), &number.into(), why));
        }
        one_of(text(port, "protocol"), &path.field("protocol"), &["SCTP", "TCP", "UDP"], errors);
        validate_port_or_name(&port["targetPort"], &path.field("targetPort"), errors);
        if let Some(protocol) = set(port, "appProtocol").and_then(Value::as_str) {
            complain(errors, &path.field("appProtocol"), protocol, label_key(protocol));
        }
    }
}

/// Checks a port given by number or by name.
fn validate_port_or_name(value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let wrong = match value {
        Value::String(name) => port_name(name),
        other => port_number(other.as_i64().unwrap_or(0)),
    };
    errors.extend(wrong.into_iter().map(|why| FieldError::invalid(path, value, why)));
}

fn validate_affinity(spec: &Value, errors: &mut Vec<FieldError>) {
    let affinity = text(spec, "sessionAffinity");
    one_of(affinity, &SPEC.field("sessionAffinity"), &["ClientIP", "None"], errors);
    let path = SPEC.field("sessionAffinityConfig");
    let config = set(spec, "sessionAffinityConfig");
    match (affinity, config) {
        ("ClientIP", config) => {
            let client = config.and_then(|config| set(config, "clientIP"));
            let timeout = client.and_then(|client| int(client, "timeoutSeconds"));
            let client_path = path.field("clientIP");
            let timeout_path = client_path.field("timeoutSeconds");
            let detail = "when session affinity type is ClientIP";
            match (config, client, timeout) {
                (None, ..) => errors.push(FieldError::required(&path, detail)),
                (_, None, _) => errors.push(FieldError::required(&client_path, detail)),
                (_, _, None) => errors.push(FieldError::required(&timeout_path, detail)),
                (_, _, Some(1..=86_400)) => {}
                (_, _, Some(seconds)) => {
                    let detail = "must be greater than 0 and less than 86400";
                    errors.push(FieldError::invalid(&timeout_path, &seconds.into(), detail));
                }
            }
        }
        ("None", Some(_)) => {
            errors.push(FieldError::forbidden(&path, "must not be set when session affinity is None"));
        }
        _ => {}
    }
}

fn validate_external_ips(service: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let path = SPEC.field("externalIPs");
    let known = old.map_or(&[][..], |old| list(&old["spec"], "externalIPs"));
    for (index, value) in list(&service["spec"], "externalIPs").iter().enumerate() {
        let path = path.index(index);
        let before = errors.len();
        let address = value.as_str().unwrap_or("");
        if !known.contains(value) {
            validate_legacy_ip(address, &path, true, errors);
        }
        if errors.len() == before {
            validate_endpoint_ip(address, &path, errors);
        }
    }
}

/// What is wrong with an endpoint on loopback.
const LOOPBACK: &str = "may not be in the loopback range (127.0.0.0/8, ::1/128)";

/// Whether all that is wrong is that an endpoint is on loopback, at an address that is not the machine's own (127.0.0.x).
pub(crate) fn is_loopback_endpoint(error: &FieldError) -> bool {
    let address = error.value.as_deref().and_then(|value| value.trim_matches('"').parse::<Ipv4Addr>().ok());
    error.detail == LOOPBACK && address.is_some_and(|address| address.octets()[..3] != [127, 0, 0])
}

/// Checks that an address can be one of an endpoint.
pub(in crate::builtin::rules::objects) fn validate_endpoint_ip(
    text: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut refuse = |detail: String| errors.push(FieldError::invalid(path, &text.into(), detail));
    let Some(address) = parse_lenient(text).map(|address| address.to_canonical()) else {
        return refuse("must be a valid IP address".to_owned());
    };
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    if address.is_unspecified() {
        refuse(format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        refuse(LOOPBACK.to_owned());
    }
    if link_local {
        refuse("may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned());
    }
    if link_local_multicast {
        refuse("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned());
    }
}

fn validate_port_numbers(service: &Value, errors: &mut Vec<FieldError>) {
    let ports = list(&service["spec"], "ports");
    let path = SPEC.field("ports");
    let node_port = |port: &Value| int(port, "nodePort").filter(|number| *number != 0);
    for (index, port) in ports.iter().enumerate() {
        if kind(service) == "ClusterIP" && node_port(port).is_some() {
            let path = path.index(index);
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(&path.field("nodePort"), detail));
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        if let Some(number) = node_port(port)
            && !seen.insert((text(port, "protocol"), number))
        {
            let path = path.index(index);
            errors.push(FieldError::duplicate(&path.field("nodePort"), &number.into()));
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), int(port, "port").unwrap_or(0));
        if !seen.insert((protocol, number)) {
            // The real server prints its internal form of the port.
            errors.push(FieldError {
                problem: Problem::Duplicate,
                field: path.index(index).to_string(),
                value: Some(format!(
                    "{{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\"Port\":{number},\
                     \"TargetPort\":0,\"NodePort\":0}}"
                )),
                detail: String::new(),
            });
        }
    }
}

fn validate_source_ranges(service: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let ranges = list(&service["spec"], "loadBalancerSourceRanges");
    let balancer = kind(service) == "LoadBalancer";
    if !ranges.is_empty() {
        let path = SPEC.field("LoadBalancerSourceRanges");
        if !balancer {
            errors.push(FieldError::forbidden(&path, BALANCER_ONLY));
        }
        let known = old.map_or(&[][..], |old| list(&old["spec"], "loadBalancerSourceRanges"));
        for (index, range) in ranges.iter().enumerate().filter(|(_, range)| !known.contains(range)) {
            validate_legacy_cidr(range.as_str().unwrap_or("").trim(), &path.index(index), true, errors);
        }
        return;
    }
    let Some(value) = set(&service["metadata"]["annotations"], RANGES).and_then(Value::as_str) else {
        return;
    };
    let path = Path::of("metadata");
    let path = path.field("annotations");
    let path = path.key(RANGES);
    if !balancer {
        errors.push(FieldError::forbidden(&path, BALANCER_ONLY));
    }
    let known = old.is_some_and(|old| old["metadata"]["annotations"][RANGES] == value);
    if !known && !value.trim().is_empty() {
        for range in value.split(',') {
            validate_legacy_cidr(range.trim(), &path, true, errors);
        }
    }
}

fn validate_balancer(service: &Value, errors: &mut Vec<FieldError>) {
    let allocate = set(&service["spec"], "allocateLoadBalancerNodePorts");
    match (kind(service) == "LoadBalancer", allocate) {
        (false, Some(_)) => {
            let path = SPEC.field("allocateLoadBalancerNodePorts");
            errors.push(FieldError::forbidden(&path, BALANCER_ONLY));
        }
        (true, None) => errors.push(FieldError::required(&Path::of("allocateLoadBalancerNodePorts"), "")),
        _ => {}
    }
    validate_balancer_class(service, errors);
}

/// Checks the class of a load balancer, which only a load balancer may have.
pub(super) fn validate_balancer_class(service: &Value, errors: &mut Vec<FieldError>) {
    let Some(class) = set(&service["spec"], "loadBalancerClass").and_then(Value::as_str) else { return };
    let path = SPEC.field("loadBalancerClass");
    if kind(service) == "LoadBalancer" {
        complain(errors, &path, class, label_key(class));
    } else {
        errors.push(FieldError::forbidden(&path, BALANCER_ONLY));
    }
}

fn validate_traffic(service: &Value, errors: &mut Vec<FieldError>) {
    let spec = &service["spec"];
    let path = SPEC.field("externalTrafficPolicy");
    let policy = text(spec, "externalTrafficPolicy");
    if externally_accessible(service) {
        one_of(policy, &path, &["Cluster", "Local"], errors);
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(&path, &policy.into(), detail));
    }
    let path = SPEC.field("healthCheckNodePort");
    match (needs_health_check(service), int(spec, "healthCheckNodePort").unwrap_or(0)) {
        (false, 0) => {}
        (false, port) => {
            let detail =
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(&path, &port.into(), detail));
        }
        (true, 0) => errors.push(FieldError::required(&path, "")),
        (true, port) => {
            let wrong = port_number(port).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid(&path, &port.into(), why)));
        }
    }
    let path = SPEC.field("internalTrafficPolicy");
    match set(spec, "internalTrafficPolicy").and_then(Value::as_str) {
        None if matches!(kind(service), "NodePort" | "LoadBalancer" | "ClusterIP") => {
            errors.push(FieldError::required(&path, ""));
        }
        Some("Cluster" | "Local") | None => {}
        Some(other) => errors.push(FieldError::not_supported(&path, &other.into(), &["Cluster", "Local"])),
    }
    if let Some(value) = set(spec, "trafficDistribution").and_then(Value::as_str)
        && !DISTRIBUTIONS.contains(&value)
    {
        let path = SPEC.field("trafficDistribution");
        errors.push(FieldError::not_supported(&path, &value.into(), DISTRIBUTIONS));
    }
}

pub(super) fn validate_status(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    let ingress = |service: &Value| list(&service["status"]["loadBalancer"], "ingress").to_vec();
    let path = Path::of("status");
    let path = path.field("loadBalancer");
    let path = path.field("ingress");
    let entries = ingress(new);
    if kind(new) != "LoadBalancer" {
        if !entries.is_empty() {
            let detail = "may only be used when `spec.type` is 'LoadBalancer'";
            errors.push(FieldError::forbidden(&path, detail));
        }
        return;
    }
    let known: HashSet<String> = ingress(old).iter().map(|entry| text(entry, "ip").to_owned()).collect();
    for (index, entry) in entries.iter().enumerate() {
        validate_ingress(entry, &known, &path.index(index), errors);
    }
}

fn validate_ingress(entry: &Value, known: &HashSet<String>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let ip = text(entry, "ip");
    if !ip.is_empty() && !known.contains(ip) {
        validate_legacy_ip(ip, &path.field("ip"), true, errors);
    }
    let mode_path = path.field("ipMode");
    match (set(entry, "ipMode").and_then(Value::as_str), ip.is_empty()) {
        (None, true) | (Some("Proxy" | "VIP"), false) => {}
        (None, false) => errors.push(FieldError::required(&mode_path, "must be specified when `ip` is set")),
        (Some(_), true) => {
            errors.push(FieldError::forbidden(&mode_path, "may not be specified when `ip` is not set"));
        }
        (Some(mode), false) => {
            errors.push(FieldError::not_supported(&mode_path, &mode.into(), &["Proxy", "VIP"]));
        }
    }
    let host = text(entry, "hostname");
    if !host.is_empty() {
        let path = path.field("hostname");
        complain(errors, &path, host, dns1123_subdomain(host));
        if parse_lenient(host).is_some() {
            let detail = "must be a DNS name, not an IP address";
            errors.push(FieldError::invalid(&path, &host.into(), detail));
        }
    }
}
