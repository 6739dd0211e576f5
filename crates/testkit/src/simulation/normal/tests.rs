//! One fact per rule.

use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

const ONE: &str = "11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa";
const TWO: &str = "22222222-bbbb-4bbb-8bbb-bbbbbbbbbbbb";
const THREE: &str = "33333333-cccc-4ccc-8ccc-cccccccccccc";

/// Objects by their places, as in `pods default/web` or `nodes n1`; `external x` is outside.
pub(super) fn state(objects: impl IntoIterator<Item = (impl AsRef<str>, Value)>) -> State {
    let mut state = State::default();
    for (place, value) in objects {
        let (resource, rest) = place.as_ref().split_once(' ').unwrap();
        let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
        if resource == "external" {
            state.external.insert(name.to_owned(), value);
        } else {
            state.objects.insert(Place::new(resource, namespace, name), Arc::new(value));
        }
    }
    state
}

fn shown(normal: &Normal) -> String {
    normal.objects.iter().fold(String::new(), |mut text, (place, tree)| {
        let _ = writeln!(text, "{place}: {tree}");
        text
    })
}

fn check<const N: usize>(objects: [(&str, Value); N], expect: &Expect) {
    expect.assert_eq(&shown(&normalise(&state(objects), &[])));
}

fn check_differences<const N: usize, const M: usize>(
    expected: [(&str, Value); N],
    found: [(&str, Value); M],
    expect: &Expect,
) {
    let (expected, found) = (normalise(&state(expected), &[]), normalise(&state(found), &[]));
    expect.assert_eq(&expected.differences(&found).join("\n"));
}

