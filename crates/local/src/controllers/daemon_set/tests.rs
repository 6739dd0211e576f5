use k8s_openapi::api::apps::v1::DaemonSetSpec;
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplateSpec};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::decide::{Acts, Daemon, Health, Site, State, Update, decide};
use super::pod::{Edition, Place, new_pod, node_of, place};
use super::status::status;
use super::{sites, update};

const ONE: Update = Update::Rolling { surge: 0, unavailable: 1 };
const SURGE: Update = Update::Rolling { surge: 1, unavailable: 0 };

/// One word per node: `+` wanted, `~` tolerated, `!` unwanted, `?` gone; then one letter per pod: `a`vailable, `r`eady, `u`nready,
/// `e`nded, `f`ailed a moment ago, `g`oing; capital: has the new template. Nodes are `0`, `1`…, their pods `0a`, `0b`…
fn nodes(text: &str) -> Vec<Site> {
    let daemon = |node: usize, (number, letter): (u8, char)| {
        let kind = letter.to_ascii_lowercase();
        let state = match kind {
            'e' => State::Ended,
            'f' => State::Resting,
            'g' => State::Going,
            _ => State::Live,
        };
        Daemon {
            name: format!("{node}{}", char::from(b'a' + number)),
            state,
            is_updated: letter.is_uppercase(),
            health: match kind {
                'a' => Health::Available,
                'r' => Health::Ready,
                _ => Health::Unready,
            },
            is_bound: false,
        }
    };
    let site = |(node, word): (usize, &str)| {
        let (place, pods) = word.split_at(1);
        let place = match place {
            "+" => Some(Place::Wanted),
            "~" => Some(Place::Tolerated),
            "!" => Some(Place::Unwanted),
            _ => None,
        };
        let pods = (0..).zip(pods.chars()).map(|pod| daemon(node, pod)).collect();
        Site { node: node.to_string(), place, pods }
    };
    text.split_whitespace().enumerate().map(site).collect()
}

