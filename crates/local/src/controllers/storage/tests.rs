//! Which volume a claim gets, and what becomes of both.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::claims::{self, decide_bound, decide_unbound};
use super::matching::{Storage, best_volume, reservations};
use super::volumes::{self, decide_claimed, decide_free, decide_kept};
use super::*;

/// A claim with this spec beside the usual one.
fn claim(name: &str, spec: &Value, annotations: &Value) -> PersistentVolumeClaim {
    let mut all = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "manual",
    });
    for (field, value) in spec.as_object().unwrap() {
        all[field] = value.clone();
    }
    from_value(json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}"), "annotations": annotations},
        "spec": all,
        "status": {"phase": "Pending"},
    }))
    .unwrap()
}

fn plain(name: &str) -> PersistentVolumeClaim {
    claim(name, &json!({}), &json!({}))
}

fn volume(name: &str, spec: &Value, annotations: &Value) -> PersistentVolume {
    let mut all = json!({
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "manual",
        "persistentVolumeReclaimPolicy": "Retain",
    });
    for (field, value) in spec.as_object().unwrap() {
        all[field] = value.clone();
    }
    from_value(json!({
        "metadata": {"name": name, "labels": {"disk": name}, "annotations": annotations},
        "spec": all,
        "status": {"phase": "Available"},
    }))
    .unwrap()
}

fn sized(name: &str, size: &str) -> PersistentVolume {
    volume(name, &json!({"capacity": {"storage": size}}), &json!({}))
}

fn class(name: &str, provisioner: &str, mode: &str, annotations: &Value) -> StorageClass {
    from_value(json!({
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        "reclaimPolicy": "Delete",
    }))
    .unwrap()
}

fn of<'a>(volumes: &'a [PersistentVolume], classes: &'a [StorageClass]) -> Storage<'a> {
    Storage { volumes, classes, nodes: &[] }
}

fn best<'a>(claim: &PersistentVolumeClaim, volumes: &'a [PersistentVolume]) -> Option<&'a str> {
    best_volume(claim, volumes, &[]).map(|volume| volume.metadata.name.as_deref().unwrap())
}

#[test]
fn the_smallest_volume_that_fits_is_the_best() {
    let volumes = [sized("c", "3Gi"), sized("b", "2Gi"), sized("a", "512Mi"), sized("d", "2048Mi")];
    assert_eq!(best(&plain("data"), &volumes), Some("b"));
    let large = claim("data", &json!({"resources": {"requests": {"storage": "4Gi"}}}), &json!({}));
    assert_eq!(best(&large, &volumes), None);
}

#[test]
fn a_volume_with_fewer_access_modes_is_better_than_a_smaller_one() {
    let shared = json!({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]});
    let volumes = [volume("shared", &shared, &json!({})), sized("single", "9Gi")];
    assert_eq!(best(&plain("data"), &volumes), Some("single"));
    let reading = claim("data", &json!({"accessModes": ["ReadOnlyMany"]}), &json!({}));
    assert_eq!(best(&reading, &volumes), Some("shared"));
}

#[test]
fn class_mode_labels_and_phase_must_fit() {
    let volumes = [sized("a", "1Gi")];
    for (spec, expected) in [
        (json!({}), Some("a")),
        (json!({"storageClassName": ""}), None),
        (json!({"volumeMode": "Block"}), None),
        (json!({"volumeAttributesClassName": "gold"}), None),
        (json!({"selector": {"matchLabels": {"disk": "a"}}}), Some("a")),
        (json!({"selector": {"matchLabels": {"disk": "b"}}}), None),
    ] {
        assert_eq!(best(&claim("data", &spec, &json!({})), &volumes), expected, "{spec}");
    }
    let mut released = volumes.clone();
    released[0].status.as_mut().unwrap().phase = Some("Released".into());
    assert_eq!(best(&plain("data"), &released), None);
    let mut going = volumes;
    going[0].metadata.deletion_timestamp = from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(best(&plain("data"), &going), None);
}

/// Which claim each volume is reserved for.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "written in place")]
fn check_reserved(claims: &[PersistentVolumeClaim], storage: Storage<'_>, expected: Expect) {
    let reserved = reservations(claims, storage);
    let lines =
        reserved.iter().map(|(volume, claim)| format!("{volume}: {}", claim.metadata.name.as_ref().unwrap()));
    expected.assert_eq(&lines.collect::<Vec<_>>().join(", "));
}

