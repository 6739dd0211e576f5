//! What a Deployment says of itself.

use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::json;

use super::super::conditions::{Conditions, Doing, Told};
use super::super::sets::Revisions;
use super::super::status::{self, was_complete};
use super::*;

fn now() -> Timestamp {
    "2030-01-01T01:00:00Z".parse().unwrap()
}

/// What a set says that wants so many pods, has so many, and of which so many are available.
fn counts(size: i32, actual: i32, available: i32) -> Value {
    json!({
        "spec": {"replicas": size},
        "status": {
            "replicas": actual, "readyReplicas": available, "availableReplicas": available, "terminatingReplicas": 0,
        },
    })
}

/// What a Deployment said before.
fn known(numbers: [i32; 3], reason: &str, message: &str) -> Value {
    let [replicas, updated, available] = numbers;
    json!({"status": {
        "replicas": replicas, "updatedReplicas": updated, "readyReplicas": available,
        "availableReplicas": available, "observedGeneration": 2,
        "conditions": [{
            "type": "Progressing", "status": "True", "reason": reason, "message": message,
            "lastUpdateTime": "2030-01-01T00:55:00Z", "lastTransitionTime": "2030-01-01T00:00:00Z",
        }],
    }})
}

fn told(deployment: &Deployment, doing: Doing, revisions: &Revisions) -> (Value, Conditions) {
    let spec = deployment.spec.clone().unwrap();
    let wish = Wish::of(&spec);
    let told = Told { deployment, spec: &spec, wish: &wish, doing, name: "b", now: now() };
    let (status, conditions) = status::status(&told, revisions);
    (json!(status), conditions)
}