fn told(acts: &Acts) -> String {
    let made = acts.make.iter().map(|node| format!("+{node}"));
    let deleted = acts.delete.iter().map(|pod| format!("-{pod}"));
    made.chain(deleted).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(update: Update, world: &str, expected: &str) {
    assert_eq!(told(&decide(&nodes(world), update)), expected, "{world} under {update:?}");
}

#[test]
fn every_node_that_wants_a_pod_gets_one_and_no_other() {
    check(ONE, "+ +A ~ !", "+0");
    check(ONE, "+ + ~ +G", "+0 +1");
    check(ONE, "+AA +AAA", "-0b -1b -1c");
    check(ONE, "!A !G !E", "-0a -2a");
    check(ONE, "~A ~AA ~E", "-1b -2a");
}

#[test]
fn a_pod_that_ended_is_replaced_when_it_is_gone() {
    check(ONE, "+E", "-0a");
    check(ONE, "+F", "");
    check(ONE, "+G", "");
    check(ONE, "+EA", "-0a");
    check(SURGE, "+E", "+0 -0a");
}

#[test]
fn pods_for_a_node_that_is_gone_go_unless_they_are_bound_to_it() {
    check(ONE, "?A", "-0a");
    let mut bound = nodes("?A");
    bound[0].pods[0].is_bound = true;
    assert_eq!(decide(&bound, ONE), Acts::default());
}

#[test]
fn an_update_leaves_no_more_nodes_without_a_pod_than_it_may() {
    check(ONE, "+a +a +a", "-0a");
    check(ONE, "+g +a +a", "");
    check(ONE, "+U +a +a", "");
    check(ONE, "+A +a +a", "-1a");
    check(Update::Rolling { surge: 0, unavailable: 2 }, "+a +a +a", "-0a -1a");
    check(Update::Rolling { surge: 0, unavailable: 2 }, "+U +a +a", "-1a");
    check(Update::OnDelete, "+a +a +a", "");
}

#[test]
fn old_pods_that_are_of_no_use_are_replaced_at_once() {
    check(ONE, "+u +u +a", "-0a -1a");
    check(ONE, "+U +u +a", "-1a");
    check(ONE, "+r +a", "-0a");
}

#[test]
fn a_surge_makes_the_new_pod_first() {
    check(SURGE, "+a +a", "+0");
    check(SURGE, "+aU +a", "");
    check(SURGE, "+aR +a", "");
    check(SURGE, "+aA +a", "-0a");
    check(SURGE, "+gA +a", "+1");
    check(SURGE, "+A +A", "");
    check(SURGE, "+u +a", "+0 +1");
    check(SURGE, "+uU +a", "-0a");
    check(SURGE, "+g", "+0");
}

#[test]
fn with_a_surge_a_pod_leaves_a_node_when_there_are_enough_elsewhere() {
    check(SURGE, "~a +A", "-0a");
    check(SURGE, "~a +U", "");
    check(SURGE, "~u +U", "-0a");
}

/// The world obeys at once: what is made is available and new, what is deleted is gone, and the others get well.
fn obey(acts: &Acts, sites: &mut [Site]) {
    for site in sites {
        for pod in site.pods.iter_mut().filter(|pod| pod.state == State::Live) {
            pod.health = Health::Available;
        }
        site.pods.retain(|pod| !acts.delete.contains(&pod.name));
        if acts.make.contains(&site.node) {
            site.pods.extend(
                nodes("+A")
                    .remove(0)
                    .pods
                    .into_iter()
                    .map(|pod| Daemon { name: format!("{}new", site.node), ..pod }),
            );
        }
    }
}

proptest! {
    #[test]
    fn in_a_willing_world_every_node_has_the_new_pod_or_none(
        surge in prop_oneof![0..3_usize, Just(usize::MAX)], unavailable in prop_oneof![0..3_usize, Just(usize::MAX)],
        world in "([+~!?][aAuUreE]{0,3} ){0,5}",
    ) {
        let update = Update::Rolling { surge, unavailable: if surge == 0 { unavailable.max(1) } else { 0 } };
        let mut sites = nodes(&world);
        let mut rounds = 0;
        loop {
            let (acts, before) = (decide(&sites, update), sites.clone());
            obey(&acts, &mut sites);
            if sites == before {
                break;
            }
            rounds += 1;
            prop_assert!(rounds < 50, "it never ends");
        }
        for site in &sites {
            match site.place {
                Some(Place::Wanted) => {
                    prop_assert_eq!(site.pods.len(), 1);
                    prop_assert!(site.pods[0].is_updated);
                }
                Some(Place::Tolerated) => prop_assert!(site.pods.len() <= 1),
                _ => prop_assert!(site.pods.is_empty()),
            }
        }
    }
}

fn template(spec: &Value) -> PodTemplateSpec {
    let mut template = json!({"metadata": {"labels": {"app": "log"}}, "spec": {"containers": []}});
    template["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    from_value(template).unwrap()
}

fn node(labels: &Value, taints: &Value) -> Node {
    from_value(json!({"metadata": {"name": "one", "labels": labels}, "spec": {"taints": taints}})).unwrap()
}

#[test]
fn a_node_wants_a_pod_that_fits_and_tolerates_it() {
    let taint = |key: &str, effect: &str| json!([{"key": key, "effect": effect}]);
    let plain = json!({});
    let cases = [
        (plain.clone(), json!([]), Place::Wanted),
        (json!({"nodeSelector": {"disk": "ssd"}}), json!([]), Place::Wanted),
        (json!({"nodeSelector": {"disk": "hdd"}}), json!([]), Place::Unwanted),
        (json!({"nodeName": "one"}), json!([]), Place::Wanted),
        (json!({"nodeName": "two"}), json!([]), Place::Unwanted),
        (plain.clone(), taint("x", "NoSchedule"), Place::Tolerated),
        (plain.clone(), taint("x", "NoExecute"), Place::Unwanted),
        (plain.clone(), taint("x", "PreferNoSchedule"), Place::Wanted),
        (
            json!({"tolerations": [{"key": "x", "operator": "Exists"}]}),
            taint("x", "NoExecute"),
            Place::Wanted,
        ),
        (plain.clone(), taint("node.kubernetes.io/not-ready", "NoExecute"), Place::Wanted),
        (plain.clone(), taint("node.kubernetes.io/unschedulable", "NoSchedule"), Place::Wanted),
        (plain, taint("node.kubernetes.io/network-unavailable", "NoSchedule"), Place::Tolerated),
        (
            json!({"hostNetwork": true}),
            taint("node.kubernetes.io/network-unavailable", "NoSchedule"),
            Place::Wanted,
        ),
    ];
    for (spec, taints, expected) in cases {
        let node = node(&json!({"disk": "ssd"}), &taints);
        assert_eq!(place(&template(&spec), &node), expected, "{spec} on {taints}");
    }
}

fn edition() -> Edition {
    let annotations = [("deprecated.daemonset.template.generation".to_owned(), "3".to_owned())].into();
    Edition::new("abc", Some(&annotations))
}

#[test]
fn a_pod_names_its_node_and_tolerates_its_troubles() {
    let given = json!({
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
        ],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
        ]}}},
    });
    let pod = new_pod("log", &template(&given), &edition(), "log-x", "one");
    let tolerated = |trouble: &str, effect: &str| json!({"key": format!("node.kubernetes.io/{trouble}"), "operator": "Exists", "effect": effect});
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "log-x", "generateName": "log-",
            "labels": {"app": "log", "controller-revision-hash": "abc", "pod-template-generation": "3"},
        },
        "spec": {
            "containers": [],
            "tolerations": [
                tolerated("not-ready", "NoExecute"),
                tolerated("unreachable", "NoExecute"),
                tolerated("disk-pressure", "NoSchedule"),
                tolerated("memory-pressure", "NoSchedule"),
                tolerated("pid-pressure", "NoSchedule"),
                tolerated("unschedulable", "NoSchedule"),
            ],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["one"]}]},
            ]}}},
        },
    });
    assert_eq!(json!(pod), expected);
    assert_eq!(node_of(&pod), Some("one"));
    assert!(edition().includes(&pod));
    assert!(Edition { hash: "other".into(), ..edition() }.includes(&pod));
    assert!(!Edition { hash: "other".into(), generation: None }.includes(&pod));
}

