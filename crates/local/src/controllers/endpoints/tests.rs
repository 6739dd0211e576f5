//! Which pods are behind a Service, and how that is told.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::slices::allot;
use super::subsets::truncate;
use super::*;

fn service(spec: &Value) -> Service {
    let mut spec = spec.clone();
    if spec["clusterIP"].is_null() {
        spec["clusterIP"] = json!("10.0.0.1");
    }
    from_value(
        json!({"metadata": {"name": "web", "namespace": "ns", "labels": {"team": "red"}}, "spec": spec}),
    )
    .unwrap()
}

/// A pod that is ready at `10.1.0.NUMBER`.
fn pod(number: u8) -> Value {
    json!({
        "metadata": {"name": format!("web-{number}"), "namespace": "ns", "uid": format!("uid-{number}")},
        "spec": {"nodeName": "one", "containers": [
            {"name": "main", "ports": [{"name": "http", "containerPort": 8000 + i32::from(number % 2)}]},
        ]},
        "status": {
            "podIP": format!("10.1.0.{number}"),
            "podIPs": [{"ip": format!("10.1.0.{number}")}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn with(mut pod: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    pod.pointer_mut(parent).unwrap()[name] = value;
    pod
}

fn unready(pod: Value) -> Value {
    with(pod, "/status/conditions", json!([]))
}

fn backends(service: &Service, pods: &[Value]) -> Vec<Backend> {
    let node = json!({"metadata": {"name": "one", "labels": {ZONE: "a"}}});
    let nodes = Nodes::from([("one".to_owned(), from_value(node).unwrap())]);
    let pods = pods.iter().map(|pod| from_value::<Pod>(pod.clone()).unwrap());
    pods.filter_map(|pod| Backend::new(service, &pod, node_of(&pod, &nodes))).collect()
}

fn slices_of(service: &Service, pods: &[Value], existing: &[EndpointSlice]) -> Vec<EndpointSlice> {
    slices::plan_slices(service, &backends(service, pods), existing)
}

/// Slices and subsets, a line for each.
fn told(service: &Service, pods: &[Value]) -> String {
    let mut lines = Vec::new();
    for slice in slices_of(service, pods, &[]) {
        let ports: Vec<_> = slice
            .ports
            .iter()
            .flatten()
            .map(|port| {
                let name = port.name.as_deref().unwrap_or_default();
                format!("{name}:{}/{}", port.port.unwrap(), port.protocol.as_deref().unwrap())
            })
            .collect();
        let endpoints: Vec<_> = slice
            .endpoints
            .iter()
            .flatten()
            .map(|endpoint| {
                let conditions = endpoint.conditions.clone().unwrap();
                let mut words = vec![endpoint.addresses.join("+")];
                for (is, word) in [
                    (conditions.ready, "ready"),
                    (conditions.serving, "serving"),
                    (conditions.terminating, "terminating"),
                ] {
                    words.extend((is == Some(true)).then(|| word.to_owned()));
                }
                words.extend(endpoint.hostname.clone());
                words.join(" ")
            })
            .collect();
        let line = format!("{} [{}] {}", slice.address_type, ports.join(","), endpoints.join("; "));
        lines.push(line.trim_end().to_owned());
    }
    let endpoints = subsets::plan_endpoints(service, &backends(service, pods));
    for subset in endpoints.subsets.iter().flatten() {
        let ports: Vec<_> = subset.ports.iter().flatten().map(|port| port.port.to_string()).collect();
        let listed = |addresses: &Option<Vec<_>>| {
            let addresses = addresses.iter().flatten();
            let ips: Vec<String> = addresses
                .map(|address: &k8s_openapi::api::core::v1::EndpointAddress| address.ip.clone())
                .collect();
            ips.join(",")
        };
        let (ready, unready) = (listed(&subset.addresses), listed(&subset.not_ready_addresses));
        lines.push(format!("subset [{}] {ready} | {unready}", ports.join(",")).trim_end().to_owned());
    }
    lines.join("\n")
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "written in place")]
fn check(spec: Value, pods: &[Value], expected: Expect) {
    expected.assert_eq(&told(&service(&spec), pods));
}

fn plain() -> Value {
    json!({"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}]})
}

#[test]
fn ready_and_unready_pods_are_told_apart() {
    check(
        plain(),
        &[pod(1), unready(pod(2))],
        expect![[r#"
        IPv4 [http:8080/TCP] 10.1.0.1 ready serving; 10.1.0.2
        subset [8080] 10.1.0.1 | 10.1.0.2"#]],
    );
}

#[test]
fn pods_that_have_ended_or_have_no_address_are_behind_nothing() {
    let ended = with(pod(1), "/status/phase", json!("Succeeded"));
    let homeless = with(with(pod(2), "/status/podIPs", json!(null)), "/status/podIP", json!(null));
    check(plain(), &[ended, homeless], expect!["IPv4 []"]);
}

#[test]
fn a_pod_that_goes_is_terminating_and_no_longer_in_endpoints() {
    let going = with(pod(1), "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    check(
        plain(),
        &[going.clone(), pod(2)],
        expect![[r#"
        IPv4 [http:8080/TCP] 10.1.0.1 serving terminating; 10.1.0.2 ready serving
        subset [8080] 10.1.0.2 |"#]],
    );
    let mut publishing = plain();
    publishing["publishNotReadyAddresses"] = json!(true);
    check(
        publishing,
        &[unready(going)],
        expect![[r#"
        IPv4 [http:8080/TCP] 10.1.0.1 ready terminating
        subset [8080] 10.1.0.1 |"#]],
    );
}

#[test]
fn a_named_port_is_resolved_by_each_pod_for_itself() {
    let mut spec = plain();
    spec["ports"][0]["targetPort"] = json!("http");
    spec["ports"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "metrics", "port": 9000, "protocol": "TCP", "targetPort": 9000}));
    let without = with(pod(4), "/spec/containers/0/ports", json!([]));
    check(
        spec,
        &[pod(1), pod(2), pod(3), without],
        expect![[r#"
        IPv4 [http:8000/TCP,metrics:9000/TCP] 10.1.0.2 ready serving
        IPv4 [http:8001/TCP,metrics:9000/TCP] 10.1.0.1 ready serving; 10.1.0.3 ready serving
        IPv4 [metrics:9000/TCP] 10.1.0.4 ready serving
        subset [8000] 10.1.0.2 |
        subset [8001] 10.1.0.1,10.1.0.3 |
        subset [9000] 10.1.0.1,10.1.0.2,10.1.0.3,10.1.0.4 |"#]],
    );
}

#[test]
fn a_named_port_may_be_a_sidecars_but_not_that_of_a_container_that_ends() {
    let mut spec = plain();
    spec["ports"][0]["targetPort"] = json!("admin");
    let starting = |policy: Value| json!([{"name": "side", "restartPolicy": policy, "ports": [{"name": "admin", "containerPort": 7}]}]);
    let sidecar = with(pod(1), "/spec/initContainers", starting(json!("Always")));
    let ending = with(pod(2), "/spec/initContainers", starting(json!(null)));
    check(
        spec,
        &[sidecar, ending],
        expect![[r#"
        IPv4 [] 10.1.0.2 ready serving
        IPv4 [http:7/TCP] 10.1.0.1 ready serving
        subset [7] 10.1.0.1 |"#]],
    );
}

#[test]
fn a_headless_service_needs_no_ports_and_knows_its_pods_by_name() {
    let named = with(with(pod(1), "/spec/hostname", json!("web-1")), "/spec/subdomain", json!("web"));
    let elsewhere = with(with(pod(2), "/spec/hostname", json!("web-2")), "/spec/subdomain", json!("db"));
    let spec = json!({"selector": {"app": "web"}, "clusterIP": "None"});
    check(
        spec.clone(),
        &[named, elsewhere],
        expect![[r#"
        IPv4 [] 10.1.0.1 ready serving web-1; 10.1.0.2 ready serving
        subset [] 10.1.0.1,10.1.0.2 |"#]],
    );
    let slice = slices_of(&service(&spec), &[], &[]).remove(0);
    assert_eq!(
        serde_json::to_value(slice.metadata.labels).unwrap(),
        json!({
            "team": "red",
            "service.kubernetes.io/headless": "",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        })
    );
}

#[test]
fn each_family_of_addresses_has_slices_of_its_own() {
    let mut spec = plain();
    spec["ipFamilies"] = json!(["IPv6", "IPv4"]);
    let both = with(pod(1), "/status/podIPs", json!([{"ip": "10.1.0.1"}, {"ip": "fd00::0001"}]));
    check(
        spec,
        &[both],
        expect![[r#"
        IPv6 [http:8080/TCP] fd00::1 ready serving
        IPv4 [http:8080/TCP] 10.1.0.1 ready serving
        subset [8080] fd00::1 |"#]],
    );
}

#[test]
fn nodes_and_zones_are_told_and_pods_on_lost_nodes_left_out_of_slices() {
    let lost = with(pod(2), "/spec/nodeName", json!("gone"));
    let mut service = service(&plain());
    let slice = slices_of(&service, &[pod(1), lost.clone()], &[]).remove(0);
    let places: Vec<_> =
        slice.endpoints.iter().flatten().map(|one| (one.node_name.as_deref(), one.zone.as_deref())).collect();
    assert_eq!(places, [(Some("one"), Some("a"))]);
    service.spec.as_mut().unwrap().publish_not_ready_addresses = Some(true);
    let slice = slices_of(&service, &[lost], &[]).remove(0);
    assert_eq!(slice.endpoints.unwrap()[0].node_name.as_deref(), Some("gone"));
}

#[test]
fn only_services_that_select_pods_are_filled() {
    assert_eq!(selector(&service(&plain())).as_deref(), Some("app=web"));
    for spec in [
        json!({"ports": []}),
        json!({"selector": {}}),
        json!({"selector": {"app": "web"}, "type": "ExternalName"}),
    ] {
        assert_eq!(selector(&service(&spec)), None, "{spec}");
    }
}

#[test]
fn a_slice_that_is_no_longer_needed_becomes_one_that_is() {
    let mut spec = plain();
    let before = slices_of(&service(&spec), &[pod(1)], &[]);
    spec["ports"][0]["targetPort"] = json!(9090);
    let after = slices_of(&service(&spec), &[pod(1)], &before);
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].metadata.name, before[0].metadata.name);
    assert_eq!(after[0].ports.as_ref().unwrap()[0].port, Some(9090));
    let empty = slices_of(&service(&spec), &[], &after);
    assert_eq!(empty[0].metadata.name, before[0].metadata.name);
    assert!(empty[0].endpoints.as_ref().unwrap().is_empty());
}

#[test]
fn too_many_addresses_are_cut_from_those_that_are_not_ready() {
    let mut service = service(&plain());
    service.metadata.namespace = Some("ns".into());
    let pods: Vec<_> =
        (0..6).map(|number| if number < 3 { unready(pod(number)) } else { pod(number) }).collect();
    let endpoints = subsets::plan_endpoints(&service, &backends(&service, &pods));
    let mut subsets = endpoints.subsets.unwrap();
    assert!(!truncate(&mut subsets.clone(), 6));
    assert!(truncate(&mut subsets, 4));
    assert_eq!(subsets[0].addresses.as_ref().unwrap().len(), 3);
    assert_eq!(subsets[0].not_ready_addresses.as_ref().unwrap().len(), 1);
}

proptest! {
    #[test]
    fn every_endpoint_is_in_one_slice_and_stays_in_it(
        before in prop::collection::vec(prop::collection::vec("[a-h]", 0..5), 0..4),
        wanted in prop::collection::btree_set("[a-j]", 0..9),
        max in 1_usize..4,
    ) {
        let before: Vec<_> = before.into_iter().enumerate().map(|(at, uids)| (format!("slice-{at}"), uids)).collect();
        let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
        let after = allot(&before, &wanted, max);
        let mut members: Vec<&str> = after.iter().flat_map(|(_, members)| members.clone()).collect();
        members.sort_unstable();
        prop_assert_eq!(members, wanted.iter().copied().collect::<Vec<_>>());
        for (name, members) in &after {
            prop_assert!(!members.is_empty() && members.len() <= max);
            prop_assert!(name.is_none() || before.iter().any(|(known, _)| Some(known) == name.as_ref()));
        }
        // What was in a slice with room to spare is still in it, unless it was in an earlier one too.
        for (at, (name, uids)) in before.iter().enumerate().filter(|(_, (_, uids))| uids.len() <= max) {
            for uid in uids.iter().filter(|uid| wanted.contains(uid.as_str())) {
                let is_elsewhere = before[..at].iter().any(|(_, others)| others.contains(uid));
                let stays = after.iter().any(|(after, members)| after.as_ref() == Some(name) && members.contains(&uid.as_str()));
                prop_assert!(stays || is_elsewhere, "{uid} left {name}");
            }
        }
        // Placed like this, nothing more is moved.
        let named: Vec<_> = after.iter().enumerate().map(|(at, (name, members))| {
            let name = name.clone().unwrap_or_else(|| format!("new-{at}"));
            (name, members.iter().map(|uid| (*uid).to_owned()).collect::<Vec<_>>())
        }).collect();
        let again = allot(&named, &wanted, max);
        prop_assert_eq!(again.len(), named.len());
        for ((name, members), (known, uids)) in again.iter().zip(&named) {
            prop_assert_eq!(name.as_ref(), Some(known));
            prop_assert_eq!(members, uids);
        }
    }
}
