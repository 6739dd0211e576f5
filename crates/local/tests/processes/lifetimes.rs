//! From start to end.

use std::time::Duration;

use futures::FutureExt as _;
use mainstay_local::node::runtime::{Launch, Observed, Runtime as _};
use mainstay_testkit::eventually;
use serde_json::json;

use crate::processes::world::{World, is_alive, options};

#[tokio::test]
async fn exit_code_is_the_process_own() {
    let world = World::new().await;
    let id = world.run("web", "exit 3").await;
    assert_eq!(world.ended(&id).await, (3, None));
    eventually("the node is told", async || world.was_told_of("web").then_some(())).await;
}

#[tokio::test]
async fn signal_is_told_by_the_exit_code() {
    let world = World::new().await;
    let id = world.run("web", "kill -9 $$$$").await;
    assert_eq!(world.ended(&id).await, (137, None));
}

#[tokio::test]
async fn container_without_probes_is_ready_when_it_runs() {
    let world = World::new().await;
    let id = world.run("web", "sleep 1000").await;
    let Observed::Running { attempt: 0, started: true, ready: true, .. } = world.observe(&id) else {
        panic!("{:?}", world.observe(&id));
    };
    world.stop(&id, 30);
    assert_eq!(world.ended(&id).await.0, 143);
}

#[tokio::test]
async fn process_that_will_not_end_is_killed_after_its_grace() {
    let world = World::new().await;
    let id = world.run("web", "trap '' TERM; echo deaf; while :; do sleep 0.05; done").await;
    world.line(&id, "deaf").await;
    world.stop(&id, 1);
    assert_eq!(world.ended(&id).await, (137, None));
}

#[tokio::test]
async fn shorter_grace_takes_the_place_of_a_longer_one() {
    let world = World::new().await;
    let id = world.run("web", "trap '' TERM; echo deaf; while :; do sleep 0.05; done").await;
    world.line(&id, "deaf").await;
    world.stop(&id, 3600);
    world.stop(&id, 0);
    assert_eq!(world.ended(&id).await.0, 137);
}

#[tokio::test]
async fn process_can_end_by_itself_when_it_is_asked_to() {
    let world = World::new().await;
    let script = "trap 'echo goodbye; exit 0' TERM; echo listening; while :; do sleep 0.05; done";
    let id = world.run("web", script).await;
    world.line(&id, "listening").await;
    world.stop(&id, 30);
    assert_eq!(world.ended(&id).await, (0, None));
    assert!(world.log(&id, 0).ends_with("goodbye\n"));
}

#[tokio::test]
async fn what_a_process_has_started_ends_with_it() {
    let world = World::new().await;
    let id = world.run("web", "sleep 1000 & echo child $!; exit 0").await;
    let line = world.line(&id, "child ").await;
    assert_eq!(world.ended(&id).await.0, 0);
    let child = line.strip_prefix("child ").unwrap();
    eventually("the child is gone", async || (!is_alive(child)).then_some(())).await;
}

#[tokio::test]
async fn what_has_left_its_group_ends_with_its_container_and_with_no_other() {
    let world = World::new().await;
    let script = "setsid sleep 1000 & echo child $!";
    let other = world.run("other", &format!("{script}; wait")).await;
    let id = world.run("web", &format!("{script}; sleep 0.2; exit 0")).await;
    let (line, others) = (world.line(&id, "child ").await, world.line(&other, "child ").await);
    assert_eq!(world.ended(&id).await.0, 0);
    let pid = |line: &str| line.strip_prefix("child ").unwrap().to_owned();
    eventually("the child is gone", async || (!is_alive(&pid(&line))).then_some(())).await;
    assert!(is_alive(&pid(&others)));
    world.processes.shutdown(Duration::from_secs(30)).await;
    eventually("the other is gone", async || (!is_alive(&pid(&others))).then_some(())).await;
}

