use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use mainstay::{Kind, Replicas};
use mainstay_local::controllers::{NAME, configure_only};
use mainstay_testkit::simulation::{
    Change, Check, Family, Program, Script, State, What, check, operator, pods,
};
use serde_json::{Value, json};

use crate::simulation::controllers_of;

fn deployments() -> Kind {
    Kind::of::<Deployment>()
}

fn sets() -> Kind {
    Kind::of::<ReplicaSet>()
}

fn deployment(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "progressDeadlineSeconds": 60,
            "template": template(),
        },
    })
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    })
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})
}

fn world(script: Script) -> Check {
    world_of(controllers_of(&["Deployment", "ReplicaSet"]), script)
}

fn world_of(controllers: Program, script: Script) -> Check {
    // A template that nobody saw never gets a set, so the user waits. The stand-in for a kubelet gives addresses by name, and which of
    // the free names a pod gets depends on when others go.
    let (pod, pods) = (Kind::of::<Pod>(), pods());
    let check = check(controllers).beside(pods).script(script).silent().patient();
    // How many names were used up depends on how many pods were made and removed on the way.
    let used = "/metadata/annotations/mainstay.dev~1pod-numbers-used";
    let check = check.ignoring_in(&Kind::of::<ReplicaSet>(), used);
    check.ignoring_in(&pod, "/status/podIP").ignoring_in(&pod, "/status/podIPs")
}

/// The names of the sets that are made in a world, in this order.
fn made_sets(script: Script) -> Vec<String> {
    let trace = world(script).trace();
    let made = trace.0.iter().filter_map(|entry| match &entry.what {
        What::Changed { place, change: Change::Created } if &*place.resource == "replicasets.apps" => {
            Some(place.name.to_string())
        }
        _ => None,
    });
    made.collect()
}

/// At each of the places at which a rollout can be interrupted for good.
fn interrupted(check: Check) -> Check {
    check.every_crash_point().every_time_travel().but(Family::TwoLeaders).seeds(6)
}

/// How many pods the sets want.
fn wanted(state: &State) -> i64 {
    state.of(&sets()).filter_map(|set| set.pointer("/spec/replicas")?.as_i64()).sum()
}

#[test]
fn it_rolls_out_within_its_limits() {
    let script = Script::new().create(deployment(2)).patch(&deployments(), "web", image("web:2"));
    let check = world(script).always("there is at most one pod too many", |state| match wanted(state) {
        0..=3 => Ok(()),
        wanted => Err(format!("{wanted} pods are wanted")),
    });
    interrupted(check).run();
}

#[test]
fn it_comes_to_the_same_end_whatever_goes_wrong() {
    let script = Script::new().create(deployment(1));
    world(script).every_fault().but(Family::TwoLeaders).seeds(10).run();
}

#[test]
fn with_a_lease_a_second_leader_does_no_harm() {
    // A move is decided from all sets at once. Two who know different ones could not agree.
    let controllers = operator(NAME, |operator| {
        configure_only(operator, |kind| ["Deployment", "ReplicaSet"].contains(&kind.kind()))
            .replicas(Replicas::leader("default"))
    });
    let script = Script::new().create(deployment(1)).patch(&deployments(), "web", image("web:2"));
    world_of(controllers, script).every_second_leader().run();
}

#[test]
fn it_goes_back_to_a_set_that_it_had() {
    let script = Script::new().create(deployment(1)).patch(&deployments(), "web", image("web:2")).patch(
        &deployments(),
        "web",
        image("web:1"),
    );
    interrupted(world(script)).run();
}

#[test]
fn changes_in_the_middle_of_a_rollout_come_to_the_same_end() {
    let mut web = deployment(2);
    web["spec"]["revisionHistoryLimit"] = 0.into();
    let script = Script::new()
        .create(web)
        .at_once()
        .patch(&deployments(), "web", image("web:2"))
        .at_once()
        .patch(&deployments(), "web", json!({"spec": {"replicas": 4}}))
        .at_once()
        .patch(&deployments(), "web", image("web:3"))
        .patch(&deployments(), "web", json!({"spec": {"replicas": 1}}));
    // Which templates had a set on the way, and so how high revisions go, depends on who was faster.
    let (deployments, sets) = (deployments(), sets());
    let check = world(script).ignoring_in(&deployments, "/metadata/annotations");
    interrupted(check.ignoring_in(&sets, "/metadata/annotations")).run();
}

