//! Where services are reached. Nothing forwards a cluster IP here, so a service that has a ready process pod behind it is that
//! pod: its address, and the ports that it listens on. All others are their cluster IP, as in any cluster.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

/// The label by which an endpoint slice names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Where the API server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAddress {
    /// Its address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The services of a cluster and what is behind them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Network {
    /// Of all namespaces.
    pub(crate) services: Vec<Service>,
    /// Of all namespaces.
    pub(crate) slices: Vec<EndpointSlice>,
}

impl Network {
    /// The slices of a service.
    fn slices_of<'a>(&'a self, service: &'a Service) -> impl Iterator<Item = &'a EndpointSlice> {
        let name = service.metadata.name.as_deref();
        self.slices.iter().filter(move |slice| {
            let labels = slice.metadata.labels.as_ref();
            slice.metadata.namespace == service.metadata.namespace
                && labels.and_then(|labels| labels.get(SERVICE_NAME)).map(String::as_str) == name
        })
    }

    /// What is ready behind a service, by address.
    pub(super) fn ready<'a>(
        &'a self,
        service: &'a Service,
    ) -> Vec<(&'a str, &'a Endpoint, &'a EndpointSlice)> {
        let endpoints = self.slices_of(service).flat_map(|slice| {
            let endpoints = slice.endpoints.iter().flatten().filter(|endpoint| is_ready(endpoint));
            endpoints
                .filter_map(move |endpoint| Some((endpoint.addresses.first()?.as_str(), endpoint, slice)))
        });
        let mut endpoints: Vec<_> = endpoints.collect();
        endpoints.sort_by_key(|(address, ..)| *address);
        endpoints
    }

    /// The process pod that stands for a service.
    fn process<'a>(&'a self, service: &'a Service) -> Option<(&'a str, &'a EndpointSlice)> {
        let mut ready = self.ready(service).into_iter();
        ready.find(|(address, ..)| is_process(address)).map(|(address, _, slice)| (address, slice))
    }

    /// The address of a service, if it has one.
    pub(super) fn address<'a>(&'a self, service: &'a Service) -> Option<&'a str> {
        let own = cluster_ip(service)?;
        Some(self.process(service).map_or(own, |(address, _)| address))
    }

    /// The address and port at which a port of a service is reached.
    fn target(&self, service: &Service, port: &ServicePort) -> Option<(String, i32)> {
        let own = cluster_ip(service)?;
        let Some((address, slice)) = self.process(service) else { return Some((own.to_owned(), port.port)) };
        let name = port.name.as_deref().unwrap_or_default();
        let ports = slice.ports.iter().flatten();
        let listens = ports.into_iter().find(|port| port.name.as_deref().unwrap_or_default() == name);
        Some((address.to_owned(), listens.and_then(|port| port.port).unwrap_or(port.port)))
    }
}

/// The variables by which a container finds services: all of its namespace, unless it wants no links; the API server in any case.
pub(crate) fn service_variables(
    network: &Network,
    namespace: &str,
    links: bool,
    api: Option<&ApiAddress>,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let is_api = |service: &Service| {
        let metadata = &service.metadata;
        (metadata.namespace.as_deref(), metadata.name.as_deref()) == (Some("default"), Some("kubernetes"))
    };
    for service in &network.services {
        let linked = links && service.metadata.namespace.as_deref() == Some(namespace) && !is_api(service);
        if linked || (is_api(service) && api.is_none()) {
            let name = service.metadata.name.as_deref().unwrap_or_default();
            let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
            let ports = ports.filter_map(|port| Some((port, network.target(service, port)?)));
            add(&mut variables, name, &ports.collect::<Vec<_>>());
        }
    }
    if let Some(api) = api {
        let port = ServicePort { name: Some("https".into()), port: 443, ..ServicePort::default() };
        add(&mut variables, "kubernetes", &[(&port, (api.host.clone(), api.port.into()))]);
    }
    variables
}

/// Adds the variables of one service, given where each of its ports is reached.
fn add(variables: &mut BTreeMap<String, String>, service: &str, ports: &[(&ServicePort, (String, i32))]) {
    let prefix = variable_name(service);
    let mut set = |name: String, value: String| variables.insert(name, value);
    if let Some((_, (host, number))) = ports.first() {
        set(format!("{prefix}_SERVICE_HOST"), host.clone());
        set(format!("{prefix}_SERVICE_PORT"), number.to_string());
    }
    for (index, (port, (host, number))) in ports.iter().enumerate() {
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            set(format!("{prefix}_SERVICE_PORT_{}", variable_name(name)), number.to_string());
        }
        let protocol = port.protocol.as_deref().filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
        let (lower, upper) = (protocol.to_lowercase(), protocol.to_uppercase());
        let url = format!("{lower}://{}:{number}", bracketed(host));
        if index == 0 {
            set(format!("{prefix}_PORT"), url.clone());
        }
        let prefix = format!("{prefix}_PORT_{}_{upper}", port.port);
        set(prefix.clone(), url);
        set(format!("{prefix}_PROTO"), lower);
        set(format!("{prefix}_PORT"), number.to_string());
        set(format!("{prefix}_ADDR"), host.clone());
    }
}

fn variable_name(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// The cluster IP of a service, unless it is headless or another name.
fn cluster_ip(service: &Service) -> Option<&str> {
    let ip = service.spec.as_ref()?.cluster_ip.as_deref()?;
    (!ip.is_empty() && ip != "None").then_some(ip)
}

/// Whether a service has no address on purpose.
pub(super) fn is_headless(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None")
}

/// Ready, or nobody says that it is not.
fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false)
}

