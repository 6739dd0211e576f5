//! Pods that are processes of this machine, by a rule of `--rules`.

use crate::kubectl::{World, is_running};

/// A pod that runs a script. A `$$` in it is one `$`, as in all arguments of containers.
fn shell_pod(name: &str, policy: &str, script: &str) -> String {
    let script = serde_json::to_string(script).unwrap();
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: {policy}
  containers:
  - name: main
    image: shell:1
    args: [-c, {script}]
    env:
    - {{name: COLOUR, valueFrom: {{configMapKeyRef: {{name: settings, key: colour, optional: true}}}}}}
    volumeMounts:
    - {{name: keys, mountPath: /etc/keys}}
    - {{name: work, mountPath: /work}}
  volumes:
  - {{name: keys, secret: {{secretName: keys, optional: true}}}}
  - {{name: work, emptyDir: {{}}}}
"
    )
}

/// Says which process it is, and runs until it is told to end. What the shell says of the end of `sleep` is not for the log.
const SLEEPER: &str = "exec 2>/dev/null; trap 'echo told to end; exit 0' TERM; echo $$$$; sleep 600 & wait";

/// Applies a [`SLEEPER`] and waits for it. Gives its process.
pub(crate) async fn start_sleeper(world: &World, name: &str) -> String {
    world.apply(&shell_pod(name, "Always", SLEEPER)).await;
    let pid = sleeping(world, name).await;
    assert!(is_running(&pid, world.path()));
    pid
}

/// The process that a sleeper says it is.
pub(crate) async fn sleeping(world: &World, name: &str) -> String {
    let pod = format!("pod/{name}");
    world.wait(&pod, ".status.phase", "Running").await;
    world.follow(&pod).line().await.unwrap()
}

#[tokio::test]
async fn a_process_sees_its_configuration_and_how_it_ends_is_seen() {
    let Some(world) = World::start("a process pod on mainstay up") else { return };
    world
        .apply(
            "
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: green}}
---
{apiVersion: v1, kind: Secret, metadata: {name: keys}, stringData: {door: sesame}}
",
        )
        .await;
    let script = "echo $COLOUR; cat $MAINSTAY_ROOT/etc/keys/door; exit 3";
    world.apply(&shell_pod("once", "Never", script)).await;
    world.wait("pod/once", ".status.phase", "Failed").await;
    assert_eq!(world.kubectl(&["logs", "once"]).await, "green\nsesame");
    let state = ".status.containerStatuses[0].state.terminated.exitCode";
    assert_eq!(world.field("pod/once", state).await, "3");
    assert_eq!(world.field("pod/once", ".status.containerStatuses[0].restartCount").await, "0");
}

#[tokio::test]
async fn one_that_fails_is_restarted_and_the_log_before_is_kept() {
    let Some(world) = World::start("restarts on mainstay up") else { return };
    let script = "cd $MAINSTAY_ROOT/work; if [ -e been ]; then echo second; exit 0; fi; touch been; echo first; exit 3";
    world.apply(&shell_pod("twice", "OnFailure", script)).await;
    world.wait("pod/twice", ".status.phase", "Succeeded").await;
    assert_eq!(world.field("pod/twice", ".status.containerStatuses[0].restartCount").await, "1");
    let last = ".status.containerStatuses[0].lastState.terminated.exitCode";
    assert_eq!(world.field("pod/twice", last).await, "3");
    assert_eq!(world.kubectl(&["logs", "twice"]).await, "second\n");
    assert_eq!(world.kubectl(&["logs", "twice", "--previous"]).await, "first\n");
}

#[tokio::test]
async fn a_log_is_followed_to_its_end() {
    let Some(world) = World::start("kubectl logs -f on mainstay up") else { return };
    let gate = world.path().join("gate");
    let script = format!("echo before; until [ -e {} ]; do sleep 0.05; done; echo after", gate.display());
    world.apply(&shell_pod("gated", "Never", &script)).await;
    world.wait("pod/gated", ".status.phase", "Running").await;
    let mut log = world.follow("pod/gated");
    assert_eq!(log.line().await.as_deref(), Some("before"));
    std::fs::write(&gate, "").unwrap();
    assert_eq!(log.line().await.as_deref(), Some("after"));
    assert_eq!(log.line().await, None);
}

#[tokio::test]
async fn a_deleted_process_is_told_and_has_its_last_words() {
    let Some(world) = World::start("graceful deletion on mainstay up") else { return };
    let pid = start_sleeper(&world, "sleeper").await;
    let mut log = world.follow("pod/sleeper");
    assert_eq!(log.line().await.as_ref(), Some(&pid));
    world.kubectl(&["delete", "pod", "sleeper", "--timeout=80s"]).await;
    assert_eq!(log.line().await.as_deref(), Some("told to end"));
    assert_eq!(log.line().await, None);
    assert!(!is_running(&pid, world.path()));
}
