//! Pods that are processes of this machine, by a rule of `--rules`.

use crate::up::kubectl::{World, is_running};
use mainstay_testkit::eventually;
use serde_json::{Value, json};

/// What a pod that runs a script is. A `$$` in it is one `$`, as in all arguments of containers.
fn shell(policy: &str, script: &str) -> Value {
    let colour = json!({"configMapKeyRef": {"name": "settings", "key": "colour", "optional": true}});
    json!({
        "restartPolicy": policy,
        "containers": [{
            "name": "main",
            "image": "shell:1",
            "args": ["-c", script],
            "env": [{"name": "COLOUR", "valueFrom": colour}],
            "volumeMounts": [{"name": "keys", "mountPath": "/etc/keys"}, {"name": "work", "mountPath": "/work"}],
        }],
        "volumes": [
            {"name": "keys", "secret": {"secretName": "keys", "optional": true}},
            {"name": "work", "emptyDir": {}},
        ],
    })
}

fn shell_pod(name: &str, policy: &str, script: &str) -> String {
    let spec = shell(policy, script);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}).to_string()
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
async fn a_job_of_a_listed_image_sees_its_configuration_and_fails_with_its_exit_code() {
    let Some(world) = World::start("a Job of a listed image on mainstay up") else { return };
    let settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: green}}";
    let keys = "{apiVersion: v1, kind: Secret, metadata: {name: keys}, stringData: {door: sesame}}";
    let script = "echo $COLOUR; cat $MAINSTAY_ROOT/etc/keys/door; exit 3";
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once"},
        "spec": {"backoffLimit": 0, "template": {"spec": shell("Never", script)}},
    });
    world.apply(&format!("{settings}\n---\n{keys}\n---\n{job}\n")).await;
    world.kubectl(&["wait", "job/once", "--for=condition=Failed", "--timeout=80s"]).await;
    assert_eq!(world.kubectl(&["logs", "job/once"]).await, "green\nsesame");
    let fields = "jsonpath={range .items[*]}{.status.phase} {.status.containerStatuses[0].state.terminated.exitCode} \
                  {.status.containerStatuses[0].restartCount}{end}";
    let pods = world.kubectl(&["get", "pods", "-l", "job-name=once", "-o", fields]).await;
    assert_eq!(pods, "Failed 3 0");
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

/// Starts a process that leaves its session and environment, says which it is, and goes on.
const ESCAPE: &str = "setsid env -i sleep 600 >/dev/null 2>&1 & echo $!;";

/// Whether a process of this number sleeps.
fn sleeps(pid: &str) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.starts_with(b"sleep\0")
}

async fn escaped(world: &World, name: &str) -> String {
    world.wait(&format!("pod/{name}"), ".status.phase", "Running").await;
    let pid = world.follow(&format!("pod/{name}")).line().await.unwrap();
    eventually("it has left", async || sleeps(&pid).then_some(())).await;
    pid
}

#[tokio::test]
async fn what_has_left_its_session_and_its_environment_ends_with_its_pod() {
    let Some(world) = World::start("setsid env -i on mainstay up") else { return };
    let gate = world.path().join("gate");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done; exit 3", gate.display());
    world.apply(&shell_pod("other", "Never", &format!("{ESCAPE} sleep 600"))).await;
    let other = escaped(&world, "other").await;
    world.apply(&shell_pod("web", "Never", &format!("{ESCAPE} {wait}"))).await;
    // Its working directory does not give it away either.
    world.apply(&shell_pod("rooted", "Never", &format!("cd /; {ESCAPE} {wait}"))).await;
    let (web, rooted) = (escaped(&world, "web").await, escaped(&world, "rooted").await);
    std::fs::write(&gate, "").unwrap();
    for pod in ["pod/web", "pod/rooted"] {
        world.wait(pod, ".status.phase", "Failed").await;
        // Nobody has read it in place of those who wait for the container.
        assert_eq!(world.field(pod, ".status.containerStatuses[0].state.terminated.exitCode").await, "3");
    }
    let is_gone = |pid: &str| !std::path::Path::new("/proc").join(pid).exists();
    eventually("the one that ended is reaped", async || is_gone(&web).then_some(())).await;
    assert!(sleeps(&other) && sleeps(&rooted), "another pod runs that could have started the second");
    world.kubectl(&["delete", "pod", "other", "--grace-period=1", "--timeout=80s"]).await;
    eventually("both are gone", async || (is_gone(&other) && is_gone(&rooted)).then_some(())).await;
}

#[tokio::test]
async fn what_has_left_everything_ends_with_the_cluster() {
    let Some(mut world) = World::start("the end of mainstay up with escaped processes") else { return };
    world.apply(&shell_pod("web", "Never", &format!("cd /; {ESCAPE} sleep 600"))).await;
    let pid = escaped(&world, "web").await;
    let mut run = world.take_run();
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
    assert!(!sleeps(&pid));
}