fn spec(strategy: &Value) -> DaemonSetSpec {
    let spec = json!({"selector": {}, "template": {"spec": {"containers": []}}, "updateStrategy": strategy});
    from_value(spec).unwrap()
}

#[test]
fn what_an_update_may_is_a_share_of_the_nodes_that_want_a_pod() {
    let sites = nodes("+ + + + !");
    let rolling =
        |rolling: Value| update(&spec(&json!({"type": "RollingUpdate", "rollingUpdate": rolling})), &sites);
    assert_eq!(rolling(json!({"maxUnavailable": "30%"})), Update::Rolling { surge: 0, unavailable: 2 });
    assert_eq!(
        rolling(json!({"maxSurge": "30%", "maxUnavailable": 0})),
        Update::Rolling { surge: 2, unavailable: 0 }
    );
    assert_eq!(rolling(json!({"maxSurge": 0, "maxUnavailable": 0})), ONE);
    assert_eq!(update(&spec(&json!({"type": "OnDelete"})), &sites), Update::OnDelete);
}

#[test]
fn pods_are_told_by_the_node_that_they_are_for() {
    let pod = |name: &str, node: Option<&str>, at: u8, phase: &str, going: bool| -> Pod {
        from_value(json!({
            "metadata": {
                "name": name, "creationTimestamp": format!("1970-01-01T00:00:0{at}Z"),
                "deletionTimestamp": going.then_some("1970-01-01T00:00:09Z"),
            },
            "spec": {"containers": [], "nodeName": node}, "status": {"phase": phase},
        }))
        .unwrap()
    };
    let mut aimed = new_pod("log", &template(&json!({})), &edition(), "aimed", "one");
    aimed.metadata.creation_timestamp = pod("", None, 1, "", false).metadata.creation_timestamp;
    let pods = [
        aimed,
        pod("younger", Some("one"), 5, "Running", false),
        pod("older", Some("one"), 4, "Failed", false),
        pod("over", Some("one"), 2, "Failed", true),
        pod("adrift", None, 2, "Running", false),
        pod("lost", Some("gone"), 2, "Running", false),
    ];
    let node = node(&json!({}), &json!([]));
    let at = |time: &str| {
        let sites =
            sites(&spec(&json!({})), std::slice::from_ref(&node), &pods, &edition(), time.parse().unwrap());
        let pods = |site: &Site| -> Vec<(String, State)> {
            site.pods.iter().map(|pod| (pod.name.clone(), pod.state)).collect()
        };
        sites.iter().map(|site| (site.node.clone(), site.place, pods(site))).collect::<Vec<_>>()
    };
    let named = |name: &str, state| (name.to_owned(), state);
    let expected = |failed| {
        let on_one = vec![named("older", failed), named("younger", State::Live), named("aimed", State::Live)];
        [
            ("gone".to_owned(), None, vec![named("lost", State::Live)]),
            ("one".to_owned(), Some(Place::Wanted), on_one),
        ]
    };
    assert_eq!(at("1970-01-01T00:00:05Z"), expected(State::Ended));
    assert_eq!(at("1970-01-01T00:00:04.5Z"), expected(State::Resting));
}

#[test]
fn a_status_counts_nodes_by_their_first_pod() {
    let expected = json!({
        "desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberMisscheduled": 1, "numberReady": 3,
        "updatedNumberScheduled": 2, "numberAvailable": 2, "numberUnavailable": 3,
    });
    assert_eq!(json!(status(&nodes("+A +aU +r +U + ~A ! ?A"), None)), expected);
    let empty = json!({
        "desiredNumberScheduled": 0, "currentNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
        "collisionCount": 2,
    });
    assert_eq!(json!(status(&[], Some(2))), empty);
}