/// Whether an address is one that process pods have.
fn is_process(address: &str) -> bool {
    address
        .parse::<Ipv4Addr>()
        .is_ok_and(|address| address.is_loopback() && address.octets()[..3] != [127, 0, 0])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn network() -> Network {
        let slice = |namespace: &str, service: &str, port: (&str, i32), endpoints: serde_json::Value| {
            serde_json::from_value(json!({
                "metadata": {"name": format!("{service}-x"), "namespace": namespace, "labels": {SERVICE_NAME: service}},
                "addressType": "IPv4", "endpoints": endpoints, "ports": [{"name": port.0, "port": port.1}],
            }))
            .unwrap()
        };
        let service = |namespace: &str, name: &str, ip: &str, ports: serde_json::Value| {
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": ip, "ports": ports},
            }))
            .unwrap()
        };
        Network {
            services: vec![
                service("default", "kubernetes", "10.0.0.1", json!([{"name": "https", "port": 443}])),
                service("shop", "web-db", "10.0.0.7", json!([{"name": "sql", "port": 5432}])),
                service("shop", "queue", "10.0.0.8", json!([{"port": 80, "protocol": "UDP"}])),
                service("shop", "peers", "None", json!([{"port": 7000}])),
                service("other", "far", "10.0.0.9", json!([{"port": 1}])),
            ],
            slices: vec![
                slice(
                    "shop",
                    "web-db",
                    ("sql", 15432),
                    json!([
                        {"addresses": ["10.1.0.9"], "conditions": {"ready": true}},
                        {"addresses": ["127.5.0.2"], "conditions": {"ready": true}},
                        {"addresses": ["127.5.0.1"], "conditions": {"ready": false}},
                    ]),
                ),
                slice("shop", "queue", ("", 8080), json!([{"addresses": ["10.1.0.2"]}])),
                slice(
                    "shop",
                    "peers",
                    ("", 7000),
                    json!([
                        {"addresses": ["127.6.0.2"], "hostname": "peer-1", "conditions": {"ready": true}},
                        {"addresses": ["127.6.0.1"], "hostname": "peer-0", "conditions": {"ready": true}},
                        {"addresses": ["127.6.0.3"], "hostname": "peer-2", "conditions": {"ready": false}},
                    ]),
                ),
                slice("other", "web-db", ("sql", 1), json!([{"addresses": ["127.5.0.0"]}])),
            ],
        }
    }

    fn check(links: bool, api: Option<&ApiAddress>, expected: &expect_test::Expect) {
        let variables = service_variables(&network(), "shop", links, api);
        let lines: String = variables.iter().flat_map(|(name, value)| [name, "=", value, "\n"]).collect();
        expected.assert_eq(&lines);
    }

    #[test]
    fn ready_process_stands_for_its_service() {
        check(
            true,
            None,
            &expect_test::expect![[r#"
            KUBERNETES_PORT=tcp://10.0.0.1:443
            KUBERNETES_PORT_443_TCP=tcp://10.0.0.1:443
            KUBERNETES_PORT_443_TCP_ADDR=10.0.0.1
            KUBERNETES_PORT_443_TCP_PORT=443
            KUBERNETES_PORT_443_TCP_PROTO=tcp
            KUBERNETES_SERVICE_HOST=10.0.0.1
            KUBERNETES_SERVICE_PORT=443
            KUBERNETES_SERVICE_PORT_HTTPS=443
            QUEUE_PORT=udp://10.0.0.8:80
            QUEUE_PORT_80_UDP=udp://10.0.0.8:80
            QUEUE_PORT_80_UDP_ADDR=10.0.0.8
            QUEUE_PORT_80_UDP_PORT=80
            QUEUE_PORT_80_UDP_PROTO=udp
            QUEUE_SERVICE_HOST=10.0.0.8
            QUEUE_SERVICE_PORT=80
            WEB_DB_PORT=tcp://127.5.0.2:15432
            WEB_DB_PORT_5432_TCP=tcp://127.5.0.2:15432
            WEB_DB_PORT_5432_TCP_ADDR=127.5.0.2
            WEB_DB_PORT_5432_TCP_PORT=15432
            WEB_DB_PORT_5432_TCP_PROTO=tcp
            WEB_DB_SERVICE_HOST=127.5.0.2
            WEB_DB_SERVICE_PORT=15432
            WEB_DB_SERVICE_PORT_SQL=15432
        "#]],
        );
    }

    #[test]
    fn without_links_only_the_api_server_is_told() {
        let api = ApiAddress { host: "127.0.0.1".into(), port: 6443 };
        check(
            false,
            Some(&api),
            &expect_test::expect![[r#"
            KUBERNETES_PORT=tcp://127.0.0.1:6443
            KUBERNETES_PORT_443_TCP=tcp://127.0.0.1:6443
            KUBERNETES_PORT_443_TCP_ADDR=127.0.0.1
            KUBERNETES_PORT_443_TCP_PORT=6443
            KUBERNETES_PORT_443_TCP_PROTO=tcp
            KUBERNETES_SERVICE_HOST=127.0.0.1
            KUBERNETES_SERVICE_PORT=6443
            KUBERNETES_SERVICE_PORT_HTTPS=6443
        "#]],
        );
    }
}
