//! `Service`: defaults, what a change of type drops, and warnings. Its checks are in [`validate`], its
//! addresses and ports in [`allocate`].
//!
//! A write runs [`allocate::begin_create`] or [`allocate::begin_update`] after the defaults and before everything else: they
//! fill in families, cluster IPs and node ports, from the ones nobody uses.

pub(crate) mod allocate;
mod families;
mod stack;
#[cfg(test)]
mod tests;
mod update;
mod validate;

pub(crate) use validate::is_loopback_endpoint;
pub(super) use validate::validate_endpoint_ip;

use crate::builtin::rules::json::{default_to, keep, list, list_mut, object_mut, put, set, take, text};
use crate::builtin::rules::names::address::{Cidr, parse_lenient};
use crate::builtin::rules::names::dns1123_label;
use crate::builtin::rules::objects::default_pointer;
use crate::builtin::rules::{Env, Rules};
use crate::field::Path;
use serde_json::{Value, json};
use std::net::IpAddr;

const SPEC: Path<'static> = Path::of("spec");
const AFFINITY_SECONDS: i64 = 10_800;
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY: &str = "service.kubernetes.io/topology-mode";

pub(super) static RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status,
    validate: validate::validate,
    validate_update: update::validate_update,
    validate_status: validate::validate_status,
    warnings,
    name: dns1123_label,
};

fn kind(service: &Value) -> &str {
    text(&service["spec"], "type")
}

fn is_headless(service: &Value) -> bool {
    matches!(list(&service["spec"], "clusterIPs"), [only] if only == "None")
}

fn externally_accessible(service: &Value) -> bool {
    match kind(service) {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !list(&service["spec"], "externalIPs").is_empty(),
        _ => false,
    }
}

fn needs_health_check(service: &Value) -> bool {
    kind(service) == "LoadBalancer" && text(&service["spec"], "externalTrafficPolicy") == "Local"
}

fn default(object: &mut Value) {
    let Some(spec) = super::ensure_object(object, "spec") else { return };
    default_to(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => drop(take(spec, "sessionAffinityConfig")),
        "ClientIP" => {
            let timeout = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
            if timeout.is_null() {
                let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
                put(spec, "sessionAffinityConfig", config);
            }
        }
        _ => {}
    }
    default_to(spec, "type", "ClusterIP");
    for port in list_mut(spec, "ports") {
        default_to(port, "protocol", "TCP");
        let number = port["port"].as_i64().unwrap_or(0);
        match &port["targetPort"] {
            Value::Null => put(port, "targetPort", number),
            Value::Number(n) if n.as_i64() == Some(0) => put(port, "targetPort", number),
            Value::String(name) if name.is_empty() => put(port, "targetPort", number),
            _ => {}
        }
    }
    let accessible = externally_accessible(object);
    let Some(spec) = object_mut(object, "spec") else { return };
    if accessible {
        default_to(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(text(spec, "type"), "NodePort" | "LoadBalancer" | "ClusterIP") {
        default_pointer(spec, "internalTrafficPolicy", "Cluster");
    }
    if text(spec, "type") == "LoadBalancer" {
        default_to(spec, "allocateLoadBalancerNodePorts", true);
        default_ingress_modes(object);
    }
}

fn default_ingress_modes(object: &mut Value) {
    let Some(balancer) = object_mut(object, "status").and_then(|status| object_mut(status, "loadBalancer"))
    else {
        return;
    };
    for ingress in list_mut(balancer, "ingress") {
        if !text(ingress, "ip").is_empty() {
            default_to(ingress, "ipMode", "VIP");
        }
    }
}

fn prepare_create(object: &mut Value, _env: &Env<'_>) {
    put(object, "status", json!({"loadBalancer": {}}));
    drop_ignored(object);
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "status");
    update::drop_fields_of_old_type(new, old);
    drop_ignored(new);
}

/// The real server leaves this out of whatever it sends for a service that has no traffic of its own.
fn drop_ignored(object: &mut Value) {
    if kind(object) == "ExternalName"
        && let Some(spec) = object_mut(object, "spec")
    {
        take(spec, "internalTrafficPolicy");
    }
}

fn prepare_status(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "spec");
}

fn warnings(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let spec = &new["spec"];
    let mut out = Vec::new();
    if new["metadata"]["annotations"].get(HINTS).is_some() {
        out.push(format!("annotation {HINTS} is deprecated, please use {TOPOLOGY} instead"));
    }
    let external = !list(spec, "externalIPs").is_empty();
    let addresses = |out: &mut Vec<String>, field: &str| {
        for (index, address) in list(spec, field).iter().enumerate() {
            let path = SPEC.field(field);
            out.extend(address_warning(&path.index(index), address.as_str().unwrap_or("")));
        }
    };
    let headless = kind(new) == "ClusterIP" && text(spec, "clusterIP") == "None";
    if !matches!(text(spec, "clusterIP"), "" | "None") {
        addresses(&mut out, "clusterIPs");
    }
    if headless {
        if !text(spec, "loadBalancerIP").is_empty() {
            out.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if external {
            out.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if text(spec, "sessionAffinity") != "None" {
            out.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    addresses(&mut out, "externalIPs");
    let external_name = kind(new) == "ExternalName";
    if external && !headless && !external_name {
        out.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    out.extend(address_warning(&SPEC.field("loadBalancerIP"), text(spec, "loadBalancerIP")));
    for (index, range) in list(spec, "loadBalancerSourceRanges").iter().enumerate() {
        let path = SPEC.field("loadBalancerSourceRanges");
        out.extend(range_warning(&path.index(index), range.as_str().unwrap_or("")));
    }
    if external_name && external {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !external_name && !text(spec, "externalName").is_empty() {
        out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if set(spec, "trafficDistribution").is_some_and(|value| value == "PreferClose") {
        let sentence = "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
        out.push(sentence.to_owned());
    }
    out
}

/// The warning for an address in a spelling that some programs read differently.
pub(super) fn address_warning(path: &Path<'_>, value: &str) -> Option<String> {
    let address = parse_lenient(value)?;
    let plain = value.parse::<IpAddr>().ok().filter(|a| a.to_canonical() == *a);
    match plain {
        None => Some(format!(
            "{path}: non-standard IP address \"{value}\" is invalid: use \"{}\"",
            address.to_canonical()
        )),
        Some(IpAddr::V6(v6)) if v6.to_string() != value => Some(format!(
            "{path}: IPv6 address \"{value}\" should be in RFC 5952 canonical format (\"{v6}\")"
        )),
        Some(_) => None,
    }
}

/// The warning for a block in a spelling that some programs read differently.
pub(super) fn range_warning(path: &Path<'_>, value: &str) -> Option<String> {
    let block = Cidr::parse_lenient(value)?;
    let first = block.first();
    if first != block.address {
        let width = if first.is_ipv4() { 32 } else { 128 };
        return Some(format!(
            "{path}: CIDR value \"{value}\" is ambiguous in this context (should be \"{first}/{}\" or \"{}/{width}\"?)",
            block.prefix, block.address
        ));
    }
    let canonical = format!("{first}/{}", block.prefix);
    (first.is_ipv6() && canonical != value).then(|| {
        format!(
            "{path}: IPv6 CIDR value \"{value}\" should be in RFC 5952 canonical format (\"{canonical}\")"
        )
    })
}
