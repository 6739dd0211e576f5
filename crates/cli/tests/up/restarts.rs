//! What runs when `up` ends, in whichever way, and when it comes back.

use crate::up::kubectl::{World, is_running};
use crate::up::processes::{sleeping, start_sleeper};
use crate::up::run::{Run, mainstay};
use crate::up::text;
use std::collections::BTreeSet;

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
";
const RESTARTS: &str = ".status.containerStatuses[0].restartCount";

#[tokio::test]
async fn after_kill_9_pods_run_again_and_nothing_is_left_of_before() {
    let Some(mut world) = World::start("kill -9 of mainstay up") else { return };
    world.apply(WEB).await;
    world.rollout("deployment/web").await;
    let before = start_sleeper(&world, "sleeper").await;
    let objects = ["get", "deployments,replicasets,pods", "-o", "jsonpath={.items[*].metadata.uid}"];
    let uids = world.kubectl(&objects).await;

    world.take_run().kill();
    assert!(is_running(&before, world.path()), "nobody was there to end it");
    world.restart();
    assert!(!is_running(&before, world.path()));
    world.wait("pod/sleeper", RESTARTS, "1").await;
    let after = sleeping(&world, "sleeper").await;
    assert!(is_running(&after, world.path()));
    assert_ne!(before, after);
    world.rollout("deployment/web").await;
    assert_eq!(world.kubectl(&objects).await, uids);
}

#[tokio::test]
async fn ctrl_c_ends_processes_and_the_next_start_runs_them_again() {
    let Some(mut world) = World::start("Ctrl-C of mainstay up") else { return };
    let before = start_sleeper(&world, "sleeper").await;
    let mut run = world.take_run();
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!is_running(&before, world.path()));
    world.restart();
    world.wait("pod/sleeper", RESTARTS, "1").await;
    assert_eq!(world.kubectl(&["logs", "sleeper", "--previous"]).await, format!("{before}\ntold to end\n"));
}

#[tokio::test]
async fn two_on_two_directories_do_not_touch_each_other() {
    let Some(mut one) = World::start("two of mainstay up at once") else { return };
    let Some(other) = World::start("two of mainstay up at once") else { return };
    let of_one = start_sleeper(&one, "sleeper").await;
    let of_other = start_sleeper(&other, "sleeper").await;
    assert_ne!(of_one, of_other);
    one.apply(WEB).await;
    one.rollout("deployment/web").await;
    assert_eq!(other.kubectl(&["get", "deployments", "-o", "name"]).await, "");

    // Not even when one of them tidies up after itself.
    one.take_run().kill();
    one.restart();
    assert!(!is_running(&of_one, one.path()));
    assert!(is_running(&of_other, other.path()));
    assert_eq!(other.field("pod/sleeper", RESTARTS).await, "0");
}

#[tokio::test]
async fn what_one_in_memory_leaves_when_it_is_killed_goes_with_the_next_start_of_any() {
    let Some(mut world) = World::start_in_memory("kill -9 of mainstay up --memory") else { return };
    let directories = |world: &World| {
        let entries = std::fs::read_dir(world.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("mainstay-memory-")).collect::<BTreeSet<String>>()
    };
    let first = directories(&world);
    let of_killed = start_sleeper(&world, "sleeper").await;
    let killed = world.take_run();
    world.restart();
    assert_eq!(directories(&world).len(), 2, "one that runs is left alone");
    assert!(is_running(&of_killed, world.path()));
    let of_living = start_sleeper(&world, "sleeper").await;

    killed.kill();
    assert!(is_running(&of_killed, world.path()), "nobody was there to end it");
    let mut other = mainstay(&["up", "--listen", "127.0.0.1:0", "--data", text(&world.path().join("state"))]);
    other.env("TMPDIR", world.path());
    let (_other, _) = Run::up_with(other);
    assert!(!is_running(&of_killed, world.path()));
    assert!(directories(&world).is_disjoint(&first));
    assert!(is_running(&of_living, world.path()));
}