/// Four chains of processes, each of which starts its successor in a session of its own and ends. They end by themselves after some
/// thousands, and say so.
const CHAINS: &str = r#"
cat > $MAINSTAY_ROOT/hop <<'END'
[ "$1" = 0 ] && { echo chain has ended; exit; }
setsid sh $MAINSTAY_ROOT/hop $(($1 - 1)) &
END
for chain in 1 2 3 4; do setsid sh $MAINSTAY_ROOT/hop 5000 & done
exit 0
"#;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_starts_others_faster_than_it_is_killed_ends_with_its_container() {
    let world = World::new().await;
    let id = world.run("web", CHAINS).await;
    assert_eq!(world.ended(&id).await.0, 0);
    let directory = world.pod_directory(&id).display().to_string();
    let is_of_the_pod = |entry: std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&directory)
    };
    let left = std::fs::read_dir("/proc").unwrap().flatten().map(is_of_the_pod);
    assert_eq!(left.filter(|is_left| *is_left).count(), 0);
    assert_eq!(world.log(&id, 0), "", "no chain came to its own end");
}

#[tokio::test]
async fn next_attempt_has_files_of_its_own() {
    let world = World::new().await;
    let script = "echo attempt; ls -A $MAINSTAY_ROOT; touch $MAINSTAY_ROOT/left; exit 1";
    let no_token = json!({"automountServiceAccountToken": false});
    let pod = world.pod("web", json!({"args": [script]}), no_token).await;
    for attempt in 0..3 {
        let id = world.start(&pod, attempt).await.unwrap();
        assert_eq!(world.ended(&id).await.0, 1);
        assert_eq!(world.log(&id, attempt), "attempt\nhome\ntmp\n");
        // Asked for the same again, nothing more is done.
        world.start(&pod, attempt).await.unwrap();
        let Observed::Exited { attempt: last, .. } = world.observe(&id) else { panic!("it runs") };
        assert_eq!(last, attempt);
    }
    let id = crate::processes::world::id(&pod);
    assert_eq!((world.log(&id, 0), world.log(&id, 1)), (String::new(), "attempt\nhome\ntmp\n".into()));
}

#[tokio::test]
async fn what_cannot_be_run_is_named() {
    let world = World::new().await;
    let cases = [
        (
            json!({"command": ["no-such-program"]}),
            "RunContainerError",
            "exec: \"no-such-program\": executable file not found in $PATH",
        ),
        (
            json!({"command": ["/no/such"]}),
            "RunContainerError",
            "exec: \"/no/such\": no such file or directory",
        ),
        (
            json!({"args": ["true"], "workingDir": "/no/such"}),
            "RunContainerError",
            "workingDir \"/no/such\" is not there",
        ),
        (
            json!({"args": ["true"], "securityContext": {"privileged": true}}),
            "CreateContainerConfigError",
            "securityContext.privileged is not possible for a pod that runs as a local process",
        ),
        (
            json!({"args": ["true"], "envFrom": [{"configMapRef": {"name": "absent"}}]}),
            "CreateContainerConfigError",
            "configmap \"absent\" not found",
        ),
    ];
    for (number, (container, reason, message)) in cases.into_iter().enumerate() {
        let pod = world.pod(&format!("pod-{number}"), container, json!({})).await;
        let refused = world.start(&pod, 0).await.unwrap_err();
        assert_eq!((refused.reason.as_str(), refused.message.as_str()), (reason, message));
        assert_eq!(world.observe(&crate::processes::world::id(&pod)), Observed::Absent);
    }
}

#[tokio::test]
async fn addresses_differ_and_stay() {
    let world = World::new().await;
    let (a, b) = (world.run("a", "sleep 1000").await, world.run("b", "sleep 1000").await);
    let (first, second) = (world.processes.address(&a), world.processes.address(&b));
    assert_ne!(first, second);
    assert!(first.starts_with("127.") && !first.starts_with("127.0.0."));
    let again = world.again().await;
    assert_eq!((again.processes.address(&a), again.processes.address(&b)), (first, second));
}

#[tokio::test]
async fn forgotten_pod_leaves_nothing() {
    let world = World::new().await;
    let id = world.run("web", "setsid sleep 1000 & echo child $!; wait").await;
    let line = world.line(&id, "child ").await;
    let directory = world.pod_directory(&id);
    assert!(directory.exists());
    world.processes.forget(&id);
    eventually("its files are gone", async || (!directory.exists()).then_some(())).await;
    let child = line.strip_prefix("child ").unwrap();
    eventually("its processes are gone", async || (!is_alive(child)).then_some(())).await;
    assert_eq!(world.observe(&id), Observed::Absent);
    assert!(world.processes.pods().is_empty());
}

