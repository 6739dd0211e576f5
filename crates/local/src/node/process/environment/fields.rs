//! The downward API: what a container can be told about its own pod.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use mainstay::diff::quantity_in_billionths;

/// What there is to tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Downward<'a> {
    /// The pod.
    pub(crate) pod: &'a Pod,
    /// Its address.
    pub(crate) address: &'a str,
    /// The node's address.
    pub(crate) host: &'a str,
    /// What the node has: the limit of containers that have none.
    pub(crate) allocatable: &'a BTreeMap<String, Quantity>,
}

impl Downward<'_> {
    /// The value of a field, as `fieldRef` names it. Labels and annotations that are not there are empty.
    pub(crate) fn field(&self, path: &str) -> Result<String, String> {
        let metadata = &self.pod.metadata;
        let spec = self.pod.spec.as_ref();
        if let Some((map, key)) = subscript(path) {
            let map = match map {
                "metadata.labels" => &metadata.labels,
                "metadata.annotations" => &metadata.annotations,
                _ => return Err(format!("fieldPath {path:?} does not support subscript")),
            };
            return Ok(map.as_ref().and_then(|map| map.get(key)).cloned().unwrap_or_default());
        }
        Ok(match path {
            "metadata.name" => metadata.name.clone().unwrap_or_default(),
            "metadata.namespace" => metadata.namespace.clone().unwrap_or_default(),
            "metadata.uid" => metadata.uid.clone().unwrap_or_default(),
            "metadata.labels" => listed(metadata.labels.as_ref()),
            "metadata.annotations" => listed(metadata.annotations.as_ref()),
            "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            "spec.serviceAccountName" => {
                spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_default()
            }
            "status.hostIP" | "status.hostIPs" => self.host.to_owned(),
            "status.podIP" | "status.podIPs" => self.address.to_owned(),
            _ => return Err(format!("unsupported fieldPath: {path}")),
        })
    }

    /// What a container may use, as `resourceFieldRef` names it, rounded up to whole divisors.
    pub(crate) fn resource(
        &self,
        selector: &ResourceFieldSelector,
        own: Option<&Container>,
    ) -> Result<String, String> {
        let named = selector.container_name.as_deref().filter(|name| !name.is_empty());
        let container = match named {
            Some(name) => self.container(name).ok_or_else(|| format!("container {name} not found"))?,
            None => own.ok_or("no container is named")?,
        };
        let unsupported = || format!("unsupported container resource : {}", selector.resource);
        let (side, resource) = selector.resource.split_once('.').ok_or_else(unsupported)?;
        let known = matches!(resource, "cpu" | "memory" | "ephemeral-storage");
        if !(known || resource.starts_with("hugepages-")) {
            return Err(unsupported());
        }
        let resources = container.resources.as_ref();
        let amount = match side {
            "limits" => {
                let limit = resources.and_then(|r| r.limits.as_ref()).and_then(|all| nanos(all, resource));
                limit
                    .filter(|nanos| *nanos != 0)
                    .or_else(|| known.then(|| nanos(self.allocatable, resource)).flatten())
            }
            "requests" => resources.and_then(|r| r.requests.as_ref()).and_then(|all| nanos(all, resource)),
            _ => return Err(unsupported()),
        };
        let divisor = selector.divisor.as_ref().and_then(|divisor| quantity_in_billionths(&divisor.0));
        let divisor = divisor.filter(|divisor| *divisor > 0).unwrap_or(ONE);
        let amount = amount.unwrap_or_default();
        Ok((amount / divisor + i128::from(amount % divisor > 0)).to_string())
    }

    fn container(&self, name: &str) -> Option<&Container> {
        find_container(self.pod, name)
    }
}

/// One, in billionths.
const ONE: i128 = 1_000_000_000;

fn nanos(all: &BTreeMap<String, Quantity>, resource: &str) -> Option<i128> {
    all.get(resource).and_then(|quantity| quantity_in_billionths(&quantity.0))
}

/// A container of a pod, or one that runs before it.
pub(crate) fn find_container<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    all.into_iter().find(|container| container.name == name)
}

/// `metadata.labels['app']` as map and key.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(map, _)| !map.is_empty())
}

