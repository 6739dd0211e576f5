//! Networks that are made, changed and deleted, and parts of them with which somebody meddles.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use mainstay::Kind;
use mainstay_testkit::simulation::Script;
use serde_json::json;

use crate::world::{lab, networks, world};

#[test]
fn wherever_it_dies_a_network_is_assembled_and_connected() {
    world().script(Script::new().create(lab(&json!({})))).silent().every_crash_point().run();
}

#[test]
fn peers_come_and_go() {
    let script = Script::new()
        .create(lab(&json!({})))
        .patch(&networks(), "lab", json!({"spec": {"replicas": 5}}))
        .patch(&networks(), "lab", json!({"spec": {"replicas": 2}}));
    world().script(script).every_crash_point().run();
}

#[test]
fn a_changed_image_or_config_restarts_peers() {
    let script = Script::new()
        .create(lab(&json!({})))
        .patch(&networks(), "lab", json!({"spec": {"peers": [{"image": "example.com/peer:2"}]}}))
        .patch(&networks(), "lab", json!({"spec": {"config": {"depth": 3}}}));
    world().script(script).every_crash_point().run();
}

#[test]
fn what_somebody_meddles_with_is_put_right() {
    let script = Script::new()
        .create(lab(&json!({})))
        .delete(&Kind::of::<Pod>(), "network-lab/peers-0-1")
        .patch(&Kind::of::<ConfigMap>(), "network-lab/keramik-peers", json!({"data": {"peers.json": "[]"}}))
        .delete(&Kind::of::<StatefulSet>(), "network-lab/peers-0");
    world().script(script).may_remove(&Kind::of::<Pod>()).every_crash_point().run();
}

#[test]
fn a_network_is_deleted_and_made_again() {
    let script = Script::new()
        .create(lab(&json!({"replicas": 2})))
        .delete(&networks(), "lab")
        .at_once()
        .create(lab(&json!({})));
    world().script(script).every_crash_point().run();
}