#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check(deployment: &Deployment, doing: Doing, revisions: &Revisions, expected: Expect) -> Conditions {
    let (status, conditions) = told(deployment, doing, revisions);
    let lines: Vec<String> = conditions
        .list()
        .iter()
        .map(|condition| {
            let time = |time: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
                time.as_ref().unwrap().0.strftime("%H:%M").to_string()
            };
            format!(
                "{} {} {} {} {}: {}",
                condition.type_,
                condition.status,
                time(&condition.last_transition_time),
                time(&condition.last_update_time),
                condition.reason.as_deref().unwrap_or_default(),
                condition.message.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    let mut numbers = status;
    numbers.as_object_mut().unwrap().remove("conditions");
    expected.assert_eq(&format!("{numbers}\n{}", lines.join("\n")));
    conditions
}

fn rollout(new: &Value, old: &Value) -> Revisions {
    Revisions { new: Some(replica_set("b", "web:1", new)), old: vec![replica_set("a", "web:0", old)] }
}

#[test]
fn a_rollout_begins_with_a_set_that_was_made_for_it() {
    let made = rollout(&counts(1, 0, 0), &counts(3, 3, 3));
    let first = rollout(&counts(3, 0, 0), &counts(0, 0, 0));
    check(
        &deployment(&json!({})),
        Doing::Rolling,
        &first,
        expect![[r#"
        {"terminatingReplicas":0,"unavailableReplicas":3}
        Available False 01:00 01:00 MinimumReplicasUnavailable: Deployment does not have minimum availability.
        Progressing True 01:00 01:00 NewReplicaSetCreated: Created new replica set "b""#]],
    );
    let before = known([4, 1, 3], "ProgressDeadlineExceeded", "ReplicaSet \"a\" has timed out progressing.");
    check(
        &deployment(&before),
        Doing::Rolling,
        &made,
        expect![[r#"
        {"availableReplicas":3,"readyReplicas":3,"replicas":3,"terminatingReplicas":0,"unavailableReplicas":1}
        Available True 01:00 01:00 MinimumReplicasAvailable: Deployment has minimum availability.
        Progressing True 00:00 01:00 NewReplicaSetCreated: Created new replica set "b""#]],
    );
}

#[test]
fn a_step_forward_is_told_with_its_time() {
    let before = known([4, 0, 3], "NewReplicaSetCreated", "Created new replica set \"b\"");
    check(
        &deployment(&before),
        Doing::Rolling,
        &rollout(&counts(1, 1, 0), &counts(3, 3, 3)),
        expect![[r#"
            {"availableReplicas":3,"readyReplicas":3,"replicas":4,"terminatingReplicas":0,"unavailableReplicas":1,"updatedReplicas":1}
            Available True 01:00 01:00 MinimumReplicasAvailable: Deployment has minimum availability.
            Progressing True 00:00 01:00 ReplicaSetUpdated: ReplicaSet "b" is progressing."#]],
    );
}

#[test]
fn no_step_forward_changes_nothing() {
    let before = known([4, 1, 3], "ReplicaSetUpdated", "ReplicaSet \"b\" is progressing.");
    let deployment = deployment(&before);
    let conditions = check(
        &deployment,
        Doing::Rolling,
        &rollout(&counts(1, 1, 0), &counts(3, 3, 3)),
        expect![[r#"
            {"availableReplicas":3,"readyReplicas":3,"replicas":4,"terminatingReplicas":0,"unavailableReplicas":1,"updatedReplicas":1}
            Available True 01:00 01:00 MinimumReplicasAvailable: Deployment has minimum availability.
            Progressing True 00:00 00:55 ReplicaSetUpdated: ReplicaSet "b" is progressing."#]],
    );
    // It is looked at again when its time is up, and a second.
    let look = conditions.next_look(&deployment.spec.unwrap(), false, now());
    assert_eq!(look, Some(std::time::Duration::from_secs(301)));
}

#[test]
fn a_rollout_without_a_step_forward_for_too_long_has_failed_until_there_is_one() {
    let mut before = known([4, 1, 3], "ReplicaSetUpdated", "ReplicaSet \"b\" is progressing.");
    before["status"]["conditions"][0]["lastUpdateTime"] = json!("2030-01-01T00:49:59Z");
    let stuck = rollout(&counts(1, 1, 0), &counts(3, 3, 3));
    let conditions = check(
        &deployment(&before),
        Doing::Rolling,
        &stuck,
        expect![[r#"
        {"availableReplicas":3,"readyReplicas":3,"replicas":4,"terminatingReplicas":0,"unavailableReplicas":1,"updatedReplicas":1}
        Available True 01:00 01:00 MinimumReplicasAvailable: Deployment has minimum availability.
        Progressing False 01:00 01:00 ProgressDeadlineExceeded: ReplicaSet "b" has timed out progressing."#]],
    );
    assert_eq!(conditions.next_look(&spec(&json!({})), false, now()), None);
    before["status"]["conditions"][0]["reason"] = json!("ProgressDeadlineExceeded");
    before["status"]["conditions"][0]["status"] = json!("False");
    let moving = rollout(&counts(1, 1, 1), &counts(3, 3, 3));
    check(
        &deployment(&before),
        Doing::Rolling,
        &moving,
        expect![[r#"
        {"availableReplicas":4,"readyReplicas":4,"replicas":4,"terminatingReplicas":0,"updatedReplicas":1}
        Available True 01:00 01:00 MinimumReplicasAvailable: Deployment has minimum availability.
        Progressing True 01:00 01:00 ReplicaSetUpdated: ReplicaSet "b" is progressing."#]],
    );
}

#[test]
fn a_rollout_is_over_when_all_pods_are_new_and_available() {
    let before = known([3, 3, 2], "ReplicaSetUpdated", "ReplicaSet \"b\" is progressing.");
    let over = rollout(&counts(3, 3, 3), &counts(0, 0, 0));
    check(
        &deployment(&before),
        Doing::Rolling,
        &over,
        expect![[r#"
        {"availableReplicas":3,"readyReplicas":3,"replicas":3,"terminatingReplicas":0,"updatedReplicas":3}
        Available True 01:00 01:00 MinimumReplicasAvailable: Deployment has minimum availability.
        Progressing True 00:00 01:00 NewReplicaSetAvailable: ReplicaSet "b" has successfully progressed."#]],
    );
}

#[test]
fn a_rollout_that_is_over_stays_so_whatever_becomes_of_the_pods() {
    let before = known([3, 3, 3], "NewReplicaSetAvailable", "ReplicaSet \"b\" has successfully progressed.");
    let ill = rollout(&counts(3, 3, 1), &counts(0, 0, 0));
    check(
        &deployment(&before),
        Doing::Rolling,
        &ill,
        expect![[r#"
        {"availableReplicas":1,"readyReplicas":1,"replicas":3,"terminatingReplicas":0,"unavailableReplicas":2,"updatedReplicas":3}
        Available False 01:00 01:00 MinimumReplicasUnavailable: Deployment does not have minimum availability.
        Progressing True 00:00 00:55 NewReplicaSetAvailable: ReplicaSet "b" has successfully progressed."#]],
    );
}

#[test]
fn a_rollout_to_a_set_that_was_there_begins_when_it_is_found() {
    let before = known([3, 3, 3], "NewReplicaSetAvailable", "ReplicaSet \"a\" has successfully progressed.");
    let mut new = counts(1, 0, 0);
    new["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision-history": "1"});
    let back = rollout(&new, &counts(3, 3, 3));
    check(
        &deployment(&before),
        Doing::Rolling,
        &back,
        expect![[r#"
        {"availableReplicas":3,"readyReplicas":3,"replicas":3,"terminatingReplicas":0,"unavailableReplicas":1}
        Available True 01:00 01:00 MinimumReplicasAvailable: Deployment has minimum availability.
        Progressing True 00:00 01:00 FoundNewReplicaSet: Found new replica set "b""#]],
    );
}

#[test]
fn a_pause_stops_the_time_of_a_rollout() {
    let mut before = known([4, 1, 3], "ReplicaSetUpdated", "ReplicaSet \"b\" is progressing.");
    before["spec"] = json!({"paused": true});
    let amid = rollout(&counts(1, 1, 0), &counts(3, 3, 3));
    let conditions = check(
        &deployment(&before),
        Doing::Else,
        &amid,
        expect![[r#"
        {"availableReplicas":3,"readyReplicas":3,"replicas":4,"terminatingReplicas":0,"unavailableReplicas":1,"updatedReplicas":1}
        Available True 01:00 01:00 MinimumReplicasAvailable: Deployment has minimum availability.
        Progressing Unknown 01:00 01:00 DeploymentPaused: Deployment is paused"#]],
    );
    assert_eq!(conditions.next_look(&spec(&json!({})), false, now()), None);
    before["spec"] = json!({"paused": false});
    before["status"]["conditions"][0]["reason"] = json!("DeploymentPaused");
    check(
        &deployment(&before),
        Doing::Rolling,
        &amid,
        expect![[r#"
        {"availableReplicas":3,"readyReplicas":3,"replicas":4,"terminatingReplicas":0,"unavailableReplicas":1,"updatedReplicas":1}
        Available True 01:00 01:00 MinimumReplicasAvailable: Deployment has minimum availability.
        Progressing Unknown 01:00 01:00 DeploymentResumed: Deployment is resumed"#]],
    );
}

#[test]
fn without_a_deadline_nothing_is_said_of_progress() {
    let mut before = known([4, 1, 3], "ReplicaSetUpdated", "ReplicaSet \"b\" is progressing.");
    before["spec"] = json!({"progressDeadlineSeconds": i32::MAX});
    let amid = rollout(&counts(1, 1, 0), &counts(3, 3, 3));
    check(
        &deployment(&before),
        Doing::Rolling,
        &amid,
        expect![[r#"
        {"availableReplicas":3,"readyReplicas":3,"replicas":4,"terminatingReplicas":0,"unavailableReplicas":1,"updatedReplicas":1}
        Available True 01:00 01:00 MinimumReplicasAvailable: Deployment has minimum availability."#]],
    );
}

#[test]
fn a_set_that_cannot_have_its_pods_is_told_of() {
    let mut new = counts(3, 0, 0);
    new["status"]["conditions"] = json!([{
        "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no room",
        "lastTransitionTime": "2030-01-01T00:30:00Z",
    }]);
    let before = known([0, 0, 0], "NewReplicaSetCreated", "Created new replica set \"b\"");
    check(
        &deployment(&before),
        Doing::Rolling,
        &rollout(&new, &counts(0, 0, 0)),
        expect![[r#"
        {"terminatingReplicas":0,"unavailableReplicas":3}
        Available False 01:00 01:00 MinimumReplicasUnavailable: Deployment does not have minimum availability.
        Progressing True 00:00 00:55 NewReplicaSetCreated: Created new replica set "b"
        ReplicaFailure True 00:30 00:30 FailedCreate: no room"#]],
    );
}

#[test]
fn what_was_complete_is_known_by_the_generation_too() {
    let wish = wish(3, 1, 0);
    let mut before = known([3, 3, 3], "NewReplicaSetAvailable", "");
    assert!(was_complete(&deployment(&before), &wish));
    before["status"]["observedGeneration"] = json!(1);
    assert!(!was_complete(&deployment(&before), &wish));
    assert!(!was_complete(&deployment(&json!({})), &wish));
}

#[test]
fn pods_that_are_going_are_summed_unless_a_set_does_not_say() {
    let going = |count: Value| json!({"status": {"terminatingReplicas": count}});
    let sum = |new: &Value, old: &Value| {
        told(&deployment(&json!({})), Doing::Else, &rollout(new, old)).0["terminatingReplicas"].clone()
    };
    assert_eq!(sum(&going(json!(2)), &going(json!(1))), 3);
    assert_eq!(sum(&going(Value::Null), &going(json!(1))), Value::Null);
    assert_eq!(sum(&json!({"status": null}), &going(json!(1))), 1);
}