/// A map as volumes have it: `key="value"`, one to a line.
fn listed(map: Option<&BTreeMap<String, String>>) -> String {
    let lines = map.into_iter().flatten().map(|(key, value)| format!("{key}={}", quoted(value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A string in quotes, as Go writes it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            // Writing to a String cannot fail.
            char if char.is_ascii_control() => drop(write!(out, "\\x{:02x}", u32::from(char))),
            char if char.is_control() => drop(write!(out, "\\u{:04x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": "web-0", "namespace": "shop", "uid": "u1",
                "labels": {"app": "web", "tier": "front"},
                "annotations": {"example.dev/note": "two\nlines \"quoted\""},
            },
            "spec": {
                "nodeName": "node-1", "serviceAccountName": "runner",
                "containers": [
                    {"name": "main", "resources": {
                        "limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"cpu": "250m"},
                    }},
                    {"name": "side"},
                ],
            },
        }))
        .unwrap()
    }

    fn with<T>(check: impl FnOnce(&Downward<'_>) -> T) -> T {
        let pod = pod();
        let allocatable =
            [("cpu".to_owned(), Quantity("4".into())), ("memory".to_owned(), Quantity("1Gi".into()))];
        let allocatable = allocatable.into();
        check(&Downward { pod: &pod, address: "127.4.5.6", host: "127.0.0.1", allocatable: &allocatable })
    }

    #[test]
    fn fields_of_the_pod_are_told() {
        with(|downward| {
            for (path, expected) in [
                ("metadata.name", "web-0"),
                ("metadata.namespace", "shop"),
                ("metadata.uid", "u1"),
                ("metadata.labels['tier']", "front"),
                ("metadata.labels['absent']", ""),
                ("metadata.annotations['example.dev/note']", "two\nlines \"quoted\""),
                ("metadata.labels", "app=\"web\"\ntier=\"front\""),
                ("metadata.annotations", "example.dev/note=\"two\\nlines \\\"quoted\\\"\""),
                ("spec.nodeName", "node-1"),
                ("spec.serviceAccountName", "runner"),
                ("status.hostIP", "127.0.0.1"),
                ("status.hostIPs", "127.0.0.1"),
                ("status.podIP", "127.4.5.6"),
                ("status.podIPs", "127.4.5.6"),
            ] {
                assert_eq!(downward.field(path).as_deref(), Ok(expected), "{path}");
            }
        });
    }

    #[test]
    fn other_fields_are_refused_by_name() {
        with(|downward| {
            assert_eq!(downward.field("spec.hostname"), Err("unsupported fieldPath: spec.hostname".into()));
            let refused = downward.field("metadata.name['x']").unwrap_err();
            assert_eq!(refused, "fieldPath \"metadata.name['x']\" does not support subscript");
        });
    }

    fn check(container: Option<&str>, resource: &str, divisor: &str, expected: Result<&str, &str>) {
        let selector = ResourceFieldSelector {
            container_name: container.map(Into::into),
            resource: resource.into(),
            divisor: (!divisor.is_empty()).then(|| Quantity(divisor.into())),
        };
        with(|downward| {
            let own = find_container(downward.pod, "main");
            let value = downward.resource(&selector, own);
            let value = value.as_ref().map(String::as_str).map_err(String::as_str);
            assert_eq!(value, expected, "{selector:?}");
        });
    }

    #[test]
    fn resources_are_rounded_up_to_their_divisor() {
        check(None, "limits.cpu", "", Ok("2"));
        check(None, "limits.cpu", "1m", Ok("1500"));
        check(None, "requests.cpu", "0", Ok("1"));
        check(None, "limits.memory", "1Mi", Ok("64"));
        check(None, "limits.memory", "1Gi", Ok("1"));
        check(None, "requests.memory", "", Ok("0"));
    }

    #[test]
    fn container_without_limits_has_the_nodes() {
        check(Some("side"), "limits.cpu", "", Ok("4"));
        check(Some("side"), "limits.memory", "1Mi", Ok("1024"));
        check(Some("side"), "limits.hugepages-2Mi", "", Ok("0"));
        check(Some("absent"), "limits.cpu", "", Err("container absent not found"));
        check(None, "limits.gpu", "", Err("unsupported container resource : limits.gpu"));
        check(None, "cpu", "", Err("unsupported container resource : cpu"));
    }
}
