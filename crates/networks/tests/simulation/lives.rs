//! Networks that are made, changed and deleted, and parts of them with which somebody meddles.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use mainstay::Kind;
use mainstay_testkit::simulation::Script;
use serde_json::json;

use crate::simulation::pods::Kept;
use crate::simulation::world::{
    Dials, cluster, cluster_with, disturbed, happens, killed, lab, networks, plagued,
};

#[test]
fn whatever_goes_wrong_a_network_is_assembled_connected_and_changed() {
    let script = Script::new().create(lab(&json!({}))).patch(
        &networks(),
        "lab",
        json!({"spec": {"ttlSeconds": 100_000}}),
    );
    plagued(cluster(Dials::Forgiven).script(script).silent());
}

#[test]
fn what_the_job_has_connected_is_not_dialled_again() {
    // Every change of the Job has the operator look, and its last answers are less than a second old.
    let script = Script::new().create(lab(&json!({"replicas": 3, "bootstrap": {"method": "full"}})));
    let check = cluster_with(Dials::Noted, Kept::WiresOfTheJob).script(script);
    happens(&check, &["wire peers-0-0 peers-0-1: created", "all 3 declared connections are there"]);
    killed(check);
}

#[test]
fn peers_come_and_go() {
    let script = Script::new()
        .create(lab(&json!({})))
        .patch(&networks(), "lab", json!({"spec": {"replicas": 4}}))
        .patch(&networks(), "lab", json!({"spec": {"replicas": 1}}));
    killed(cluster(Dials::Noted).script(script.clone()));
    disturbed(cluster(Dials::Forgiven).script(script));
}

#[test]
fn a_changed_image_or_config_restarts_peers() {
    let script = Script::new()
        .create(lab(&json!({})))
        .patch(&networks(), "lab", json!({"spec": {"peers": [{"image": "example.com/peer:2"}]}}))
        .patch(&networks(), "lab", json!({"spec": {"config": {"depth": 3}}}));
    killed(cluster(Dials::Noted).script(script.clone()));
    disturbed(cluster(Dials::Forgiven).script(script));
}

#[test]
fn what_somebody_meddles_with_is_put_right() {
    let script = Script::new()
        .create(lab(&json!({})))
        .delete(&Kind::of::<Pod>(), "network-lab/peers-0-1")
        .patch(&Kind::of::<ConfigMap>(), "network-lab/keramik-peers", json!({"data": {"peers.json": "[]"}}))
        .delete(&Kind::of::<StatefulSet>(), "network-lab/peers-0");
    let meddled = |dials| cluster(dials).script(script.clone()).may_remove(&Kind::of::<Pod>());
    killed(meddled(Dials::Noted));
    disturbed(meddled(Dials::Forgiven));
}

#[test]
fn a_network_is_deleted_and_made_again() {
    let script = Script::new()
        .create(lab(&json!({})))
        .delete(&networks(), "lab")
        .at_once()
        .create(lab(&json!({"replicas": 3})));
    killed(cluster(Dials::Noted).script(script.clone()));
    disturbed(cluster(Dials::Forgiven).script(script));
}
