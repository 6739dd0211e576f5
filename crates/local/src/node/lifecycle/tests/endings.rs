//! How pods are ended by others: by time, by deletion, by a node that goes away.

use expect_test::expect;

use super::scenes::{SERVER, TASK};
use super::*;

#[test]
fn a_pod_whose_time_is_up_fails_and_is_stopped() {
    let spec = "{restartPolicy: Never, activeDeadlineSeconds: 5, containers: [{name: c, image: task}]}";
    let mut stage = Stage::begun(spec);
    assert_eq!(stage.at(1).runs("c", 0, 1).settle().lines().last(), Some("again after 4s"));
    check(
        &stage.at(5).settle(),
        &expect![[r#"
            Failed DeadlineExceeded Pod was active on the node longer than the specified deadline
            c: running, started, ready
            +PodReadyToStartContainers +Initialized -Ready PodFailed -ContainersReady +PodScheduled
            stop within 30s"#]],
    );
    check(
        &stage.at(6).ends("c", 0, 143, 1, 6).settle(),
        &expect![[r#"
            Failed DeadlineExceeded Pod was active on the node longer than the specified deadline
            c: Error 143
            -PodReadyToStartContainers +Initialized -Ready PodFailed -ContainersReady +PodScheduled"#]],
    );
}

#[test]
fn a_deleted_pod_is_stopped_and_goes_when_nothing_runs_any_more() {
    let mut stage = Stage::begun(SERVER);
    stage.at(1).runs("c", 0, 1).settle();
    check(
        &stage.at(10).deleted(10, 30).settle(),
        &expect![[r#"
            Running
            c: running, started, ready
            +PodReadyToStartContainers +Initialized +Ready +ContainersReady +PodScheduled
            stop within 30s"#]],
    );
    check(
        &stage.at(11).ends("c", 0, 0, 1, 11).settle(),
        &expect![[r#"
            Succeeded
            c: Completed 0
            -PodReadyToStartContainers +Initialized PodCompleted -Ready PodCompleted -ContainersReady +PodScheduled
            over"#]],
    );
}

#[test]
fn a_deleted_pod_that_never_ran_has_failed() {
    let mut stage = Stage::begun(SERVER);
    check(
        &stage.at(1).deleted(1, 30).settle(),
        &expect![[r#"
            Failed
            c: ContainerStatusUnknown 137
            -PodReadyToStartContainers +Initialized -Ready PodFailed -ContainersReady +PodScheduled
            over"#]],
    );
}

#[test]
fn a_pod_that_is_deleted_while_a_container_waits_to_run_again_shows_its_end() {
    let mut stage = Stage::begun(SERVER);
    stage.at(1).ends("c", 1, 7, 1, 2).settle();
    check(
        &stage.at(3).deleted(3, 30).settle(),
        &expect![[r#"
            Failed
            c: Error 7, restarts 1
            -PodReadyToStartContainers +Initialized -Ready PodFailed -ContainersReady +PodScheduled
            over"#]],
    );
}

#[test]
fn a_pod_without_grace_left_is_stopped_and_not_ended_again() {
    let mut stage = Stage::begun(SERVER);
    stage.at(1).runs("c", 0, 1).settle();
    let told = stage.at(10).deleted(10, 0).settle();
    assert!(told.ends_with("stop within 0s"), "{told}");
    let told = stage.ends("c", 0, 137, 1, 10).settle();
    assert!(!told.contains("over"), "{told}");
}

#[test]
fn a_container_that_is_no_longer_there_has_ended_and_runs_again() {
    let mut stage = Stage::begun(SERVER);
    stage.at(1).runs("c", 0, 1).settle();
    stage.seen.clear();
    check(
        &tell(&stage.at(60).step()),
        &expect![[r#"
            Running
            c: ContainerStatusUnknown 137
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled"#]],
    );
    check(
        &tell(&stage.step()),
        &expect![[r#"
            Running
            c: ContainerStatusUnknown 137
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled
            start c 1"#]],
    );
    check(
        &stage.runs("c", 1, 60).settle(),
        &expect![[r#"
            Running
            c: running, before ContainerStatusUnknown 137, restarts 1, started, ready
            +PodReadyToStartContainers +Initialized +Ready +ContainersReady +PodScheduled"#]],
    );
    let mut stage = Stage::begun(TASK);
    stage.at(1).runs("c", 0, 1).settle();
    stage.seen.clear();
    check(
        &stage.at(60).settle(),
        &expect![[r#"
            Failed
            c: ContainerStatusUnknown 137
            -PodReadyToStartContainers +Initialized -Ready PodFailed -ContainersReady +PodScheduled"#]],
    );
}

#[test]
fn a_pod_that_somebody_declared_failed_is_stopped() {
    let mut stage = Stage::begun(SERVER);
    stage.at(1).runs("c", 0, 1).settle();
    let status = stage.pod.status.as_mut().unwrap();
    status.phase = Some("Failed".into());
    status.reason = Some("Evicted".into());
    check(
        &stage.settle(),
        &expect![[r#"
            Failed Evicted
            c: running, started, ready
            +PodReadyToStartContainers +Initialized -Ready PodFailed -ContainersReady +PodScheduled
            stop within 30s"#]],
    );
}

#[test]
fn a_pod_that_ends_with_its_node_was_disrupted_unless_it_runs_again() {
    let mut stage = Stage::begun(TASK);
    stage.at(1).runs("c", 0, 1).settle();
    check(
        &stage.at(60).ends_with_node("c", 143, 60).settle(),
        &expect![[r#"
            Failed Terminated Pod was terminated in response to imminent node shutdown.
            c: Error 143
            +DisruptionTarget TerminationByKubelet: Pod was terminated in response to imminent node shutdown. -PodReadyToStartContainers +Initialized -Ready PodFailed -ContainersReady +PodScheduled"#]],
    );
    let mut stage = Stage::begun(SERVER);
    stage.at(1).runs("c", 0, 1).settle();
    let told = stage.at(60).ends_with_node("c", 143, 60).settle();
    assert!(told.starts_with("Running") && !told.contains("DisruptionTarget"), "{told}");
}

#[test]
fn a_pod_was_disrupted_whichever_of_its_containers_ended_last() {
    let spec = "{restartPolicy: Never, containers: [{name: c, image: task}, {name: d, image: task}]}";
    let mut stage = Stage::begun(spec);
    stage.at(1).runs("c", 0, 1).runs("d", 0, 1).settle();
    stage.at(60).ends_with_node("c", 143, 60).settle();
    let told = stage.at(61).ends("d", 0, 0, 1, 61).settle();
    assert!(told.starts_with("Failed Terminated") && told.contains("+DisruptionTarget"), "{told}");
}
