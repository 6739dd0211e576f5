//! Claims and volumes in simulated worlds: whatever goes wrong, no volume is two claims', and no data is lost.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use mainstay::Kind;
use mainstay_local::controllers::storage::PROVISIONER;
use mainstay_testkit::simulation::{Check, Script, State, check};
use serde_json::{Value, json};

use crate::simulation::controllers_of;

fn claim(name: &str, spec: &Value) -> Value {
    let mut all = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        all[field] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": all})
}

fn volume(name: &str, size: &str, spec: &Value) -> Value {
    let mut all = json!({
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "storageClassName": "manual",
        "hostPath": {"path": format!("/data/{name}")},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        all[field] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": all})
}

fn manual() -> Value {
    json!({"storageClassName": "manual"})
}

/// A claim that says it is bound is named by its volume, and no two claims name one.
fn bound_by_both_sides(state: &State) -> Result<(), String> {
    let mut owners = BTreeMap::new();
    for claim in state.of(&Kind::of::<PersistentVolumeClaim>()) {
        let Some(name) = claim["spec"]["volumeName"].as_str() else { continue };
        if claim["status"]["phase"] != "Bound" {
            continue;
        }
        let volume = state.get(&Kind::of::<PersistentVolume>(), "", name);
        let uid = &claim["metadata"]["uid"];
        if volume.is_none_or(|volume| volume["spec"]["claimRef"]["uid"] != *uid) {
            return Err(format!("{name} does not name the claim that is bound to it"));
        }
        if owners.insert(name, uid).is_some() {
            return Err(format!("{name} is two claims'"));
        }
    }
    Ok(())
}

fn storage(script: Script) -> Check {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "local", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
    });
    check(controllers_of(&["PersistentVolumeClaim", "PersistentVolume"]))
        .given(class)
        .script(script)
        .always("claims and volumes are bound by both sides", bound_by_both_sides)
}

#[test]
fn whatever_goes_wrong_a_claim_gets_a_volume_which_goes_with_it() {
    let script =
        Script::new().create(claim("data", &json!({}))).delete(&Kind::of::<PersistentVolumeClaim>(), "data");
    storage(script).every_fault().seeds(5).run();
}

// The user is patient: of volumes that come at once the smaller one may be seen too late to be chosen.
#[test]
fn whatever_events_are_lost_the_smallest_volume_is_bound_and_retained() {
    let script = Script::new()
        .create(volume("large", "5Gi", &json!({})))
        .at_once()
        .create(volume("small", "2Gi", &json!({})))
        .create(claim("data", &manual()))
        .delete(&Kind::of::<PersistentVolumeClaim>(), "data");
    let check = storage(script).keeps(&Kind::of::<PersistentVolume>()).patient();
    check.every_crash_point().every_lost_event().every_time_travel().every_second_leader().run();
}

#[test]
fn wherever_it_crashes_two_claims_share_no_volume() {
    let claims = Kind::of::<PersistentVolumeClaim>();
    let script = Script::new()
        .create(volume("only", "1Gi", &json!({})))
        .create(claim("one", &manual()))
        .create(claim("two", &manual()))
        .delete(&claims, "one")
        .patch(&Kind::of::<PersistentVolume>(), "only", json!({"spec": {"claimRef": null}}));
    storage(script).every_crash_point().every_second_leader().seeds(5).run();
}

#[test]
fn wherever_it_crashes_pairs_that_a_user_made_find_each_other() {
    let kept = json!({"claimRef": {"namespace": "default", "name": "kept"}});
    let script = Script::new()
        .create(volume("for-kept", "1Gi", &kept))
        .create(volume("asked-for", "1Gi", &json!({})))
        .create(claim("kept", &manual()))
        .create(claim("asking", &json!({"storageClassName": "manual", "volumeName": "asked-for"})))
        .create(claim("refused", &json!({"storageClassName": "manual", "volumeName": "asked-for"})))
        .delete(&Kind::of::<PersistentVolume>(), "for-kept")
        .delete(&Kind::of::<PersistentVolumeClaim>(), "kept");
    storage(script).every_crash_point().run();
}
