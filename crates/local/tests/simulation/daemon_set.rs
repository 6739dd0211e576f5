use expect_test::expect;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Family, Script, State};
use serde_json::{Value, json};

use crate::simulation::sets::{course, disturbed, world};

fn sets() -> Kind {
    Kind::of::<DaemonSet>()
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"disk": "ssd"}}})
}

fn set(extra: &Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "log"}},
        "template": {
            "metadata": {"labels": {"app": "log"}},
            "spec": {
                "containers": [{"name": "log", "image": "log:1"}],
                "nodeSelector": {"disk": "ssd"},
                // Nodes are made with this taint, and nobody here takes it off.
                "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
            },
        },
    });
    if let (Some(spec), Some(extra)) = (spec.as_object_mut(), extra.as_object()) {
        spec.extend(extra.clone());
    }
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "log"}, "spec": spec})
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "log", "image": image}]}}}})
}

fn on_two_nodes(script: Script) -> Check {
    world(script).given(node("one")).given(node("two"))
}

fn taint(effect: &str) -> Value {
    json!({"spec": {"taints": [{"key": "out", "effect": effect}]}})
}

/// So many pods at most are there for each node.
fn at_most(most: usize) -> impl Fn(&State) -> Result<(), String> {
    let aim = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0\
               /matchFields/0/values/0";
    move |state| {
        for node in ["one", "two", "three"] {
            let on_node = |pod: &&Value| pod.pointer(aim).is_some_and(|name| name == node);
            let count = state.of(&Kind::of::<Pod>()).filter(on_node).count();
            if count > most {
                return Err(format!("{count} pods for {node}"));
            }
        }
        Ok(())
    }
}

#[test]
fn every_node_has_its_pod_wherever_it_dies() {
    let nodes = Kind::of::<Node>();
    let script = Script::new()
        .create(set(&json!({})))
        .create(node("three"))
        .delete(&nodes, "one")
        .patch(&nodes, "two", taint("NoSchedule"))
        .patch(&nodes, "three", taint("NoExecute"))
        .patch(&nodes, "three", json!({"spec": {"taints": null}}));
    disturbed(on_two_nodes(script).always("a node has one pod at most", at_most(1))).run();
}

#[test]
fn an_update_and_the_way_back_come_to_the_same_end_wherever_it_dies() {
    let script = Script::new()
        .create(set(&json!({"minReadySeconds": 3})))
        .patch(&sets(), "log", image("log:2"))
        .patch(&sets(), "log", image("log:1"));
    let check = on_two_nodes(script).always("a node has one pod at most", at_most(1));
    // By a clock that is an hour slow nothing has been ready for three seconds.
    disturbed(check.but(Family::ClockJumps)).run();
}

#[test]
fn a_surge_comes_to_the_same_end_wherever_it_dies() {
    let surge = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let script = Script::new()
        .create(set(&json!({"updateStrategy": surge})))
        .patch(&sets(), "log", image("log:2"))
        .patch(&Kind::of::<Node>(), "two", json!({"metadata": {"labels": {"disk": "hdd"}}}));
    let some_is_ready = |state: &State| {
        let is_ready = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
            conditions.into_iter().flatten().any(ready)
        };
        let done = state.of(&sets()).any(|set| set["status"]["numberReady"] == 2);
        let ready = state.of(&Kind::of::<Pod>()).filter(is_ready).count();
        if done && ready == 0 { Err("no pod is ready".to_owned()) } else { Ok(()) }
    };
    let check = on_two_nodes(script)
        .always("two pods at most", at_most(2))
        .always("some pod is ready", some_is_ready);
    disturbed(check).run();
}

#[test]
fn a_set_that_is_deleted_and_made_anew_comes_to_the_same_end_wherever_it_dies() {
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    let script = Script::new()
        .create(set(&on_delete))
        .delete(&sets(), "log")
        .at_once()
        .create(set(&on_delete))
        .patch(&sets(), "log", image("log:2"));
    disturbed(on_two_nodes(script)).run();
}

#[test]
fn whatever_goes_wrong_it_comes_to_the_same_end() {
    let script = Script::new().create(set(&json!({})));
    world(script).given(node("one")).silent().every_fault().run();
}

#[test]
fn the_course_of_nodes() {
    let nodes = Kind::of::<Node>();
    let script = Script::new()
        .create(set(&json!({})))
        .create(node("three"))
        .delete(&nodes, "one")
        .patch(&nodes, "two", taint("NoSchedule"))
        .patch(&nodes, "three", taint("NoExecute"))
        .patch(&nodes, "three", json!({"spec": {"taints": null}}))
        .patch(&sets(), "log", image("log:2"));
    expect![[r#"
        step 1: create DaemonSet log
        controllerrevisions.apps log-c6a6f063f6: created
        pods log-hhwbz: created
        pods log-xzglb: created
        step 2: create Node three
        pods log-gkztl: created
        step 3: delete Node one
        pods log-hhwbz: removed
        step 4: patch Node two with {"spec":{"taints":[{"effect":"NoSchedule","key":"out"}]}}
        step 5: patch Node three with {"spec":{"taints":[{"effect":"NoExecute","key":"out"}]}}
        pods log-gkztl: removed
        step 6: patch Node three with {"spec":{"taints":null}}
        pods log-w4j6v: created
        step 7: patch DaemonSet log with {"spec":{"template":{"spec":{"containers":[{"image":"log:2","name":"log"}]}}}}
        controllerrevisions.apps log-7116aa9ae4: created
        pods log-w4j6v: removed
        pods log-fm4f8: created
        pods log-xzglb: removed"#]].assert_eq(&course(&on_two_nodes(script)));
}

#[test]
fn the_course_of_a_surge() {
    let surge = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let script = Script::new()
        .create(set(&json!({"updateStrategy": surge})))
        .patch(&sets(), "log", image("log:2"))
        .patch(&Kind::of::<Node>(), "two", json!({"metadata": {"labels": {"disk": "hdd"}}}));
    expect![[r#"
        step 1: create DaemonSet log
        controllerrevisions.apps log-c6a6f063f6: created
        pods log-hhwbz: created
        pods log-xzglb: created
        step 2: patch DaemonSet log with {"spec":{"template":{"spec":{"containers":[{"image":"log:2","name":"log"}]}}}}
        controllerrevisions.apps log-7116aa9ae4: created
        pods log-gkztl: created
        pods log-hhwbz: removed
        pods log-w4j6v: created
        pods log-xzglb: removed
        step 3: patch Node two with {"metadata":{"labels":{"disk":"hdd"}}}
        pods log-w4j6v: removed"#]].assert_eq(&course(&on_two_nodes(script)));
}
