//! Where pods go, and what is said of those that go nowhere.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::resources::{Amounts, allocatable, lacking, requests, used};
use super::*;

fn node(name: &str, cpu: &str, more: &Value) -> Node {
    let mut node = json!({
        "metadata": {"name": name, "labels": {"disk": "ssd"}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "3", "ephemeral-storage": "1Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    for (field, value) in more.as_object().unwrap() {
        node["spec"][field] = value.clone();
    }
    from_value(node).unwrap()
}

fn pod(name: &str, cpu: &str, more: &Value) -> Pod {
    let container = json!({"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}});
    let mut spec = json!({"containers": [container]});
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    from_value(
        json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}")}, "spec": spec}),
    )
    .unwrap()
}

fn placed(pod: &Pod) -> Placed {
    from_value(json!(pod)).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "written in place")]
fn world(nodes: Vec<Node>, pods: Vec<Pod>) -> World {
    World { nodes, pods: pods.iter().map(placed).collect(), ..World::default() }
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "written in place")]
fn check(pod: &Pod, world: &World, expected: Expect) {
    let told = match decide(pod, world) {
        Decision::Bind(node) => format!("to {node}"),
        Decision::Await { node, claims } => format!("to {node} once {} have volumes", claims.join(", ")),
        Decision::Unschedulable(message) => message,
    };
    expected.assert_eq(&told);
}

#[test]
fn the_node_with_the_most_left_is_taken_and_of_equals_the_first() {
    let new = pod("new", "500m", &json!({}));
    let nodes = || vec![node("b", "2", &json!({})), node("a", "2", &json!({}))];
    check(&new, &world(nodes(), vec![]), expect!["to a"]);
    let there = pod("there", "500m", &json!({"nodeName": "a"}));
    check(&new, &world(nodes(), vec![there]), expect!["to b"]);
    check(&new, &world(vec![], vec![]), expect!["no nodes available to schedule pods"]);
}

#[test]
fn what_pods_ask_for_is_taken_from_what_the_node_has() {
    let one = || vec![node("one", "1", &json!({}))];
    let on = |name: &str, cpu: &str| pod(name, cpu, &json!({"nodeName": "one"}));
    check(&pod("new", "600m", &json!({})), &world(one(), vec![on("a", "400m")]), expect!["to one"]);
    check(
        &pod("new", "601m", &json!({})),
        &world(one(), vec![on("a", "400m")]),
        expect!["0/1 nodes are available: 1 Insufficient cpu."],
    );
    let mut ended = on("a", "400m");
    ended.status = from_value(json!({"phase": "Succeeded"})).unwrap();
    check(&pod("new", "601m", &json!({})), &world(one(), vec![ended]), expect!["to one"]);
    let mut going = on("a", "400m");
    going.metadata.deletion_timestamp = from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    check(
        &pod("new", "601m", &json!({})),
        &world(one(), vec![going]),
        expect!["0/1 nodes are available: 1 Insufficient cpu."],
    );
    let full = vec![on("a", "0"), on("b", "0"), on("c", "0")];
    check(
        &pod("new", "2", &json!({})),
        &world(one(), full),
        expect!["0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods."],
    );
    let storage = json!([{"name": "main", "resources": {"requests": {"ephemeral-storage": "2Gi", "example.com/gpu": "1"}}}]);
    check(
        &pod("new", "0", &json!({"containers": storage})),
        &world(one(), vec![]),
        expect!["0/1 nodes are available: 1 Insufficient ephemeral-storage, 1 Insufficient example.com/gpu."],
    );
}

#[test]
fn each_node_is_refused_for_the_first_reason_that_there_is() {
    let tainted = json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}]});
    let mut unready = node("e", "8", &json!({}));
    unready.status.as_mut().unwrap().conditions.as_mut().unwrap()[0].status = "Unknown".into();
    let nodes = vec![
        node("a", "8", &json!({"unschedulable": true})),
        node("b", "8", &tainted),
        node("c", "1", &json!({})),
        node("d", "1", &json!({})),
        unready,
    ];
    let new = pod("new", "2", &json!({}));
    check(
        &new,
        &world(nodes.clone(), vec![]),
        expect![
            "0/5 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu, 2 node(s) had untolerated taint(s)."
        ],
    );
    let choosy = pod("new", "2", &json!({"nodeSelector": {"disk": "hdd"}}));
    check(
        &choosy,
        &world(nodes.clone(), vec![]),
        expect![
            "0/5 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector, 2 node(s) had untolerated taint(s)."
        ],
    );
    let brave = pod("new", "2", &json!({"tolerations": [{"operator": "Exists"}]}));
    check(&brave, &world(nodes, vec![]), expect!["to a"]);
}

