//! What becomes of the parent's status.

use super::*;

fn with_status(status: Value) -> SyncResponse {
    SyncResponse::from_status(status).unwrap()
}

#[test]
fn it_is_written_with_the_observed_generation() {
    let plan = world(apply()).plan(&with_status(json!({"phase": "Up"})));
    assert_eq!(plan.steps[0].action, Action::WriteStatus);
    assert_eq!(plan.steps[0].body.value["status"], json!({"phase": "Up", "observedGeneration": 3}));
}

#[test]
fn it_is_not_written_when_it_is_there() {
    let world =
        world(apply()).parent(|parent| parent["status"] = json!({"phase": "Up", "observedGeneration": 3}));
    assert!(world.plan(&with_status(json!({"phase": "Up"}))).is_settled());
}

#[test]
fn a_field_that_is_no_longer_given_is_removed() {
    let status = json!({"phase": "Up", "old": 1, "observedGeneration": 3});
    let plan =
        world(apply()).parent(|parent| parent["status"] = status).plan(&with_status(json!({"phase": "Up"})));
    expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          write status of Shop.example.com/v1 ns/shop: the status has changed
            status.old: removed, was 1"#]]
    .assert_eq(&plan.to_string());
}

#[test]
fn null_writes_none() {
    let world = world(apply()).parent(|parent| parent["status"] = json!({"phase": "Up"}));
    assert!(world.plan(&SyncResponse::new()).is_settled());
}

#[test]
fn it_waits_for_the_children_unless_it_comes_first() {
    let response = || with_status(json!({"phase": "Up"})).with_child(map("a", json!({}))).unwrap();
    let actions = |response: &SyncResponse| {
        world(apply()).plan(response).steps.iter().map(|step| step.action).collect::<Vec<_>>()
    };
    assert_eq!(actions(&response()), [Action::Create]);
    assert_eq!(actions(&response().status_first()), [Action::WriteStatus, Action::Create]);
}

#[test]
fn fields_of_the_parent_come_before_even_a_status_that_comes_first() {
    let fields = json!({"metadata": {"annotations": {"turn": "2"}}});
    let response = with_status(json!({"phase": "Up"})).with_parent(fields).unwrap().status_first();
    let plan = world(apply().writes_parents()).plan(&response);
    let actions: Vec<_> = plan.steps.iter().map(|step| step.action).collect();
    assert_eq!(actions, [Action::Patch, Action::WriteStatus]);
}

#[test]
fn without_the_subresource_a_status_is_a_mistake_and_null_is_not() {
    let mut world = world(apply());
    world.has_status = false;
    assert!(world.plan(&SyncResponse::new()).is_settled());
    let plan = world.plan(&with_status(json!({"phase": "Up"})));
    assert_eq!(plan.waiting, [Waiting::NoStatusSubresource]);
    assert!(plan.writes_nothing());
}

#[test]
fn a_problem_is_a_condition_for_as_long_as_it_lasts() {
    let foreign = world(apply()).foreign(map("a", json!({})));
    let response = with_status(json!({"phase": "Up"})).with_child(map("a", json!({}))).unwrap();
    let plan = foreign.plan(&response);
    let status = &plan.steps[0].body.value["status"];
    let condition = &status["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"]),
        (&json!("Reconciled"), &json!("False"), &json!("ChildConflict"))
    );
    assert_eq!(status["phase"], "Up");
    let recovered =
        world(apply()).made(map("a", json!({}))).parent(|parent| parent["status"] = status.clone());
    let plan = recovered.plan(&response);
    assert_eq!(
        plan.steps[0].body.value["status"],
        json!({"phase": "Up", "observedGeneration": 3}),
        "as if it had never been"
    );
    let settled = recovered.parent(|parent| parent["status"] = plan.steps[0].body.value["status"].clone());
    assert!(settled.plan(&response).is_settled());
}

#[test]
fn a_status_that_comes_first_does_not_say_that_all_is_well_before_it_is() {
    let foreign = world(apply()).foreign(map("a", json!({})));
    let response =
        |child: &str| with_status(json!({"phase": "Up"})).with_child(map(child, json!({}))).unwrap();
    let troubled = foreign.plan(&response("a")).steps[0].body.value["status"].clone();
    let world = world(apply()).parent(|parent| parent["status"] = troubled);
    let plan = world.plan(&response("b").status_first());
    assert_eq!(plan.steps.iter().map(|step| step.action).collect::<Vec<_>>(), [Action::Create], "{plan}");
}

