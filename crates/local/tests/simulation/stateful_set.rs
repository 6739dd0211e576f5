use expect_test::expect;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Script, State};
use serde_json::{Value, json};

use crate::simulation::sets::{course, disturbed, world};

fn sets() -> Kind {
    Kind::of::<StatefulSet>()
}

fn set(replicas: i32, extra: &Value) -> Value {
    let container =
        json!({"name": "db", "image": "db:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
    let storage = json!({
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    });
    let mut spec = json!({
        "replicas": replicas,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": storage}],
    });
    if let (Some(spec), Some(extra)) = (spec.as_object_mut(), extra.as_object()) {
        spec.extend(extra.clone());
    }
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec})
}

fn image(image: &str) -> Value {
    let mounts = json!([{"name": "data", "mountPath": "/data"}]);
    let containers = json!([{"name": "db", "image": image, "volumeMounts": mounts}]);
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

fn replicas(count: i32) -> Value {
    json!({"spec": {"replicas": count}})
}

fn partition(partition: i32) -> Value {
    json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}})
}

/// Whatever is there of a set is there from the first ordinal on, and none but the last is not ready.
fn in_order(state: &State) -> Result<(), String> {
    let mut pods: Vec<(&str, bool)> = state
        .of(&Kind::of::<Pod>())
        .map(|pod| {
            let conditions = pod["status"]["conditions"].as_array();
            let is_ready = conditions
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
            (pod["metadata"]["name"].as_str().unwrap_or_default(), is_ready)
        })
        .collect();
    pods.sort_unstable();
    let named = (0..).zip(&pods).all(|(number, (name, _))| *name == format!("db-{number}"));
    let ready = pods.split_last().is_none_or(|(_, others)| others.iter().all(|(_, ready)| *ready));
    if named && ready { Ok(()) } else { Err(format!("{pods:?}")) }
}

#[test]
fn an_ordered_set_grows_and_shrinks_in_order_wherever_it_dies() {
    let script = Script::new().create(set(2, &json!({}))).patch(&sets(), "db", replicas(3)).patch(
        &sets(),
        "db",
        replicas(1),
    );
    disturbed(world(script).always("pods are there in their order", in_order)).run();
}

#[test]
fn an_update_and_the_way_back_come_to_the_same_end_wherever_it_dies() {
    let script = Script::new().create(set(2, &json!({}))).patch(&sets(), "db", image("db:2")).patch(
        &sets(),
        "db",
        image("db:1"),
    );
    disturbed(world(script)).run();
}

#[test]
fn a_partition_is_kept_to_wherever_it_dies() {
    let script = Script::new()
        .create(set(2, &partition(1)["spec"]))
        .patch(&sets(), "db", image("db:2"))
        .delete(&Kind::of::<Pod>(), "db-0")
        .patch(&sets(), "db", partition(0));
    disturbed(world(script)).run();
}

#[test]
fn a_parallel_set_comes_to_the_same_end_wherever_it_dies() {
    let script = Script::new()
        .create(set(2, &json!({"podManagementPolicy": "Parallel", "ordinals": {"start": 3}})))
        .patch(&sets(), "db", image("db:2"))
        .at_once()
        .patch(&sets(), "db", replicas(3))
        .delete(&Kind::of::<Pod>(), "db-4")
        .patch(&sets(), "db", replicas(0));
    disturbed(world(script)).run();
}

#[test]
fn a_set_that_is_deleted_and_made_anew_has_its_claims_again() {
    let script =
        Script::new().create(set(2, &json!({}))).delete(&sets(), "db").at_once().create(set(2, &json!({})));
    let claims_stay = |state: &State| {
        let pods = state.of(&Kind::of::<Pod>()).count();
        let claims = state.of(&Kind::of::<PersistentVolumeClaim>()).count();
        if claims >= pods { Ok(()) } else { Err(format!("{claims} claims of {pods} pods")) }
    };
    disturbed(world(script).always("every pod has its claim", claims_stay)).run();
}

#[test]
fn pods_that_fail_are_replaced_and_those_that_fit_are_taken_over() {
    let stray = |name: &str| {
        let container = json!({"name": "db", "image": "db:1"});
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "db"}},
            "spec": {"containers": [container]},
        })
    };
    let failed = json!({"status": {"phase": "Failed"}});
    let pods = Kind::of::<Pod>();
    let script = Script::new()
        .create(stray("db-1"))
        .create(stray("other-0"))
        .create(set(2, &json!({"updateStrategy": {"type": "OnDelete"}, "minReadySeconds": 5})))
        .patch_status(&pods, "db-0", failed)
        .patch(&pods, "db-1", json!({"metadata": {"labels": {"app": "none"}}}));
    // By a clock that is an hour slow nothing has been ready for five seconds.
    disturbed(world(script).but(Family::ClockJumps)).run();
}

#[test]
fn an_ordered_set_waits_for_a_pod_that_never_becomes_ready() {
    let script = Script::new().create(set(2, &json!({}))).patch(&sets(), "db", image("broken:1"));
    let one_at_a_time = |state: &State| {
        let broken = |pod: &&Value| pod["spec"]["containers"][0]["image"] == "broken:1";
        match state.of(&Kind::of::<Pod>()).filter(broken).count() {
            0 | 1 => Ok(()),
            count => Err(format!("{count} pods are broken")),
        }
    };
    world(script).always("one pod at most is broken", one_at_a_time).silent().every_crash_point().run();
}

#[test]
fn whatever_goes_wrong_it_comes_to_the_same_end() {
    let script = Script::new().create(set(1, &json!({})));
    world(script).silent().every_fault().run();
}

#[test]
fn the_course_of_an_ordered_set() {
    let script = Script::new()
        .create(set(2, &json!({})))
        .patch(&sets(), "db", image("db:2"))
        .patch(&sets(), "db", image("db:1"))
        .patch(&sets(), "db", replicas(0));
    expect![[r#"
        step 1: create StatefulSet db
        controllerrevisions.apps db-14bf4e6b90: created
        persistentvolumeclaims data-db-0: created
        pods db-0: created
        persistentvolumeclaims data-db-1: created
        pods db-1: created
        step 2: patch StatefulSet db with {"spec":{"template":{"spec":{"containers":[{"image":"db:2","name":"db","volumeMounts":[{"mountPath":"/data","name":"data"}]}]}}}}
        controllerrevisions.apps db-ec36278e36: created
        pods db-1: removed
        pods db-1: created
        pods db-0: removed
        pods db-0: created
        step 3: patch StatefulSet db with {"spec":{"template":{"spec":{"containers":[{"image":"db:1","name":"db","volumeMounts":[{"mountPath":"/data","name":"data"}]}]}}}}
        pods db-1: removed
        pods db-1: created
        pods db-0: removed
        pods db-0: created
        step 4: patch StatefulSet db with {"spec":{"replicas":0}}
        pods db-1: removed
        pods db-0: removed"#]].assert_eq(&course(&world(script)));
}