#[tokio::test]
async fn pod_that_is_forgotten_while_it_starts_leaves_nothing() {
    let world = World::new().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    world.create(secrets, json!({"metadata": {"name": "keys"}, "stringData": {"password": "hunter2"}})).await;
    let container = json!({"args": ["sleep 1000"], "volumeMounts": [{"name": "keys", "mountPath": "/keys"}]});
    let volumes = json!([{"name": "keys", "secret": {"secretName": "keys"}}]);
    let pod = world.pod("web", container, json!({"volumes": volumes})).await;
    let id = crate::processes::world::id(&pod);
    let address = world.processes.address(&id);
    let launch = Launch { pod: id.clone(), object: pod, container: "main".into(), attempt: 0, address };
    let mut starting = world.processes.start(launch.clone());
    assert!((&mut starting).now_or_never().is_none(), "it reads what the pod refers to");
    world.processes.forget(&id);
    let directory = world.pod_directory(&id);
    eventually("its files are gone", async || (!directory.exists()).then_some(())).await;
    assert!(starting.await.is_err());
    // Its next container is not a way back either.
    assert!(world.processes.start(launch).await.is_err());
    assert!(!directory.exists());
    assert!(world.processes.pods().is_empty());
}

#[tokio::test]
async fn what_a_killed_node_left_is_ended_by_the_next() {
    let world = World::new().await;
    let id = world.run("web", "sleep 1000 & setsid sleep 1000 & echo pids $$$$ $! ; wait").await;
    let line = world.line(&id, "pids ").await;
    let pids: Vec<&str> = line.split(' ').skip(1).collect();
    assert!(pids.iter().all(|pid| is_alive(pid)));
    // The first node knows nothing of the second, as if it were dead.
    let next = world.again().await;
    assert!(pids.iter().all(|pid| !is_alive(pid)), "{line}");
    let (code, message) = next.ended(&id).await;
    assert_eq!((code, message.as_deref()), (137, Some("The node was killed while the container ran")));
    assert!(matches!(next.observe(&id), Observed::Exited { by_node: true, .. }));
    assert_eq!(next.processes.pods(), [id]);
}

#[tokio::test]
async fn shutdown_ends_everything_and_nothing_of_it_is_a_success() {
    let world = World::new().await;
    let script = "trap 'exit 0' TERM; echo listening; while :; do sleep 0.05; done";
    let (id, other) = (world.run("web", script).await, world.run("done", "exit 0").await);
    world.line(&id, "listening").await;
    world.ended(&other).await;
    world.processes.shutdown(Duration::from_secs(30)).await;
    let next = world.again().await;
    assert_eq!(next.ended(&id).await, (143, Some("The node was shut down".into())));
    assert_eq!(next.ended(&other).await, (0, None));
    assert!(matches!(next.observe(&id), Observed::Exited { by_node: true, .. }));
    assert!(matches!(next.observe(&other), Observed::Exited { by_node: false, .. }));
    let late = world.pod("late", json!({"args": ["true"]}), json!({})).await;
    assert!(world.start(&late, 0).await.is_err());
}

#[tokio::test]
async fn dropped_runtime_leaves_no_process() {
    let world = World::new().await;
    let id = world.run("web", "setsid sleep 1000 & echo pids $$$$ $!; sleep 1000").await;
    let line = world.line(&id, "pids ").await;
    let World { processes, .. } = world;
    drop(processes);
    for pid in line.split(' ').skip(1) {
        eventually("the process is gone", async || (!is_alive(pid)).then_some(())).await;
    }
}

#[tokio::test]
async fn directory_that_cannot_be_used_is_an_error() {
    let world = World::new().await;
    let file = world.directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let opened = mainstay_local::node::process::Processes::open(options(&file), world.client.clone()).await;
    assert!(opened.is_err());
}