#[test]
fn recreating_never_mixes_templates() {
    let recreate = json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}});
    let script = Script::new().create(deployment(2)).patch(&deployments(), "web", recreate).at_once().patch(
        &deployments(),
        "web",
        image("web:2"),
    );
    let check = world(script).always("all pods are of one template", |state| {
        let hash = |pod: &Value| pod.pointer("/metadata/labels/pod-template-hash").map(Value::to_string);
        let hashes: BTreeSet<String> = state.of(&Kind::of::<Pod>()).filter_map(hash).collect();
        if hashes.len() > 1 { Err(format!("there are pods of {hashes:?}")) } else { Ok(()) }
    });
    interrupted(check).run();
}

#[test]
fn a_rollout_that_gets_stuck_fails_and_can_be_taken_back() {
    let script = Script::new().create(deployment(2)).patch(&deployments(), "web", image("broken"));
    let stuck = interrupted(world(script.clone())).always("no pod is missed", |state| {
        let ready = |pod: &&Value| pod.pointer("/status/phase") == Some(&json!("Running"));
        let (all, running) = (wanted(state), state.of(&Kind::of::<Pod>()).filter(ready).count());
        if all > 2 && running < 2 { Err(format!("only {running} run")) } else { Ok(()) }
    });
    stuck.run();
    interrupted(world(script.patch(&deployments(), "web", image("web:1")))).run();
}

#[test]
fn nothing_is_rolled_out_while_it_is_paused() {
    let script = Script::new()
        .create(deployment(2))
        .patch(&deployments(), "web", json!({"spec": {"paused": true}}))
        .patch(&deployments(), "web", image("web:2"))
        .patch(&deployments(), "web", json!({"spec": {"replicas": 1}}))
        .patch(&deployments(), "web", json!({"spec": {"paused": false}}));
    interrupted(world(script)).run();
}

#[test]
fn no_more_old_sets_are_kept_than_there_should_be() {
    let mut web = deployment(1);
    web["spec"]["revisionHistoryLimit"] = 1.into();
    let script = Script::new()
        .create(web)
        .patch(&deployments(), "web", image("web:2"))
        .patch(&deployments(), "web", image("web:3"))
        .patch(&deployments(), "web", json!({"spec": {"revisionHistoryLimit": 0}}));
    interrupted(world(script)).run();
}

#[test]
fn it_is_made_anew_at_once() {
    let script =
        Script::new().create(deployment(2)).delete(&deployments(), "web").at_once().create(deployment(1));
    interrupted(world(script)).run();
}

#[test]
fn a_set_that_is_deleted_is_made_again() {
    let script = Script::new().create(deployment(2));
    let name = made_sets(script.clone()).remove(0);
    interrupted(world(script.delete(&sets(), &name))).run();
}

#[test]
fn a_set_with_the_template_is_adopted_and_one_that_no_longer_fits_is_released() {
    let legacy = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "legacy", "labels": {"app": "web"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template()},
    });
    let script = Script::new().create(legacy).create(deployment(2));
    assert_eq!(made_sets(script.clone()), ["legacy"]);
    interrupted(world(script.clone())).run();
    let relabelled = json!({"metadata": {"labels": {"app": "other"}}});
    interrupted(world(script.patch(&sets(), "legacy", relabelled))).run();
}

#[test]
fn a_name_that_is_taken_is_left_to_whoever_has_it() {
    let name = made_sets(Script::new().create(deployment(1))).remove(0);
    let labels = json!({"app": "other"});
    let foreign = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "x"}]}},
        },
    });
    let script = Script::new().create(foreign).create(deployment(1));
    let made = made_sets(script.clone());
    assert!(made.len() == 2 && made[0] == name && made[1].starts_with("web-"), "{made:?}");
    interrupted(world(script)).run();
}
