use std::fmt::Write as _;

use expect_test::{Expect, expect};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::PodStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::super::lifecycle::{Addresses, Situation, decide};
use super::*;

fn at(seconds: i64) -> Timestamp {
    let beginning: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    beginning + SignedDuration::from_secs(seconds)
}

fn pod(annotations: &Value, spec: &str) -> Pod {
    let spec: Value = serde_saphyr::from_str(spec).unwrap();
    let metadata =
        json!({"name": "p", "namespace": "default", "uid": "u", "generation": 1, "annotations": annotations});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}))
        .unwrap()
}

/// One status in one line.
fn tell(status: &PodStatus) -> String {
    let ready = |status: &PodStatus| {
        status.conditions.iter().flatten().any(|known| known.type_ == "Ready" && known.status == "True")
    };
    let mut text =
        format!("{}{}", status.phase.as_deref().unwrap(), if ready(status) { " Ready" } else { "" });
    for container in status.init_container_statuses.iter().chain(&status.container_statuses).flatten() {
        let state = container.state.clone().unwrap();
        let state = match (state.running, state.terminated, state.waiting) {
            (Some(_), ..) => "running".to_owned(),
            (_, Some(end), _) => format!("{} {}", end.reason.unwrap(), end.exit_code),
            (_, _, waiting) => waiting.unwrap().reason.unwrap(),
        };
        let _ = write!(text, "; {} {state}", container.name);
        if container.restart_count > 0 {
            let _ = write!(text, " ({} restarts)", container.restart_count);
        }
    }
    text
}

/// All that becomes of a pod that is deleted at some time, until nothing happens any more or 200 seconds have passed.
fn check(mut pod: Pod, rules: &str, deleted: Option<i64>, expected: &Expect) {
    let rules: Rules = rules.parse().unwrap();
    let addresses = Addresses { pod: address("default", "p"), host: "192.0.2.1".into() };
    let (mut told, mut time, nothing) = (String::new(), 0, BTreeMap::new());
    loop {
        let now = at(time);
        let mut seen = observe(&pod, &rules, now);
        let looked = |seen: &Seen, refused: &BTreeMap<String, CannotStart>| {
            let containers = seen.containers.clone();
            decide(&Situation { pod: &pod, seen: &containers, refused, addresses: &addresses, now })
        };
        let mut decision = looked(&seen, &nothing);
        if !decision.starts.is_empty() {
            start(&pod, &rules, &decision.starts, now, &mut seen);
            decision = looked(&seen, &seen.refused.clone());
        }
        if pod.status.as_ref() != Some(&decision.status) {
            let _ = writeln!(told, "{time}s {}", tell(&decision.status));
            pod.status = Some(decision.status);
            continue;
        }
        if decision.over {
            let _ = writeln!(told, "{time}s gone");
            break;
        }
        let mut next = [decision.again, seen.next]
            .into_iter()
            .flatten()
            .min()
            .map(|wait| time + i64::try_from(wait.as_secs()).unwrap());
        let is_deleted = pod.metadata.deletion_timestamp.is_some();
        if let Some(deleted) = deleted.filter(|at| !is_deleted && next.is_none_or(|next| next >= *at)) {
            next = Some(deleted);
            pod.metadata.deletion_timestamp = Some(Time(at(deleted + 30)));
            pod.metadata.deletion_grace_period_seconds = Some(30);
        }
        match next {
            Some(next) if next <= 200 => time = next,
            _ => break,
        }
    }
    expected.assert_eq(&told);
}

const SERVER: &str = "{containers: [{name: c, image: web}]}";
const TASK: &str = "{restartPolicy: Never, containers: [{name: c, image: task}]}";