#[test]
fn a_pod_waits_for_the_claims_of_its_ephemeral_volumes() {
    let mounting = pod("new", "1", &json!({"volumes": [{"name": "v", "ephemeral": {}}]}));
    assert_eq!(decide::claim_names(&mounting), ["new-v"]);
    let here = |claim: Value| World {
        claims: [("new-v".to_owned(), from_value(claim).unwrap())].into(),
        ..world(vec![node("one", "2", &json!({}))], vec![])
    };
    check(
        &mounting,
        &here(Value::Null),
        expect![[
            r#"0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "new-v"."#
        ]],
    );
    check(
        &mounting,
        &here(json!({"metadata": {"namespace": "ns", "name": "new-v"}})),
        expect!["0/1 nodes are available: PVC ns/new-v was not created for pod ns/new (pod is not owner)."],
    );
}

fn with_claim(world: World, claim: Value) -> World {
    World { claims: [("data".to_owned(), from_value(claim).unwrap())].into(), ..world }
}

#[test]
fn a_pod_waits_for_its_claims() {
    let mounting =
        pod("new", "1", &json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}));
    assert_eq!(decide::claim_names(&mounting), ["data"]);
    let here = || world(vec![node("one", "2", &json!({}))], vec![]);
    let claim = |more: Value| {
        let mut claim = json!({"metadata": {"namespace": "ns", "name": "data", "annotations": {}}, "spec": {}, "status": {}});
        for (pointer, value) in more.as_object().unwrap() {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            claim.pointer_mut(parent).unwrap()[field] = value.clone();
        }
        claim
    };
    check(
        &mounting,
        &with_claim(here(), json!(null)),
        expect![[r#"0/1 nodes are available: persistentvolumeclaim "data" not found."#]],
    );
    check(
        &mounting,
        &with_claim(here(), claim(json!({}))),
        expect!["0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."],
    );
    check(
        &mounting,
        &with_claim(here(), claim(json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"}))),
        expect![[r#"0/1 nodes are available: persistentvolumeclaim "data" is being deleted."#]],
    );
    check(
        &mounting,
        &with_claim(here(), claim(json!({"/status/phase": "Lost", "/spec/volumeName": "v"}))),
        expect![[
            r#"0/1 nodes are available: persistentvolumeclaim "data" bound to non-existent persistentvolume "v"."#
        ]],
    );
    let bound = claim(
        json!({"/spec/volumeName": "v", "/metadata/annotations": {"pv.kubernetes.io/bind-completed": "yes"}}),
    );
    check(&mounting, &with_claim(here(), bound.clone()), expect!["to one"]);
    let elsewhere: PersistentVolume = from_value(json!({
        "metadata": {"name": "v"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["two"]}]},
        ]}}},
    }))
    .unwrap();
    let far = World { volumes: vec![elsewhere], ..with_claim(here(), bound) };
    check(
        &mounting,
        &far,
        expect!["0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity."],
    );
}

#[test]
fn claims_that_wait_for_their_pod_are_told_its_node() {
    let mounting = pod("new", "1", &json!({}));
    let class = |provisioner: &str| -> StorageClass {
        from_value(json!({
            "metadata": {"name": "late"}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
        }))
        .unwrap()
    };
    let claim = |annotations: Value| json!({"metadata": {"namespace": "ns", "name": "data", "annotations": annotations}, "spec": {"storageClassName": "late"}});
    let here = |annotations: Value, provisioner: &str| {
        let nodes = vec![node("one", "2", &json!({})), node("two", "8", &json!({}))];
        World { classes: vec![class(provisioner)], ..with_claim(world(nodes, vec![]), claim(annotations)) }
    };
    check(&mounting, &here(json!({}), "mainstay.dev/local"), expect!["to two once data have volumes"]);
    check(
        &mounting,
        &here(json!({SELECTED_NODE: "one"}), "mainstay.dev/local"),
        expect!["to one once  have volumes"],
    );
    check(
        &mounting,
        &here(json!({}), "kubernetes.io/no-provisioner"),
        expect!["0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."],
    );
}

#[test]
fn only_pods_that_ask_for_this_scheduler_and_have_no_node_are_waiting() {
    assert!(is_waiting(&pod("a", "1", &json!({}))));
    for more in [
        json!({"nodeName": "one"}),
        json!({"schedulerName": "other"}),
        json!({"schedulingGates": [{"name": "hold"}]}),
    ] {
        assert!(!is_waiting(&pod("a", "1", &more)), "{more}");
    }
}