#[test]
fn uids_are_said_by_whose_they_are() {
    check(
        [
            ("deployments.apps shop/web", json!({"metadata": {"uid": ONE}})),
            (
                "replicasets.apps shop/web-5d",
                json!({
                    "metadata": {"uid": TWO, "labels": {"controller-uid": ONE}},
                    "spec": {"volume": format!("pvc-{ONE}"), "path": format!("/pods/{TWO}/volumes/{THREE}")},
                    "status": {"byUid": {ONE: 1}},
                }),
            ),
        ],
        &expect![[r#"
            deployments.apps shop/web: {"metadata":{"uid":"<uid of deployments.apps shop/web>"}}
            replicasets.apps shop/web-5d: {"metadata":{"labels":{"controller-uid":"<uid of deployments.apps shop/web>"},"uid":"<uid of replicasets.apps shop/web-5d>"},"spec":{"path":"/pods/<uid of replicasets.apps shop/web-5d>/volumes/<uid of something gone>","volume":"pvc-<uid of deployments.apps shop/web>"},"status":{"byUid":{"<uid of deployments.apps shop/web>":1}}}
        "#]],
    );
}

#[test]
fn uids_of_what_is_gone_are_not_told_apart_but_nothing_under_them_is_lost() {
    check(
        [(
            "pods shop/web",
            json!({"uid": THREE, "not": format!("x{THREE}"), "by": {ONE: "b", TWO: "a", THREE: "c"}}),
        )],
        &expect![[r#"
            pods shop/web: {"by":{"<uid of something gone>":"a","<uid of something gone> 2":"b","<uid of something gone> 3":"c"},"not":"x33333333-cccc-4ccc-8ccc-cccccccccccc","uid":"<uid of something gone>"}
        "#]],
    );
}

#[test]
fn an_object_whose_name_is_its_uid_does_no_harm() {
    check(
        [(&format!("pods shop/{ONE}"), json!({"metadata": {"uid": ONE}}))],
        &expect![[r#"
        pods shop/<uid of pods shop/<uid of pods shop/<uid of pods shop/<uid of pods shop/11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa>>>>: {"metadata":{"uid":"<uid of pods shop/<uid of pods shop/<uid of pods shop/<uid of pods shop/11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa>>>>"}}
    "#]],
    );
}

#[test]
fn bookkeeping_is_dropped() {
    check(
        [(
            "pods shop/web",
            json!({
                "metadata": {
                    "resourceVersion": "7", "generation": 3, "selfLink": "/x", "managedFields": [],
                    "creationTimestamp": "2024-01-01T00:00:00Z", "labels": {},
                    "annotations": {"mainstay.dev/applied": "0123456789abcdef"},
                },
                "spec": {"resourceVersion": {"type": "string"}, "generation": 3},
                "status": {"source": {"resourceVersion": "6", "name": "x"}},
            }),
        )],
        &expect![[r#"
            pods shop/web: {"metadata":{"annotations":{"mainstay.dev/applied":"<hash>"},"labels":{}},"spec":{"generation":3,"resourceVersion":{"type":"string"}},"status":{"source":{"name":"x"}}}
        "#]],
    );
}

#[test]
fn observed_generations_are_said_relative_to_the_own_one() {
    check(
        [
            (
                "pods shop/web",
                json!({
                    "metadata": {"generation": 3},
                    "status": {
                        "observedGeneration": 3,
                        "conditions": [
                            {"type": "B", "observedGeneration": 1},
                            {"type": "A", "observedGeneration": 5},
                        ],
                    },
                }),
            ),
            ("pods shop/x", json!({"status": {"observedGeneration": 3}})),
        ],
        &expect![[r#"
            pods shop/web: {"metadata":{},"status":{"conditions":[{"observedGeneration":"<2 ahead>","type":"A"},{"observedGeneration":"<2 behind>","type":"B"}],"observedGeneration":"<current>"}}
            pods shop/x: {"status":{"observedGeneration":3}}
        "#]],
    );
}

#[test]
fn times_are_all_the_same() {
    check(
        [(
            "pods shop/web",
            json!({
                "metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"},
                "micro": "2024-01-01T00:00:00.123456Z",
                "zone": "2024-01-01T00:00:00+02:00",
                "said": "since 2024-01-01T00:00:00Z, until 2024-01-01T00:00:00.5Z.",
                "date": "2024-01-01",
                "local": "2024-01-01T00:00:00",
                "wrong": "2024-13-01T00:00:00Z",
            }),
        )],
        &expect![[r#"
            pods shop/web: {"date":"2024-01-01","local":"2024-01-01T00:00:00","metadata":{"deletionTimestamp":"<time>"},"micro":"<time>","said":"since <time>, until <time>.","wrong":"2024-13-01T00:00:00Z","zone":"<time>"}
        "#]],
    );
}

#[test]
fn generated_names_are_numbered_by_what_the_objects_say() {
    let pod = |name: &str, size: u32| json!({"metadata": {"generateName": "web-", "name": name}, "spec": {"hostname": name, "size": size}});
    check(
        [
            ("pods shop/web-x7k2p", pod("web-x7k2p", 1)),
            ("pods shop/web-9vbxz", pod("web-9vbxz", 2)),
            ("pods shop/web-0", pod("web-0", 3)),
            (
                "configmaps shop/active",
                json!({"data": {
                    "name": "web-9vbxz", "path": "shop/web-9vbxz/log", "host": "web-x7k2p.web.shop.svc",
                    "volume": "data-web-x7k2p-0", "other": "web-x7k2pp my-xweb-x7k2p", "web-9vbxz": "",
                }}),
            ),
            ("secrets shop/web-9vbxz-tls", json!({})),
        ],
        &expect![[r#"
            configmaps shop/active: {"data":{"host":"web-*1.web.shop.svc","name":"web-*2","other":"web-x7k2pp my-xweb-x7k2p","path":"shop/web-*2/log","volume":"data-web-*1-0","web-*2":""}}
            pods shop/web-*1: {"metadata":{"generateName":"web-","name":"web-*1"},"spec":{"hostname":"web-*1","size":1}}
            pods shop/web-*2: {"metadata":{"generateName":"web-","name":"web-*2"},"spec":{"hostname":"web-*2","size":2}}
            pods shop/web-0: {"metadata":{"generateName":"web-","name":"web-0"},"spec":{"hostname":"web-0","size":3}}
            secrets shop/web-*2-tls: {}
        "#]],
    );
}

#[test]
fn generated_names_within_generated_names_are_numbered_together() {
    let job = |name: &str, uid: &str| json!({"metadata": {"generateName": "job-", "name": name, "uid": uid}});
    let pod = |name: &str, job: &str, uid: &str| {
        json!({
            "metadata": {"generateName": format!("{job}-"), "name": name, "ownerReferences": [{"kind": "Job", "uid": uid}]},
            "spec": {"job": job},
        })
    };
    let (one, two) = (("jobs.batch shop/job-bbbbb", "job-bbbbb"), ("jobs.batch shop/job-ccccc", "job-ccccc"));
    check(
        [
            (one.0, job(one.1, ONE)),
            (two.0, job(two.1, TWO)),
            ("pods shop/job-bbbbb-zzzzz", pod("job-bbbbb-zzzzz", one.1, ONE)),
            ("pods shop/job-ccccc-ddddd", pod("job-ccccc-ddddd", two.1, TWO)),
            ("pods shop/job-ccccc-fffff", pod("job-ccccc-fffff", two.1, TWO)),
        ],
        &expect![[r#"
            jobs.batch shop/job-*1: {"metadata":{"generateName":"job-","name":"job-*1","uid":"<uid of jobs.batch shop/job-*1>"}}
            jobs.batch shop/job-*2: {"metadata":{"generateName":"job-","name":"job-*2","uid":"<uid of jobs.batch shop/job-*2>"}}
            pods shop/job-*1-*1: {"metadata":{"generateName":"job-*1-","name":"job-*1-*1","ownerReferences":[{"kind":"Job","uid":"<uid of jobs.batch shop/job-*1>"}]},"spec":{"job":"job-*1"}}
            pods shop/job-*1-*2: {"metadata":{"generateName":"job-*1-","name":"job-*1-*2","ownerReferences":[{"kind":"Job","uid":"<uid of jobs.batch shop/job-*1>"}]},"spec":{"job":"job-*1"}}
            pods shop/job-*2-*1: {"metadata":{"generateName":"job-*2-","name":"job-*2-*1","ownerReferences":[{"kind":"Job","uid":"<uid of jobs.batch shop/job-*2>"}]},"spec":{"job":"job-*2"}}
        "#]],
    );
}

#[test]
fn a_prefix_that_the_server_cut_is_known() {
    let long = "a".repeat(70);
    let name = format!("{}x7k2p", "a".repeat(58));
    let normal =
        normalise(&state([(format!("pods shop/{name}"), json!({"metadata": {"generateName": long}}))]), &[]);
    assert_eq!(normal.objects.keys().next().unwrap().name.len(), 60);
}

#[test]
fn objects_of_a_generated_namespace_are_compared() {
    let namespace = |name: &str| json!({"metadata": {"generateName": "test-", "name": name}});
    check_differences(
        [("namespaces test-bbbbb", namespace("test-bbbbb")), ("pods test-bbbbb/web", json!({"a": 1}))],
        [("namespaces test-ccccc", namespace("test-ccccc")), ("pods test-ccccc/web", json!({"a": 2}))],
        &expect!["pods test-*1/web: a: 1 -> 2"],
    );
}

#[test]
fn addresses_and_ports_that_the_server_gives_out_are_not_compared() {
    check(
        [
            (
                "services shop/web",
                json!({"spec": {
                    "clusterIP": "10.96.4.2", "clusterIPs": ["10.96.4.2"], "healthCheckNodePort": 30001,
                    "ports": [{"port": 80, "nodePort": 30080}, {"port": 81, "nodePort": 0}],
                }}),
            ),
            ("services shop/bare", json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}})),
            (
                "configmaps shop/url",
                json!({"data": {"url": "http://10.96.4.2:80", "not": "10.96.4.21, 1.2.3"}}),
            ),
        ],
        &expect![[r#"
            configmaps shop/url: {"data":{"not":"10.96.4.21, 1.2.3","url":"http://<address of services shop/web>:80"}}
            services shop/bare: {"spec":{"clusterIP":"None","clusterIPs":["None"]}}
            services shop/web: {"spec":{"clusterIP":"<address of services shop/web>","clusterIPs":["<address of services shop/web>"],"healthCheckNodePort":"<port>","ports":[{"nodePort":"<port>","port":80},{"nodePort":0,"port":81}]}}
        "#]],
    );
}

#[test]
fn the_volume_with_a_pods_token_is_called_the_same_in_all_runs() {
    let volumes = |name: &str| ("pods shop/web", json!({"spec": {"volumes": [{"name": name}]}}));
    check_differences([volumes("kube-api-access-x7k2p")], [volumes("kube-api-access-9vbxz")], &expect![""]);
    check_differences(
        [volumes("kube-api-access-x7k2p")],
        [volumes("kube-api-access-mine")],
        &expect![[r#"pods shop/web: spec.volumes[0].name: "kube-api-access-*" -> "kube-api-access-mine""#]],
    );
}

#[test]
fn what_the_cluster_keeps_for_itself_is_left_out() {
    check(
        [
            ("events shop/web.1", json!({})),
            ("events.events.k8s.io shop/web.1", json!({})),
            ("leases.coordination.k8s.io shop/leader", json!({})),
            ("pods kube-system/dns", json!({"metadata": {"uid": ONE}})),
            ("configmaps kube-public/info", json!({})),
            ("configmaps kube-node-lease/info", json!({})),
            ("configmaps shop/kube-root-ca.crt", json!({})),
            (
                "customresourcedefinitions.apiextensions.k8s.io x",
                json!({"spec": {}, "status": {"conditions": []}}),
            ),
            ("configmaps shop/web", json!({"of": ONE})),
            ("external bucket", json!({"owner": ONE, "at": "2024-01-01T00:00:00Z"})),
        ],
        &expect![[r#"
            configmaps kube-node-lease/info: {}
            configmaps kube-public/info: {}
            configmaps shop/web: {"of":"<uid of pods kube-system/dns>"}
            customresourcedefinitions.apiextensions.k8s.io x: {"spec":{}}
            external bucket: {"at":"<time>","owner":"<uid of pods kube-system/dns>"}
            pods kube-system/dns: {"metadata":{"uid":"<uid of pods kube-system/dns>"}}
        "#]],
    );
}

#[test]
fn only_lists_that_are_sets_are_sorted() {
    check(
        [(
            "pods shop/web",
            json!({
                "metadata": {
                    "finalizers": ["b", "a"],
                    "ownerReferences": [
                        {"kind": "B", "name": "x"}, {"kind": "A", "name": "y"}, {"kind": "A", "name": "x"},
                    ],
                },
                "spec": {"arguments": ["b", "a"], "conditions": ["b", "a"]},
                "status": {"conditions": [{"type": "Ready", "a": 1}, {"type": "Able", "b": 2}]},
            }),
        )],
        &expect![[r#"
            pods shop/web: {"metadata":{"finalizers":["a","b"],"ownerReferences":[{"kind":"A","name":"x"},{"kind":"A","name":"y"},{"kind":"B","name":"x"}]},"spec":{"arguments":["b","a"],"conditions":["b","a"]},"status":{"conditions":[{"b":2,"type":"Able"},{"a":1,"type":"Ready"}]}}
        "#]],
    );
}

#[test]
fn differences_are_told_by_object_and_field() {
    check_differences(
        [
            (
                "deployments.apps shop/web",
                json!({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}, "spec": {"replicas": 2}}),
            ),
            ("secrets shop/x", json!({})),
            ("external bucket", json!({"size": 1})),
        ],
        [
            ("deployments.apps shop/web", json!({"metadata": {}, "spec": {"replicas": 1}})),
            ("pods shop/y", json!({})),
            ("external bucket", json!({"size": 2})),
        ],
        &expect![[r#"
            deployments.apps shop/web: metadata.deletionTimestamp: "<time>" -> nothing
            deployments.apps shop/web: spec.replicas: 2 -> 1
            external bucket: size: 1 -> 2
            pods shop/y: should not exist
            secrets shop/x: missing"#]],
    );
}

#[test]
fn values_of_secrets_are_never_shown() {
    let secret = |value: &str| {
        json!({
            "metadata": {"annotations": {"last-applied": value}, "labels": {"shown": value}},
            "data": {"tls.crt": value, "key": value}, "stringData": {"a": value}, "type": value,
        })
    };
    check_differences(
        [("secrets shop/x", secret("hush"))],
        [("secrets shop/x", secret("quiet"))],
        &expect![[r#"
            secrets shop/x: data.key
            secrets shop/x: data["tls.crt"]
            secrets shop/x: metadata.annotations.last-applied
            secrets shop/x: metadata.labels.shown: "hush" -> "quiet"
            secrets shop/x: stringData.a
            secrets shop/x: type: "hush" -> "quiet""#]],
    );
    check_differences(
        [("secrets shop/x", json!({"data": {"key": "hush"}}))],
        [("secrets shop/x", json!({}))],
        &expect!["secrets shop/x: data"],
    );
}

#[test]
fn one_generated_object_too_many_is_told_as_just_that() {
    let pod = |size: u32| json!({"metadata": {"generateName": "web-"}, "spec": {"size": size}});
    check_differences(
        [("pods shop/web-bbbbb", pod(2)), ("pods shop/web-ccccc", pod(3))],
        [("pods shop/web-bbbbb", pod(1)), ("pods shop/web-ccccc", pod(2)), ("pods shop/web-ddddd", pod(3))],
        &expect!["pods shop/web-*1: should not exist"],
    );
    check_differences(
        [("pods shop/web-bbbbb", pod(2)), ("pods shop/web-ccccc", pod(3))],
        [("pods shop/web-bbbbb", pod(3))],
        &expect!["pods shop/web-*1: missing"],
    );
    check_differences(
        [("pods shop/web-bbbbb", pod(2)), ("pods shop/web-ccccc", pod(3))],
        [("pods shop/web-bbbbb", pod(3)), ("pods shop/web-ccccc", pod(1))],
        &expect!["pods shop/web-*1: spec.size: 2 -> 1"],
    );
}

#[test]
fn a_reference_to_another_generated_object_is_a_difference() {
    let pod = |size: u32| json!({"metadata": {"generateName": "web-"}, "spec": {"size": size}});
    let active = |name: &str| json!({"data": {"active": name}});
    let state = |name: &str| {
        [
            ("pods shop/web-bbbbb", pod(2)),
            ("pods shop/web-ccccc", pod(3)),
            ("configmaps shop/active", active(name)),
        ]
    };
    check_differences(
        state("web-bbbbb"),
        state("web-ccccc"),
        &expect![[r#"configmaps shop/active: data.active: "web-*1" -> "web-*2""#]],
    );
}

#[test]
fn ignored_fields_do_not_count() {
    let objects = |count: u32| state([("pods shop/web", json!({"status": {"tries": [{"n": count}]}}))]);
    let differences = |ignored: &str| {
        let ignored = [ignored.parse().unwrap()];
        normalise(&objects(1), &ignored).differences(&normalise(&objects(2), &ignored))
    };
    assert_eq!(differences("/status/tries/*/n"), [""; 0]);
    assert_eq!(differences("pods /status"), [""; 0]);
    assert_eq!(differences("nodes /status"), ["pods shop/web: status.tries[0].n: 1 -> 2"]);
}
