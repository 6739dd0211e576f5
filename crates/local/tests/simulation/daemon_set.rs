use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use mainstay::Kind;
use mainstay_local::controllers::{NAME, configure};
use mainstay_testkit::simulation::{Check, Script, State, check, operator, pods};
use serde_json::{Value, json};

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
            "spec": {"containers": [{"name": "log", "image": "log:1"}], "nodeSelector": {"disk": "ssd"}},
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

fn taint(effect: &str) -> Value {
    json!({"spec": {"taints": [{"key": "out", "effect": effect}]}})
}

fn world(script: Script) -> Check {
    check(operator(NAME, configure)).beside(pods()).given(node("one")).given(node("two")).script(script)
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
fn every_node_has_its_pod_whatever_goes_wrong() {
    let nodes = Kind::of::<Node>();
    let script = Script::new()
        .create(set(&json!({})))
        .create(node("three"))
        .delete(&nodes, "one")
        .patch(&nodes, "two", taint("NoSchedule"))
        .patch(&nodes, "three", taint("NoExecute"))
        .patch(&nodes, "three", json!({"spec": {"taints": null}}));
    world(script).always("a node has one pod at most", at_most(1)).silent().every_fault().seeds(10).run();
}

#[test]
fn an_update_and_the_way_back_come_to_the_same_end_whatever_goes_wrong() {
    let script = Script::new()
        .create(set(&json!({"minReadySeconds": 3})))
        .patch(&sets(), "log", image("log:2"))
        .patch(&sets(), "log", image("log:1"));
    let check = world(script).always("a node has one pod at most", at_most(1));
    check.silent().patient().every_fault().seeds(5).run();
}

#[test]
fn a_surge_comes_to_the_same_end_whatever_goes_wrong() {
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
    let check =
        world(script).always("two pods at most", at_most(2)).always("some pod is ready", some_is_ready);
    check.silent().patient().every_fault().seeds(5).run();
}

#[test]
fn a_set_that_is_deleted_and_made_anew_comes_to_the_same_end_whatever_goes_wrong() {
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    let script = Script::new()
        .create(set(&on_delete))
        .delete(&sets(), "log")
        .at_once()
        .create(set(&on_delete))
        .patch(&sets(), "log", image("log:2"));
    world(script).silent().patient().every_fault().seeds(5).run();
}