#[test]
fn whoever_names_a_volume_comes_before_whoever_takes_any() {
    let volumes = [sized("one", "1Gi"), sized("two", "2Gi")];
    let naming = claim("naming", &json!({"volumeName": "one"}), &json!({}));
    check_reserved(&[plain("any"), naming], of(&volumes, &[]), expect!["one: naming, two: any"]);
    let mistaken =
        claim("mistaken", &json!({"volumeName": "one", "accessModes": ["ReadWriteMany"]}), &json!({}));
    check_reserved(&[plain("any"), mistaken], of(&volumes, &[]), expect!["one: any"]);
}

#[test]
fn a_volume_that_names_a_claim_is_nobody_elses_and_a_claim_that_has_one_gets_no_other() {
    let kept = json!({"claimRef": {"namespace": "ns", "name": "kept"}});
    let own = json!({"claimRef": {"namespace": "ns", "name": "bound", "uid": "uid-bound"}});
    let volumes =
        [volume("a", &kept, &json!({})), volume("b", &own, &json!({})), sized("c", "1Gi"), sized("d", "1Gi")];
    check_reserved(&[plain("kept"), plain("bound"), plain("other")], of(&volumes, &[]), expect!["c: other"]);
}

#[test]
fn a_claim_that_waits_for_a_pod_is_served_once_its_node_is_known() {
    let classes = [class("manual", "kubernetes.io/no-provisioner", "WaitForFirstConsumer", &json!({}))];
    let on = |node: &str| {
        json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
        ]}}})
    };
    let volumes = [volume("one", &on("one"), &json!({})), volume("two", &on("two"), &json!({}))];
    let nodes: Vec<Node> =
        ["one", "two"].map(|name| from_value(json!({"metadata": {"name": name}})).unwrap()).into();
    let storage = Storage { volumes: &volumes, classes: &classes, nodes: &nodes };
    check_reserved(&[plain("data")], storage, expect![[""]]);
    check_reserved(
        &[claim("data", &json!({}), &json!({SELECTED_NODE: "two"}))],
        storage,
        expect!["two: data"],
    );
}

/// What becomes of a claim, in a line.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "written in place")]
fn check_claim(fate: claims::Fate, expected: Expect) {
    let told = match fate {
        claims::Fate::Bound(volume) => format!("bound to {}", volume.metadata.name.unwrap()),
        claims::Fate::Lost { reason, .. } => reason.to_owned(),
        claims::Fate::Classed(class) => format!("of class {class}"),
        claims::Fate::Provisioned(volume) => serde_json::to_string(&volume).unwrap(),
        claims::Fate::Awaited { provisioner } => format!("awaits {provisioner}"),
        claims::Fate::Pending(None) => "waits".to_owned(),
        claims::Fate::Pending(Some(event)) => format!("{}: {}", event.reason(), event.note()),
    };
    expected.assert_eq(&told);
}