#[test]
fn a_refusal_is_told_once_and_keeps_its_time() {
    let first: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
    let later: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
    let mut pod = pod("a", "1", &json!({}));
    let told = refusal(&pod, "0/1", first).unwrap();
    assert_eq!(told.last_transition_time.as_ref().unwrap().0.to_string(), "2026-01-01T00:00:00Z");
    pod.status.get_or_insert_default().conditions = Some(vec![told.clone()]);
    assert_eq!(refusal(&pod, "0/1", later), None);
    let other = refusal(&pod, "0/2", later).unwrap();
    assert_eq!(other.last_transition_time, told.last_transition_time);
}

/// What a pod asks for, with containers written as their cpus: `i` marks an init container, `s` a sidecar.
fn cpus(containers: &[&str], init: &[&str]) -> i128 {
    let of = |text: &&str| {
        let (policy, cpu) = match text.strip_prefix('s') {
            Some(cpu) => (json!("Always"), cpu),
            None => (json!(null), *text),
        };
        json!({"name": "c", "restartPolicy": policy, "resources": {"requests": {"cpu": cpu}}})
    };
    let all = |texts: &[&str]| texts.iter().map(of).collect::<Vec<_>>();
    let spec = json!({"containers": all(containers), "initContainers": all(init), "overhead": {"cpu": "1"}});
    requests(&from_value(spec).unwrap()).get("cpu") / 1_000_000_000
}

#[test]
fn a_pod_asks_for_what_it_needs_at_once() {
    assert_eq!(cpus(&["2", "3"], &[]), 6);
    assert_eq!(cpus(&["2", "3"], &["4", "4"]), 6, "init containers run one after the other, and before");
    assert_eq!(cpus(&["2"], &["7"]), 8);
    assert_eq!(cpus(&["2"], &["s3"]), 6, "a sidecar runs beside");
    assert_eq!(cpus(&["2"], &["s3", "4"]), 8, "and beside the init containers after it");
    assert_eq!(cpus(&["2"], &["4", "s3"]), 6, "but not beside those before");
}

#[test]
fn what_is_asked_for_the_pod_as_a_whole_counts_instead() {
    let spec = json!({
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}}}],
        "resources": {"requests": {"cpu": "3"}},
    });
    let asked = requests(&from_value(spec).unwrap());
    assert_eq!(asked.get("cpu"), 3_000_000_000);
    assert_eq!(asked.get("ephemeral-storage"), 1_073_741_824_000_000_000);
}

fn millis(most: u64) -> impl Strategy<Value = u64> {
    let ends = prop_oneof![Just(0), Just(i64::MAX as u64), Just(u64::MAX), any::<u64>()];
    prop_oneof![4 => 1..most, 1 => ends]
}

proptest! {
    #[test]
    fn nobody_is_placed_where_there_is_no_room(
        cpus in prop::collection::vec(millis(2000), 1..8),
        sizes in prop::collection::vec(millis(3000), 1..4),
    ) {
        let nodes: Vec<_> =
            sizes.iter().enumerate().map(|(index, cpu)| node(&format!("n{index}"), &format!("{cpu}m"), &json!({}))).collect();
        let mut there: Vec<Placed> = Vec::new();
        for (index, cpu) in cpus.iter().enumerate() {
            let mut new = pod(&format!("p{index}"), &format!("{cpu}m"), &json!({}));
            let here = World { nodes: nodes.clone(), pods: there.clone(), ..World::default() };
            match decide(&new, &here) {
                Decision::Bind(node) => {
                    prop_assert!(decide::has_room(&new, &here, &node, &used(&node, &there)));
                    new.spec.as_mut().unwrap().node_name = Some(node);
                    there.push(placed(&new));
                }
                Decision::Unschedulable(message) => {
                    let beginning = format!("0/{} nodes are available: ", sizes.len());
                    prop_assert!(message.starts_with(&beginning), "{}", message);
                    for node in &nodes {
                        prop_assert!(!decide::has_room(&new, &here, &node.name_any(), &used(&node.name_any(), &there)));
                    }
                }
                Decision::Await { .. } => prop_assert!(false, "it has no claims"),
            }
        }
        for node in &nodes {
            let all = used(&node.name_any(), &there);
            prop_assert!(lacking(&all, &allocatable(node), &Amounts::default()).is_empty());
        }
    }
}