#[test]
fn fields_without_content_that_the_server_adds_are_not_fought() {
    let live = |extra: Value| {
        world(apply()).parent(|parent| {
            parent["status"] = json!({"phase": "Up", "observedGeneration": 3, "extra": extra});
        })
    };
    let response = with_status(json!({"phase": "Up"}));
    assert!(live(json!(null)).plan(&response).is_settled());
    assert!(live(json!({})).plan(&response).is_settled());
    assert!(!live(json!({"a": 1})).plan(&response).is_settled(), "what has content goes");
}

#[test]
fn a_status_is_written_to_the_version_that_it_was_decided_on() {
    let plan = world(apply()).plan(&with_status(json!({"phase": "Up"})));
    let precondition = &plan.steps[0].body.precondition;
    assert!(matches!(precondition, Precondition::Unchanged { .. }), "{precondition:?}");
}

#[test]
fn annotations_are_written_with_it_and_only_if_they_differ() {
    let response = with_status(json!({"phase": "Up"})).with_status_annotation("example.com/revision", "2");
    let known = |annotations: Value| {
        world(apply()).parent(|parent| {
            parent["status"] = json!({"phase": "Up", "observedGeneration": 3});
            parent["metadata"]["annotations"] = annotations;
        })
    };
    let plan = known(json!({"example.com/revision": "1", "other": "x"})).plan(&response);
    expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          write status of Shop.example.com/v1 ns/shop: the status has changed
            metadata.annotations["example.com/revision"]: "1" → "2""#]]
    .assert_eq(&plan.to_string());
    let body = &plan.steps[0].body.value;
    assert_eq!(body["metadata"]["annotations"], json!({"example.com/revision": "2"}));
    assert_eq!(body["status"], json!({"phase": "Up", "observedGeneration": 3}));
    assert!(known(json!({"example.com/revision": "2"})).plan(&response).is_settled());
}

#[test]
fn a_kind_may_have_a_condition_of_its_own_for_problems() {
    let telling = || {
        apply().problem_condition("Failure", |problem| match problem {
            Waiting::Conflict { child, .. } => Some(("Taken".into(), child.to_string())),
            _ => None,
        })
    };
    let response = with_status(json!({"phase": "Up"})).with_child(map("a", json!({}))).unwrap();
    let plan = world(telling()).foreign(map("a", json!({}))).plan(&response);
    let condition = &plan.steps[0].body.value["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"], &condition["message"]),
        (&json!("Failure"), &json!("True"), &json!("Taken"), &json!("ConfigMap.v1 ns/a"))
    );
    let known = plan.steps[0].body.value["status"].clone();
    let still =
        world(telling()).foreign(map("a", json!({}))).parent(|parent| parent["status"] = known.clone());
    assert!(still.plan(&response).steps.is_empty(), "it is told once");
    let over = world(telling()).made(map("a", json!({}))).parent(|parent| parent["status"] = known);
    assert_eq!(over.plan(&response).steps[0].body.value["status"].get("conditions"), None);
}

#[test]
fn annotations_that_the_server_drops_are_written_once() {
    let response = with_status(json!({"phase": "Up"})).with_status_annotation("example.com/revision", "2");
    for there in [json!({}), json!({"metadata": {"annotations": {"other": "x"}}})] {
        let mut world = world(apply()).parent(|parent| {
            if let Some(annotations) = there.pointer("/metadata/annotations") {
                parent["metadata"]["annotations"] = annotations.clone();
            }
        });
        let sent = world.plan(&response).steps[0].body.value.clone();
        world.parent["status"] = sent["status"].clone();
        let rules = crate::diff::Rules::unknown();
        let learned = crate::diff::Learned::from_response(&sent, &world.parent, &rules);
        world.memory.learned.insert("parent".into(), learned);
        assert!(world.plan(&response).is_settled(), "{there}");
        world.parent["metadata"]["annotations"] = json!({"example.com/revision": "1"});
        assert!(!world.plan(&response).is_settled(), "somebody has set another value");
    }
}
