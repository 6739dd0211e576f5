//! Services, endpoints, ingresses, policies.

use super::{AGE, Builtin, NAME, Row, SELECTOR, count_of, list_of, text, text_of};
use serde_json::Value;
use std::collections::BTreeSet;

/// How many items a cell names before it counts the rest.
const SHOWN_MAX: usize = 3;

fn texts(list: &[Value]) -> Vec<&str> {
    list.iter().filter_map(Value::as_str).collect()
}

/// `a,b,c + 2 more...`
fn shortened(items: &[String]) -> String {
    let shown = items[..items.len().min(SHOWN_MAX)].join(",");
    match items.len().checked_sub(SHOWN_MAX) {
        Some(more) if more > 0 => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

fn or_unset(text: String) -> Value {
    if text.is_empty() { "<unset>".into() } else { text.into() }
}

/// Addresses of a load balancer, sorted.
fn balancers(row: &Row<'_>) -> Vec<String> {
    let mut addresses = BTreeSet::new();
    for ingress in row.list("status.loadBalancer.ingress") {
        let (ip, host) = (text_of(ingress, "ip"), text_of(ingress, "hostname"));
        let address = if ip.is_empty() { host } else { ip };
        if !address.is_empty() {
            addresses.insert(address.to_owned());
        }
    }
    addresses.into_iter().collect()
}

pub(super) static SERVICE: Builtin = Builtin::new(
    &[NAME, text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)"), AGE, SELECTOR],
    |row| {
        let cluster_ip = row.list("spec.clusterIPs").first().and_then(Value::as_str).unwrap_or("<none>");
        let ports = row.list("spec.ports").iter().map(|port| {
            let (number, protocol) = (count_of(port, "port"), text_of(port, "protocol"));
            match count_of(port, "nodePort") {
                node_port if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        });
        let ports = ports.collect::<Vec<_>>().join(",");
        vec![
            row.name().into(),
            row.text("spec.type").into(),
            cluster_ip.into(),
            external_ip(row).into(),
            if ports.is_empty() { "<none>".into() } else { ports.into() },
            row.age(),
            row.labels("spec.selector"),
        ]
    },
);

fn external_ip(row: &Row<'_>) -> String {
    let external = texts(row.list("spec.externalIPs")).join(",");
    match row.text("spec.type") {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external,
        "LoadBalancer" => {
            let mut addresses = balancers(row);
            if !external.is_empty() {
                addresses.push(external);
            }
            if addresses.is_empty() { "<pending>".to_owned() } else { addresses.join(",") }
        }
        "ExternalName" => row.text("spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

pub(super) static ENDPOINTS: Builtin =
    Builtin::new(&[NAME, text("Endpoints"), AGE], |row| {
        let subsets = row.list("subsets");
        let mut found = Vec::new();
        for subset in subsets {
            let addresses = list_of(subset, "addresses").iter().map(|address| text_of(address, "ip"));
            let ports = list_of(subset, "ports");
            if ports.is_empty() {
                found.extend(addresses.map(ToOwned::to_owned));
                continue;
            }
            for port in ports {
                let port = count_of(port, "port");
                found.extend(addresses.clone().map(|ip| {
                    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
                }));
            }
        }
        let endpoints = if subsets.is_empty() { "<none>".to_owned() } else { shortened(&found) };
        vec![row.name().into(), endpoints.into(), row.age()]
    });

pub(super) static ENDPOINT_SLICE: Builtin =
    Builtin::new(&[NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE], |row| {
        let ports: Vec<String> = row
            .list("ports")
            .iter()
            .map(|port| match (port.get("port").and_then(Value::as_i64), port.get("name")) {
                (Some(number), _) => number.to_string(),
                (None, Some(Value::String(name))) => name.clone(),
                _ => "*".to_owned(),
            })
            .collect();
        let endpoints = row.list("endpoints").iter().flat_map(|endpoint| list_of(endpoint, "addresses"));
        let endpoints: Vec<String> = endpoints.filter_map(Value::as_str).map(ToOwned::to_owned).collect();
        vec![
            row.name().into(),
            row.text("addressType").into(),
            or_unset(shortened(&ports)),
            or_unset(shortened(&endpoints)),
            row.age(),
        ]
    });

pub(super) static NETWORK_POLICY: Builtin = Builtin::new(&[NAME, text("Pod-Selector"), AGE], |row| {
    vec![row.name().into(), row.selector("spec.podSelector", "<none>", "<error>"), row.age()]
});

pub(super) static INGRESS: Builtin =
    Builtin::new(&[NAME, text("Class"), text("Hosts"), text("Address"), text("Ports"), AGE], |row| {
        let class = row.at("spec.ingressClassName").and_then(Value::as_str).unwrap_or("<none>");
        let ports = if row.list("spec.tls").is_empty() { "80" } else { "80, 443" };
        vec![
            row.name().into(),
            class.into(),
            hosts(row.list("spec.rules")).into(),
            balancers(row).join(",").into(),
            ports.into(),
            row.age(),
        ]
    });

/// Rules beyond the third host are counted, with or without a host.
fn hosts(rules: &[Value]) -> String {
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == SHOWN_MAX;
        let host = text_of(rule, "host");
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (_, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN_MAX),
        _ => shown.join(","),
    }
}

pub(super) static INGRESS_CLASS: Builtin =
    Builtin::new(&[NAME, text("Controller"), text("Parameters"), AGE], |row| {
        let is_default = row.annotation("ingressclass.kubernetes.io/is-default-class") == Some("true");
        let suffix = if is_default { " (default)" } else { "" };
        let parameters = if row.map("spec.parameters").is_some() {
            let group = row.at("spec.parameters.apiGroup").and_then(Value::as_str);
            let group = group.map(|group| format!(".{group}")).unwrap_or_default();
            format!("{}{group}/{}", row.text("spec.parameters.kind"), row.text("spec.parameters.name"))
        } else {
            "<none>".to_owned()
        };
        vec![
            format!("{}{suffix}", row.name()).into(),
            row.text("spec.controller").into(),
            parameters.into(),
            row.age(),
        ]
    });