#[test]
fn without_rules_servers_run_and_tasks_succeed() {
    check(
        pod(&json!({}), SERVER),
        "",
        Some(60),
        &expect![[r#"
        0s Pending; c ContainerCreating
        1s Running Ready; c running
        61s Succeeded; c Completed 0
        61s gone
    "#]],
    );
    check(
        pod(&json!({}), TASK),
        "",
        None,
        &expect![[r#"
        0s Pending; c ContainerCreating
        1s Running Ready; c running
        6s Succeeded; c Completed 0
    "#]],
    );
    check(
        pod(&json!({}), TASK),
        "",
        Some(3),
        &expect![[r#"
        0s Pending; c ContainerCreating
        1s Running Ready; c running
        4s Failed; c Error 143
        4s gone
    "#]],
    );
}

#[test]
fn init_containers_and_sidecars_run_before_the_others() {
    let spec = "
        restartPolicy: Never
        initContainers: [{name: i, image: x}, {name: s, image: x, restartPolicy: Always}]
        containers: [{name: c, image: x}]
    ";
    check(
        pod(&json!({}), spec),
        "",
        None,
        &expect![[r#"
        0s Pending; i PodInitializing; s PodInitializing; c PodInitializing
        1s Pending; i running; s PodInitializing; c PodInitializing
        2s Pending; i Completed 0; s PodInitializing; c PodInitializing
        3s Pending; i Completed 0; s running; c PodInitializing
        4s Running Ready; i Completed 0; s running; c running
        9s Running; i Completed 0; s running; c Completed 0
        10s Succeeded; i Completed 0; s Completed 0; c Completed 0
    "#]],
    );
}

#[test]
fn annotations_say_how_a_container_behaves() {
    let slow = json!({"mainstay.dev/starts-after": "10s", "mainstay.dev/ready-after": "5s", "mainstay.dev/stops-after": "20s"});
    check(
        pod(&slow, SERVER),
        "",
        Some(60),
        &expect![[r#"
        0s Pending; c ContainerCreating
        10s Running; c running
        15s Running Ready; c running
        80s Succeeded; c Completed 0
        80s gone
    "#]],
    );
    check(
        pod(&json!({"mainstay.dev/ready-after": "never"}), SERVER),
        "",
        None,
        &expect![[r#"
        0s Pending; c ContainerCreating
        1s Running; c running
    "#]],
    );
    let failing = json!({"mainstay.dev/ends-after": "2s", "mainstay.dev/exit-code": "7"});
    check(
        pod(&failing, TASK),
        "",
        None,
        &expect![[r#"
        0s Pending; c ContainerCreating
        1s Running Ready; c running
        3s Failed; c Error 7
    "#]],
    );
    check(
        pod(&json!({"mainstay.dev/crashes": "3"}), SERVER),
        "",
        None,
        &expect![[r#"
        0s Pending; c ContainerCreating
        1s Running Ready; c running
        2s Running; c Error 1
        2s Running Ready; c running (1 restarts)
        3s Running; c Error 1 (1 restarts)
        3s Running; c CrashLoopBackOff (1 restarts)
        13s Running Ready; c running (2 restarts)
        14s Running; c Error 1 (2 restarts)
        14s Running; c CrashLoopBackOff (2 restarts)
        34s Running Ready; c running (3 restarts)
    "#]],
    );
    check(
        pod(&json!({"mainstay.dev/crashes": "always"}), SERVER),
        "",
        None,
        &expect![[r#"
        0s Pending; c ContainerCreating
        1s Running Ready; c running
        2s Running; c Error 1
        2s Running Ready; c running (1 restarts)
        3s Running; c Error 1 (1 restarts)
        3s Running; c CrashLoopBackOff (1 restarts)
        13s Running Ready; c running (2 restarts)
        14s Running; c Error 1 (2 restarts)
        14s Running; c CrashLoopBackOff (2 restarts)
        34s Running Ready; c running (3 restarts)
        35s Running; c Error 1 (3 restarts)
        35s Running; c CrashLoopBackOff (3 restarts)
        75s Running Ready; c running (4 restarts)
        76s Running; c Error 1 (4 restarts)
        76s Running; c CrashLoopBackOff (4 restarts)
        156s Running Ready; c running (5 restarts)
        157s Running; c Error 1 (5 restarts)
        157s Running; c CrashLoopBackOff (5 restarts)
    "#]],
    );
    check(
        pod(&json!({"mainstay.dev/cannot-pull": "true"}), SERVER),
        "",
        Some(9),
        &expect![[r#"
        0s Pending; c ContainerCreating
        0s Pending; c ImagePullBackOff
        9s Failed; c ContainerStatusUnknown 137
        9s gone
    "#]],
    );
}

#[test]
fn an_annotation_can_be_for_one_container() {
    let spec = "{restartPolicy: Never, initContainers: [{name: i, image: x}], containers: [{name: c, image: x}, {name: d, image: x}]}";
    let annotations = json!({"mainstay.dev/ends-after": "7s", "mainstay.dev/ends-after.c": "3s", "mainstay.dev/exit-code.i": "0"});
    check(
        pod(&annotations, spec),
        "",
        None,
        &expect![[r#"
        0s Pending; i PodInitializing; c PodInitializing; d PodInitializing
        1s Pending; i running; c PodInitializing; d PodInitializing
        2s Pending; i Completed 0; c PodInitializing; d PodInitializing
        3s Running Ready; i Completed 0; c running; d running
        6s Running; i Completed 0; c Completed 0; d running
        10s Succeeded; i Completed 0; c Completed 0; d Completed 0
    "#]],
    );
}

#[test]
fn rules_are_for_images_and_annotations_go_before_them() {
    let rules = "simulated: [{image: 'ta*', endsAfter: 30s, exitCode: 2}, {image: '*', readyAfter: 3s}]";
    check(
        pod(&json!({}), TASK),
        rules,
        None,
        &expect![[r#"
        0s Pending; c ContainerCreating
        1s Running Ready; c running
        31s Failed; c Error 2
    "#]],
    );
    check(
        pod(&json!({"mainstay.dev/exit-code": "0"}), TASK),
        rules,
        None,
        &expect![[r#"
        0s Pending; c ContainerCreating
        1s Running Ready; c running
        31s Succeeded; c Completed 0
    "#]],
    );
    check(
        pod(&json!({}), SERVER),
        rules,
        None,
        &expect![[r#"
        0s Pending; c ContainerCreating
        1s Running; c running
        4s Running Ready; c running
    "#]],
    );
}

#[test]
fn an_annotation_that_is_wrong_is_named() {
    let pod = pod(&json!({"mainstay.dev/ends-after": "soon"}), TASK);
    let starts = [Start::first("c", at(0))];
    let mut seen = Seen::default();
    start(&pod, &Rules::default(), &starts, at(1), &mut seen);
    expect![[r#"CreateContainerConfigError: metadata.annotations[mainstay.dev/ends-after]: "soon" is no length of time; write 5s, 500ms or 1m30s, or never"#]].assert_eq(&seen.refused["c"].to_string());
}

#[test]
fn what_a_container_has_logged_is_there_once_it_has_run() {
    let mut pod = pod(&json!({"mainstay.dev/log": "hello\n"}), SERVER);
    assert_eq!(log(&pod, "c", &Rules::default()).as_deref(), Some(""));
    assert_eq!(log(&pod, "d", &Rules::default()), None);
    let status = json!({"containerStatuses": [{
        "name": "c", "image": "web", "imageID": "web", "ready": true, "restartCount": 0, "containerID": "mainstay://u/c/0",
    }]});
    pod.status = serde_json::from_value(status).unwrap();
    assert_eq!(log(&pod, "c", &Rules::default()).as_deref(), Some("hello\n"));
}

#[test]
fn addresses_follow_from_names() {
    assert_eq!(address("default", "web"), address("default", "web"));
    assert_ne!(address("default", "web"), address("other", "web"));
    let parts = address("default", "web").split('.').map(|part| part.parse().unwrap()).collect::<Vec<u8>>();
    assert!(matches!(parts[..], [10, 128..=255, _, _]), "{parts:?}");
}

#[test]
fn a_thousand_pods_have_nearly_as_many_addresses() {
    let all: std::collections::BTreeSet<_> =
        (0..1000).map(|number| address("default", &format!("web-{number}"))).collect();
    assert!(all.len() >= 999, "{}", all.len());
}
