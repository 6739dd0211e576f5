//! How pods begin, run and end by themselves.

use expect_test::expect;
use k8s_openapi::api::core::v1::PodCondition;

use super::*;

pub(super) const SERVER: &str = "{restartPolicy: Always, containers: [{name: c, image: web}]}";
pub(super) const TASK: &str = "{restartPolicy: Never, containers: [{name: c, image: task}]}";
const RETRIED: &str = "{restartPolicy: OnFailure, containers: [{name: c, image: task}]}";
const WITH_INIT: &str = "
restartPolicy: Never
initContainers: [{name: i, image: init}, {name: s, image: side, restartPolicy: Always}, {name: j, image: init}]
containers: [{name: c, image: task}, {name: d, image: task}]
";

#[test]
fn a_new_pod_is_recorded_before_anything_starts() {
    check(
        &tell(&Stage::new(SERVER).decide()),
        &expect![[r#"
            Pending
            c: ContainerCreating
            -PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled"#]],
    );
    check(
        &tell(&Stage::begun(SERVER).decide()),
        &expect![[r#"
            Pending
            c: ContainerCreating
            -PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled
            start c 0"#]],
    );
}

#[test]
fn a_pod_that_runs_has_this_status() {
    let mut stage = Stage::begun(SERVER);
    let decision = stage.at(1).runs("c", 0, 1).step();
    let status = serde_saphyr::to_string(&decision.status).unwrap();
    check(
        &status,
        &expect![[r#"
        conditions:
        - lastTransitionTime: "2026-01-01T00:00:01Z"
          observedGeneration: 1
          status: "True"
          type: PodReadyToStartContainers
        - lastTransitionTime: "2026-01-01T00:00:00Z"
          observedGeneration: 1
          status: "True"
          type: Initialized
        - lastTransitionTime: "2026-01-01T00:00:01Z"
          observedGeneration: 1
          status: "True"
          type: Ready
        - lastTransitionTime: "2026-01-01T00:00:01Z"
          observedGeneration: 1
          status: "True"
          type: ContainersReady
        - lastTransitionTime: "2026-01-01T00:00:00Z"
          observedGeneration: 1
          status: "True"
          type: PodScheduled
        containerStatuses:
        - containerID: mainstay://u/c/0
          image: web
          imageID: web
          lastState: {}
          name: c
          ready: true
          restartCount: 0
          started: true
          state:
            running:
              startedAt: "2026-01-01T00:00:01Z"
        hostIP: "192.0.2.1"
        hostIPs:
        - ip: "192.0.2.1"
        observedGeneration: 1
        phase: Running
        podIP: "10.244.0.1"
        podIPs:
        - ip: "10.244.0.1"
        qosClass: BestEffort
        startTime: "2026-01-01T00:00:00Z"
    "#]],
    );
}

#[test]
fn a_container_that_is_not_ready_keeps_its_pod_from_being_ready() {
    let mut stage = Stage::begun(SERVER);
    let running = Observed::Running { attempt: 0, since: at(1), started: true, ready: false };
    stage.at(1).seen.insert("c".into(), running);
    check(
        &stage.settle(),
        &expect![[r#"
            Running
            c: running, started
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled"#]],
    );
    let running = Observed::Running { attempt: 0, since: at(1), started: false, ready: true };
    stage.seen.insert("c".into(), running);
    check(
        &stage.settle(),
        &expect![[r#"
            Running
            c: running
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled"#]],
    );
}

#[test]
fn a_gate_keeps_a_pod_from_being_ready_until_its_condition_is_true() {
    let spec = "{readinessGates: [{conditionType: example.com/open}], containers: [{name: c, image: web}]}";
    let mut stage = Stage::begun(spec);
    check(
        &stage.at(1).runs("c", 0, 1).settle(),
        &expect![[r#"
            Running
            c: running, started, ready
            +PodReadyToStartContainers +Initialized -Ready ReadinessGatesNotReady: corresponding condition of pod readiness gate "example.com/open" does not exist. +ContainersReady +PodScheduled"#]],
    );
    let mut set = |status: &str| {
        let type_ = "example.com/open".to_owned();
        let gate = PodCondition { type_, status: status.into(), ..PodCondition::default() };
        let conditions = stage.pod.status.as_mut().unwrap().conditions.as_mut().unwrap();
        conditions.retain(|known| known.type_ != gate.type_);
        conditions.push(gate);
        stage.at(5).settle()
    };
    check(
        &set("False"),
        &expect![[r#"
        Running
        c: running, started, ready
        -example.com/open +PodReadyToStartContainers +Initialized -Ready ReadinessGatesNotReady: the status of pod readiness gate "example.com/open" is not "True", but False +ContainersReady +PodScheduled"#]],
    );
    check(
        &set("True"),
        &expect![[r#"
        Running
        c: running, started, ready
        +example.com/open +PodReadyToStartContainers +Initialized +Ready +ContainersReady +PodScheduled"#]],
    );
}

#[test]
fn a_task_ends_as_its_container_does() {
    let mut stage = Stage::begun(TASK);
    check(
        &stage.at(6).ends("c", 0, 0, 1, 6).settle(),
        &expect![[r#"
            Succeeded
            c: Completed 0
            -PodReadyToStartContainers +Initialized PodCompleted -Ready PodCompleted -ContainersReady +PodScheduled"#]],
    );
    let mut stage = Stage::begun(TASK);
    check(
        &stage.at(6).ends("c", 0, 3, 1, 6).settle(),
        &expect![[r#"
            Failed
            c: Error 3
            -PodReadyToStartContainers +Initialized -Ready PodFailed -ContainersReady +PodScheduled"#]],
    );
    let mut stage = Stage::begun(RETRIED);
    check(
        &stage.at(6).ends("c", 0, 0, 1, 6).settle(),
        &expect![[r#"
            Succeeded
            c: Completed 0
            -PodReadyToStartContainers +Initialized PodCompleted -Ready PodCompleted -ContainersReady +PodScheduled"#]],
    );
}

#[test]
fn a_pod_runs_until_its_last_container_has_ended() {
    let spec = "{restartPolicy: Never, containers: [{name: c, image: a}, {name: d, image: b}]}";
    let mut stage = Stage::begun(spec);
    check(
        &stage.at(6).ends("c", 0, 1, 1, 6).runs("d", 0, 1).settle(),
        &expect![[r#"
            Running
            c: Error 1
            d: running, started, ready
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled"#]],
    );
    check(
        &stage.at(7).ends("d", 0, 0, 1, 7).settle(),
        &expect![[r#"
            Failed
            c: Error 1
            d: Completed 0
            -PodReadyToStartContainers +Initialized -Ready PodFailed -ContainersReady +PodScheduled"#]],
    );
}

#[test]
fn an_end_is_recorded_before_the_next_attempt_starts() {
    let mut stage = Stage::begun(RETRIED);
    stage.at(1).runs("c", 0, 1).step();
    check(
        &tell(&stage.at(2).ends("c", 0, 1, 1, 2).step()),
        &expect![[r#"
            Running
            c: Error 1
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled"#]],
    );
    check(
        &tell(&stage.decide()),
        &expect![[r#"
            Running
            c: Error 1
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled
            start c 1"#]],
    );
}

#[test]
fn a_container_that_crashes_waits_longer_each_time() {
    let mut stage = Stage::begun(SERVER);
    let (mut told, mut time) = (String::new(), 1);
    for attempt in 0..9 {
        stage.at(time).runs("c", attempt, time).settle();
        stage.at(time + 1).ends("c", attempt, 1, time, time + 1).settle();
        let decision = stage.decide();
        let wait = i64::try_from(decision.again.unwrap_or_default().as_secs()).unwrap();
        let _ = writeln!(told, "{}", tell_container(&decision.status.container_statuses.unwrap()[0]));
        time += 1 + wait;
        let starts = stage.at(time).decide().starts;
        assert_eq!((starts.len(), starts[0].attempt), (1, attempt + 1));
    }
    check(
        &told,
        &expect![[r#"
        c: Error 1
        c: CrashLoopBackOff back-off 10s restarting failed container=c pod=p_default(u), before Error 1, restarts 1
        c: CrashLoopBackOff back-off 20s restarting failed container=c pod=p_default(u), before Error 1, restarts 2
        c: CrashLoopBackOff back-off 40s restarting failed container=c pod=p_default(u), before Error 1, restarts 3
        c: CrashLoopBackOff back-off 1m20s restarting failed container=c pod=p_default(u), before Error 1, restarts 4
        c: CrashLoopBackOff back-off 2m40s restarting failed container=c pod=p_default(u), before Error 1, restarts 5
        c: CrashLoopBackOff back-off 5m0s restarting failed container=c pod=p_default(u), before Error 1, restarts 6
        c: CrashLoopBackOff back-off 5m0s restarting failed container=c pod=p_default(u), before Error 1, restarts 7
        c: CrashLoopBackOff back-off 5m0s restarting failed container=c pod=p_default(u), before Error 1, restarts 8
    "#]],
    );
}

#[test]
fn init_containers_run_one_after_the_other_and_sidecars_go_on() {
    let mut stage = Stage::begun(WITH_INIT);
    check(
        &stage.settle(),
        &expect![[r#"
            Pending
            i: PodInitializing
            s: PodInitializing
            j: PodInitializing
            c: PodInitializing
            d: PodInitializing
            -PodReadyToStartContainers -Initialized ContainersNotInitialized: containers with incomplete status: [i s j] -Ready ContainersNotReady: containers with unready status: [s c d] -ContainersReady +PodScheduled
            start i 0"#]],
    );
    check(
        &stage.at(2).ends("i", 0, 0, 1, 2).settle(),
        &expect![[r#"
            Pending
            i: Completed 0, ready
            s: PodInitializing
            j: PodInitializing
            c: PodInitializing
            d: PodInitializing
            +PodReadyToStartContainers -Initialized ContainersNotInitialized: containers with incomplete status: [s j] -Ready ContainersNotReady: containers with unready status: [s c d] -ContainersReady +PodScheduled
            start s 0"#]],
    );
    check(
        &stage.at(3).runs("s", 0, 3).settle(),
        &expect![[r#"
            Pending
            i: Completed 0, ready
            s: running, started, ready
            j: PodInitializing
            c: PodInitializing
            d: PodInitializing
            +PodReadyToStartContainers -Initialized ContainersNotInitialized: containers with incomplete status: [j] -Ready ContainersNotReady: containers with unready status: [c d] -ContainersReady +PodScheduled
            start j 0"#]],
    );
    check(
        &stage.at(4).ends("j", 0, 0, 3, 4).settle(),
        &expect![[r#"
            Pending
            i: Completed 0, ready
            s: running, started, ready
            j: Completed 0, ready
            c: PodInitializing
            d: PodInitializing
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c d] -ContainersReady +PodScheduled
            start c 0
            start d 0"#]],
    );
    check(
        &stage.at(5).runs("c", 0, 5).runs("d", 0, 5).settle(),
        &expect![[r#"
            Running
            i: Completed 0, ready
            s: running, started, ready
            j: Completed 0, ready
            c: running, started, ready
            d: running, started, ready
            +PodReadyToStartContainers +Initialized +Ready +ContainersReady +PodScheduled"#]],
    );
}

#[test]
fn sidecars_are_stopped_when_all_else_has_ended() {
    let spec = "
        restartPolicy: Never
        initContainers: [{name: s, image: side, restartPolicy: Always}]
        containers: [{name: c, image: task}]
    ";
    let mut stage = Stage::begun(spec);
    stage.at(1).runs("s", 0, 1).runs("c", 0, 1).settle();
    check(
        &stage.at(6).ends("c", 0, 0, 1, 6).settle(),
        &expect![[r#"
            Running
            s: running, started, ready
            c: Completed 0
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled
            stop within 30s"#]],
    );
    check(
        &stage.at(7).ends("s", 0, 143, 1, 7).settle(),
        &expect![[r#"
            Succeeded
            s: Error 143
            c: Completed 0
            -PodReadyToStartContainers +Initialized PodCompleted -Ready PodCompleted -ContainersReady +PodScheduled"#]],
    );
}

#[test]
fn a_sidecar_that_ends_runs_again() {
    let spec = "
        restartPolicy: Never
        initContainers: [{name: s, image: side, restartPolicy: Always}]
        containers: [{name: c, image: task}]
    ";
    let mut stage = Stage::begun(spec);
    stage.at(1).runs("s", 0, 1).runs("c", 0, 1).settle();
    check(
        &stage.at(3).ends("s", 0, 0, 1, 3).settle(),
        &expect![[r#"
            Running
            s: Completed 0
            c: running, started, ready
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [s] -ContainersReady +PodScheduled
            start s 1"#]],
    );
}

#[test]
fn an_init_container_that_fails_for_good_fails_the_pod() {
    let mut stage = Stage::begun(WITH_INIT);
    check(
        &stage.at(2).ends("i", 0, 1, 1, 2).settle(),
        &expect![[r#"
            Failed
            i: Error 1
            s: PodInitializing
            j: PodInitializing
            c: PodInitializing
            d: PodInitializing
            -PodReadyToStartContainers -Initialized ContainersNotInitialized: containers with incomplete status: [i s j] -Ready PodFailed -ContainersReady +PodScheduled"#]],
    );
}

#[test]
fn containers_can_have_rules_of_their_own_for_restarts() {
    let spec = "
        restartPolicy: Never
        containers:
        - name: c
          image: task
          restartPolicy: Never
          restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]
    ";
    let mut stage = Stage::begun(spec);
    stage.at(1).runs("c", 0, 1).settle();
    assert_eq!(stage.at(2).ends("c", 0, 42, 1, 2).settle().lines().last(), Some("start c 1"));
    let mut stage = Stage::begun(spec);
    stage.at(1).runs("c", 0, 1).settle();
    assert_eq!(stage.at(2).ends("c", 0, 1, 1, 2).settle().lines().next(), Some("Failed"));
}

#[test]
fn a_container_that_cannot_start_says_why() {
    let mut stage = Stage::begun(SERVER);
    let (reason, message) = ("CreateContainerConfigError".to_owned(), "configmap \"x\" not found".to_owned());
    stage.refused.insert("c".into(), CannotStart { reason, message });
    check(
        &stage.settle(),
        &expect![[r#"
            Pending
            c: CreateContainerConfigError configmap "x" not found
            +PodReadyToStartContainers +Initialized -Ready ContainersNotReady: containers with unready status: [c] -ContainersReady +PodScheduled
            start c 0"#]],
    );
}

#[test]
fn what_others_have_set_stays() {
    let mut stage = Stage::begun(SERVER);
    let condition =
        |type_: &str| PodCondition { type_: type_.into(), status: "True".into(), ..Default::default() };
    let status = stage.pod.status.as_mut().unwrap();
    status.nominated_node_name = Some("other".into());
    status.conditions.as_mut().unwrap().push(condition("DisruptionTarget"));
    let next = stage.at(1).runs("c", 0, 1).step().status;
    assert_eq!(next.nominated_node_name.as_deref(), Some("other"));
    assert_eq!(next.qos_class.as_deref(), Some("BestEffort"));
    assert_eq!(next.conditions.unwrap()[0], condition("DisruptionTarget"));
}

#[test]
fn a_pod_that_somebody_declared_running_does_not_go_back() {
    let mut stage = Stage::begun(SERVER);
    stage.pod.status.as_mut().unwrap().phase = Some("Running".into());
    assert_eq!(stage.settle().lines().next(), Some("Running"));
}
