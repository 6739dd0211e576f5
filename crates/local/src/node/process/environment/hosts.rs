//! The hosts file of a pod: the names that a cluster's DNS would resolve. A process without rights cannot have them in its
//! resolver, so it is told where the file is.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::{Pod, Service};

use super::host_name;
use super::services::{Network, is_headless};

/// The file of a pod.
pub(crate) fn render_hosts(pod: &Pod, address: &str, network: &Network) -> String {
    let mut text = String::from("127.0.0.1 localhost\n");
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let spec = pod.spec.clone().unwrap_or_default();
    let (host, domain) = host_name(pod.metadata.name.as_deref().unwrap_or_default(), namespace, &spec);
    let _ = match domain {
        Some(domain) => writeln!(text, "{address} {host}.{domain} {host}"),
        None => writeln!(text, "{address} {host}"),
    };
    for alias in spec.host_aliases.iter().flatten() {
        let _ = writeln!(
            text,
            "{} {}",
            alias.ip,
            alias.hostnames.iter().flatten().cloned().collect::<Vec<_>>().join(" ")
        );
    }
    let mut services: Vec<&Service> = network.services.iter().collect();
    services.sort_by_key(|service| (&service.metadata.namespace, &service.metadata.name));
    for service in services {
        let names = names(service, namespace);
        if let Some(address) = network.address(service) {
            let _ = writeln!(text, "{address} {}", names.join(" "));
        }
        for (address, endpoint, _) in network.ready(service) {
            if is_headless(service) {
                let _ = writeln!(text, "{address} {}", names.join(" "));
            }
            if let Some(host) = endpoint.hostname.as_deref().filter(|host| !host.is_empty()) {
                let names: Vec<String> = names.iter().map(|name| format!("{host}.{name}")).collect();
                let _ = writeln!(text, "{address} {}", names.join(" "));
            }
        }
    }
    text
}

/// All names of a service as they are seen from a namespace, the longest first.
fn names(service: &Service, seen_from: &str) -> Vec<String> {
    let name = service.metadata.name.as_deref().unwrap_or_default();
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    let suffixes = [".svc.cluster.local", ".svc", ""];
    let mut names: Vec<String> =
        suffixes.iter().map(|suffix| format!("{name}.{namespace}{suffix}")).collect();
    if namespace == seen_from {
        names.push(name.to_owned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_those_that_dns_would_resolve() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "peer-0", "namespace": "shop"},
            "spec": {
                "hostname": "peer-0", "subdomain": "peers", "containers": [],
                "hostAliases": [{"ip": "10.9.9.9", "hostnames": ["old", "older"]}],
            },
        }))
        .unwrap();
        let text = render_hosts(&pod, "127.6.0.1", &super::super::services::tests::network());
        expect_test::expect![[r#"
            127.0.0.1 localhost
            127.6.0.1 peer-0.peers.shop.svc.cluster.local peer-0
            10.9.9.9 old older
            10.0.0.1 kubernetes.default.svc.cluster.local kubernetes.default.svc kubernetes.default
            10.0.0.9 far.other.svc.cluster.local far.other.svc far.other
            127.6.0.1 peers.shop.svc.cluster.local peers.shop.svc peers.shop peers
            127.6.0.1 peer-0.peers.shop.svc.cluster.local peer-0.peers.shop.svc peer-0.peers.shop peer-0.peers
            127.6.0.2 peers.shop.svc.cluster.local peers.shop.svc peers.shop peers
            127.6.0.2 peer-1.peers.shop.svc.cluster.local peer-1.peers.shop.svc peer-1.peers.shop peer-1.peers
            10.0.0.8 queue.shop.svc.cluster.local queue.shop.svc queue.shop queue
            127.5.0.2 web-db.shop.svc.cluster.local web-db.shop.svc web-db.shop web-db
        "#]]
        .assert_eq(&text);
    }
}