#[test]
fn a_claim_has_a_volume_made_if_its_class_is_of_this_machine() {
    let classes = [
        class(
            "local",
            PROVISIONER,
            "Immediate",
            &json!({"storageclass.kubernetes.io/is-default-class": "true"}),
        ),
        class("late", PROVISIONER, "WaitForFirstConsumer", &json!({})),
        class("cloud", "example.com/disks", "Immediate", &json!({})),
        class("hand", "kubernetes.io/no-provisioner", "Immediate", &json!({})),
    ];
    let decide = |spec: Value, annotations: Value| {
        decide_unbound(&claim("data", &spec, &annotations), of(&[], &classes))
    };
    let of_class = |name: &str| json!({"storageClassName": name});
    check_claim(
        decide(of_class("local"), json!({})),
        expect![[
            r#"{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":"mainstay.dev/local"},"name":"pvc-uid-data"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"claimRef":{"apiVersion":"v1","kind":"PersistentVolumeClaim","name":"data","namespace":"ns","uid":"uid-data"},"hostPath":{"path":"/var/lib/mainstay/volumes/pvc-uid-data","type":"DirectoryOrCreate"},"persistentVolumeReclaimPolicy":"Delete","storageClassName":"local"}}"#
        ]],
    );
    check_claim(decide(json!({"storageClassName": null}), json!({})), expect!["of class local"]);
    check_claim(
        decide(of_class(""), json!({})),
        expect!["FailedBinding: no persistent volumes available for this claim and no storage class is set"],
    );
    check_claim(
        decide(of_class("late"), json!({})),
        expect!["WaitForFirstConsumer: waiting for first consumer to be created before binding"],
    );
    check_claim(decide(of_class("cloud"), json!({})), expect!["awaits example.com/disks"]);
    check_claim(
        decide(of_class("hand"), json!({})),
        expect!["ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner"],
    );
    check_claim(
        decide(of_class("none"), json!({})),
        expect![[r#"ProvisioningFailed: storageclass.storage.k8s.io "none" not found"#]],
    );
    check_claim(
        decide(json!({"storageClassName": "local", "volumeMode": "Block"}), json!({})),
        expect![[
            r#"ProvisioningFailed: failed to provision volume with StorageClass "local": block volumes are not supported"#
        ]],
    );
    let placed = decide(of_class("late"), json!({SELECTED_NODE: "one"}));
    assert!(matches!(placed, claims::Fate::Provisioned(_)), "{placed:?}");
}

#[test]
fn a_claim_is_bound_only_to_a_volume_that_names_it() {
    let naming = claim("data", &json!({"volumeName": "a"}), &json!({}));
    let referring = |name: &str, uid: Value| {
        volume("a", &json!({"claimRef": {"namespace": "ns", "name": name, "uid": uid}}), &json!({}))
    };
    let decide = |volume: PersistentVolume| decide_unbound(&naming, of(&[volume], &[]));
    check_claim(decide(referring("data", json!("uid-data"))), expect!["bound to a"]);
    check_claim(decide(referring("data", json!(null))), expect!["waits"]);
    check_claim(
        decide(referring("data", json!("uid-of-its-predecessor"))),
        expect![[r#"FailedBinding: volume "a" already bound to a different claim."#]],
    );
    check_claim(decide(sized("a", "1Gi")), expect!["waits"]);
    check_claim(
        decide(sized("a", "1Mi")),
        expect![[r#"VolumeMismatch: Cannot bind to requested volume "a": requested PV is too small"#]],
    );
    check_claim(decide(sized("b", "1Gi")), expect!["waits"]);
    let any = plain("data");
    check_claim(decide_unbound(&any, of(&[sized("b", "1Gi")], &[])), expect!["waits"]);
    check_claim(
        decide_unbound(&any, of(&[referring("data", json!("uid-data"))], &[])),
        expect!["bound to a"],
    );
}

#[test]
fn of_several_volumes_that_name_it_a_claim_takes_the_one_that_was_not_made_for_it() {
    let own = json!({"claimRef": {"namespace": "ns", "name": "data", "uid": "uid-data"}});
    let volumes = [volume("pvc-uid-data", &own, &json!({})), volume("z", &own, &json!({}))];
    check_claim(decide_unbound(&plain("data"), of(&volumes, &[])), expect!["bound to z"]);
}

#[test]
fn a_bound_claim_may_lose_its_volume() {
    let bound = claim("data", &json!({"volumeName": "a"}), &json!({BIND_COMPLETED: "yes"}));
    check_claim(decide_bound(&bound, None), expect!["ClaimLost"]);
    check_claim(decide_bound(&bound, Some(&sized("a", "1Gi"))), expect!["bound to a"]);
    let other = json!({"claimRef": {"namespace": "ns", "name": "other", "uid": "uid-other"}});
    check_claim(decide_bound(&bound, Some(&volume("a", &other, &json!({})))), expect!["ClaimMisbound"]);
}

#[test]
fn a_volume_whose_claim_is_gone_follows_its_policy() {
    let made = json!({PROVISIONED_BY: PROVISIONER});
    let elsewhere = json!({PROVISIONED_BY: "example.com/disks"});
    let fate = |policy: &str, annotations: &Value| {
        decide_claimed(&volume("a", &json!({"persistentVolumeReclaimPolicy": policy}), annotations), None)
    };
    assert_eq!(fate("Retain", &made), volumes::Fate::Released);
    assert_eq!(fate("Delete", &made), volumes::Fate::Deleted);
    assert_eq!(fate("Delete", &elsewhere), volumes::Fate::Released);
    assert!(matches!(fate("Delete", &json!({})), volumes::Fate::Failed { reason: "VolumeFailedDelete", .. }));
    assert!(matches!(
        fate("Recycle", &json!({})),
        volumes::Fate::Failed { reason: "VolumeFailedRecycle", .. }
    ));
}

#[test]
fn a_volume_whose_claim_is_bound_elsewhere_lets_go_of_it() {
    let bound = claim("data", &json!({"volumeName": "other"}), &json!({}));
    let fate = |annotations: &Value, policy: &str| {
        let spec = json!({"persistentVolumeReclaimPolicy": policy});
        decide_claimed(&volume("a", &spec, annotations), Some(&bound))
    };
    assert_eq!(
        fate(&json!({BOUND_BY_CONTROLLER: "yes"}), "Retain"),
        volumes::Fate::Unbound { by_user: false }
    );
    assert_eq!(fate(&json!({}), "Retain"), volumes::Fate::Unbound { by_user: true });
    assert_eq!(fate(&json!({PROVISIONED_BY: PROVISIONER}), "Delete"), volumes::Fate::Deleted);
    let own = claim("data", &json!({"volumeName": "a"}), &json!({}));
    assert_eq!(decide_claimed(&sized("a", "1Gi"), Some(&own)), volumes::Fate::Bound);
    assert_eq!(decide_claimed(&sized("a", "1Gi"), Some(&plain("data"))), volumes::Fate::Bound);
}

#[test]
fn a_volume_that_is_kept_for_a_claim_waits_for_one_that_it_can_serve() {
    let kept = volume("a", &json!({"storageClassName": "other"}), &json!({}));
    let is_reserved = |claim: Option<&PersistentVolumeClaim>| {
        matches!(decide_kept(&kept, claim), volumes::Fate::Reserved { by_user: true, .. })
    };
    assert!(is_reserved(Some(&plain("data"))), "its class does not matter");
    assert!(!is_reserved(None));
    assert!(!is_reserved(Some(&claim(
        "data",
        &json!({"resources": {"requests": {"storage": "2Gi"}}}),
        &json!({})
    ))));
    assert!(!is_reserved(Some(&claim("data", &json!({"volumeName": "b"}), &json!({})))));
    assert!(is_reserved(Some(&claim("data", &json!({"volumeName": "a"}), &json!({})))));
    assert_eq!(decide_free(&kept, None), volumes::Fate::Available);
}

/// Sizes, with the least and the most that can be written.
fn any_size() -> impl Strategy<Value = String> {
    let ends = ["0", "1n", "9223372036854775807", "9223372036854775807Ei", "1e300", "-1"];
    prop_oneof![3 => (1_u32..5).prop_map(|size| format!("{size}Gi")), 1 => prop::sample::select(ends.to_vec()).prop_map(str::to_owned)]
}

fn any_claims() -> impl Strategy<Value = Vec<PersistentVolumeClaim>> {
    let one = (any_size(), prop::option::of(0_usize..5), any::<bool>());
    prop::collection::vec(one, 0..6).prop_map(|claims| {
        let made = claims.into_iter().enumerate().map(|(index, (size, named, is_bound))| {
            let named = named.map_or(json!(null), |index| json!(format!("volume-{index}")));
            let annotations =
                if is_bound && !named.is_null() { json!({BIND_COMPLETED: "yes"}) } else { json!({}) };
            let spec = json!({"resources": {"requests": {"storage": size}}, "volumeName": named});
            claim(&format!("claim-{index}"), &spec, &annotations)
        });
        made.collect()
    })
}

fn any_volumes() -> impl Strategy<Value = Vec<PersistentVolume>> {
    let one = (any_size(), prop::option::of((0_usize..6, any::<bool>())));
    prop::collection::vec(one, 0..6).prop_map(|volumes| {
        let made = volumes.into_iter().enumerate().map(|(index, (size, claimed))| {
            let reference = claimed.map(|(claim, has_uid)| {
                let uid = if has_uid { json!(format!("uid-claim-{claim}")) } else { json!(null) };
                json!({"namespace": "ns", "name": format!("claim-{claim}"), "uid": uid})
            });
            let spec = json!({"capacity": {"storage": size}, "claimRef": reference});
            volume(&format!("volume-{index}"), &spec, &json!({}))
        });
        made.collect()
    })
}

proptest! {
    #[test]
    fn no_claim_gets_two_volumes_and_no_volume_that_is_taken(
        claims in any_claims(), volumes in any_volumes(), seed in any::<usize>(),
    ) {
        let reserved = reservations(&claims, of(&volumes, &[]));
        let mut served: Vec<_> = reserved.values().map(|claim| claim.metadata.uid.clone()).collect();
        served.sort();
        served.dedup();
        prop_assert_eq!(served.len(), reserved.len());
        for (name, claim) in &reserved {
            let volume = volumes.iter().find(|volume| volume.metadata.name.as_ref() == Some(name)).unwrap();
            prop_assert!(volume.spec.as_ref().unwrap().claim_ref.is_none());
            let uid = claim.metadata.uid.as_deref();
            prop_assert!(volumes.iter().all(|volume| super::matching::claim_uid(volume) != uid));
        }
        // Whoever looks at them in another order comes to the same.
        let (mut other_claims, mut other_volumes) = (claims.clone(), volumes.clone());
        other_claims.rotate_left(seed % claims.len().max(1));
        other_volumes.rotate_left(seed % volumes.len().max(1));
        let names = |reserved: std::collections::BTreeMap<String, &PersistentVolumeClaim>| {
            reserved.into_iter().map(|(volume, claim)| (volume, claim.metadata.uid.clone())).collect::<Vec<_>>()
        };
        prop_assert_eq!(names(reservations(&other_claims, of(&other_volumes, &[]))), names(reserved));
    }
}
