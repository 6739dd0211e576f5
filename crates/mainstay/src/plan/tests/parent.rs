//! What answers ask for beyond children and status.

use super::*;

fn writing() -> ControllerBuilder {
    apply().writes_parents()
}

fn child(name: &str) -> ObjectRef {
    ObjectRef { kind: map_kind(), key: crate::kind::Key::namespaced("ns", name) }
}

#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check(world: &World, response: SyncResponse, expected: Expect) -> Plan {
    let plan = world.plan(&response);
    expected.assert_eq(&plan.to_string());
    plan
}

#[test]
fn fields_of_the_parent_are_set_once() {
    let answer =
        || SyncResponse::new().with_parent(json!({"metadata": {"annotations": {"turn": "2"}}})).unwrap();
    let world = world(writing());
    let plan = check(
        &world,
        answer(),
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              patch Shop.example.com/v1 ns/shop: its handler sets fields of it
                metadata.annotations: added {"turn":"2"}"#]],
    );
    assert!(
        matches!(&plan.steps[0].body.precondition, Precondition::Unchanged { resource_version, .. } if resource_version == "10")
    );
    assert_eq!(plan.steps[0].body.value, json!({"metadata": {"annotations": {"turn": "2"}}}));
    let world =
        world.parent(|parent| parent["metadata"]["annotations"] = json!({"turn": "2", "theirs": "x"}));
    check(&world, answer(), expect!["Shop.example.com/v1 ns/shop (generation 3): nothing to do"]);
}

#[test]
fn fields_are_taken_off_the_parent_while_others_are_set() {
    let answer = || {
        let set = json!({"spec": {"turn": 2}});
        SyncResponse::new()
            .with_parent(set)
            .unwrap()
            .clear_parent_field("/spec/old/part")
            .clear_parent_field("/metadata/annotations/shop~1open")
            .clear_parent_field("/spec/none")
    };
    let world = world(writing()).parent(|parent| {
        parent["spec"]["old"] = json!({"part": 1, "other": 2});
        parent["metadata"]["annotations"] = json!({"shop/open": "yes"});
    });
    let plan = check(
        &world,
        answer(),
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              patch Shop.example.com/v1 ns/shop: its handler sets fields of it
                spec.turn: added 2
                metadata.annotations["shop/open"]: removed, was "yes"
                spec.old.part: removed, was 1"#]],
    );
    assert_eq!(
        plan.steps[0].body.value,
        json!({"metadata": {"annotations": {"shop/open": null}}, "spec": {"old": {"part": null}, "turn": 2}})
    );
    assert!(matches!(&plan.steps[0].body.precondition, Precondition::Unchanged { .. }));
    let world = world.parent(|parent| {
        parent["spec"]["old"] = json!({"other": 2});
        parent["spec"]["turn"] = json!(2);
        parent["metadata"]["annotations"] = json!({});
    });
    check(&world, answer(), expect!["Shop.example.com/v1 ns/shop (generation 3): nothing to do"]);
}

#[test]
fn what_is_not_the_handlers_cannot_be_taken_off_the_parent() {
    for pointer in ["/metadata/finalizers", "/status/phase", "/metadata", "", "spec"] {
        let plan = world(writing()).plan(&SyncResponse::new().clear_parent_field(pointer));
        assert!(plan.steps.is_empty(), "{pointer}");
        assert!(plan.to_string().contains("it is not for the handler to take off its parent"), "{plan}");
    }
}

#[test]
fn a_field_cannot_be_taken_off_the_parent_where_one_is_set_or_in_a_list() {
    let both =
        |set: Value, pointer: &str| SyncResponse::new().with_parent(set).unwrap().clear_parent_field(pointer);
    let there = || {
        world(writing()).parent(|parent| parent["spec"] = json!({"old": {"part": 1}, "list": [{"part": 1}]}))
    };
    for set in [json!({"spec": 1}), json!({"spec": {"old": "x"}}), json!({"spec": {"old": {"part": 2}}})] {
        check(
            &there(),
            both(set, "/spec/old/part"),
            expect![[r#"
                Shop.example.com/v1 ns/shop (generation 3)
                  waiting: the handler's answer cannot be acted on: /spec/old/part: it is set on the parent and taken off it at once"#]],
        );
    }
    check(
        &there(),
        SyncResponse::new().clear_parent_field("/spec/list/0/part"),
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              waiting: the handler's answer cannot be acted on: /spec/list/0/part: it is part of a list, which can only be set as a whole"#]],
    );
    let beside = both(json!({"spec": {"old": {"other": 2}}}), "/spec/old/part");
    assert_eq!(there().plan(&beside).steps[0].body.value["spec"], json!({"old": {"other": 2, "part": null}}));
}

#[test]
fn a_controller_that_does_not_say_so_cannot_write_its_parents() {
    let answers = [
        SyncResponse::new().delete_parent(),
        SyncResponse::new().with_parent(json!({"spec": {"size": 2}})).unwrap(),
        SyncResponse::new().clear_parent_field("/spec/size"),
    ];
    for answer in answers {
        check(
            &world(apply()),
            answer,
            expect![[r#"
                Shop.example.com/v1 ns/shop (generation 3)
                  waiting: the handler's answer cannot be acted on: it changes the parent; declare that with `writes_parents`"#]],
        );
    }
}

#[test]
fn what_is_not_the_handlers_cannot_be_set_on_the_parent() {
    check(
        &world(writing()),
        SyncResponse::new().with_parent(json!({"metadata": {"finalizers": []}})).unwrap(),
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              waiting: the handler's answer cannot be acted on: metadata.finalizers: it is not for the handler to set on its parent"#]],
    );
}

#[test]
fn a_parent_that_is_over_goes_after_its_status_is_written_and_takes_nothing_along() {
    let world = world(writing()).made(map("a", json!({"k": "v"})));
    let answer = || SyncResponse::from_status(json!({"phase": "Done"})).unwrap().delete_parent();
    check(
        &world,
        answer(),
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              write status of Shop.example.com/v1 ns/shop: the status has changed
                status.observedGeneration: added 3
                status.phase: added "Done""#]],
    );
    let world = world.parent(|parent| parent["status"] = json!({"phase": "Done", "observedGeneration": 3}));
    check(
        &world,
        answer(),
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              delete Shop.example.com/v1 ns/shop: its time is over"#]],
    );
}

#[test]
fn a_released_child_stays_and_nothing_of_its_parent_is_left_on_it() {
    let plan = check(
        &world(apply()).made(map("a", json!({"k": "v"}))),
        SyncResponse::new().release(child("a")),
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              release ConfigMap.v1 ns/a: it is no longer claimed"#]],
    );
    let left = json!({"metadata": {"ownerReferences": [], "annotations": {crate::diff::APPLIED: null}}});
    assert_eq!(plan.steps[0].body.value, left);
}

#[test]
fn an_object_that_is_adopted_as_it_is_gets_an_owner_and_nothing_else() {
    let mut stranger = map("a", json!({"k": "v"}));
    stranger["metadata"]["labels"] = json!({"shop": "shop"});
    stranger["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "7"}]);
    let adopting = controller(ChildKind::new(map_kind()).adopt(|_| "shop=shop".into()));
    let named = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let plan = world(adopting).foreign(stranger).check(
        [named],
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              adopt ConfigMap.v1 ns/a: it belongs to nobody and may be adopted"#]],
    );
    let sent = &plan.steps[0].body.value;
    assert_eq!(sent.as_object().unwrap().len(), 1);
    assert_eq!(sent["metadata"].as_object().unwrap().len(), 1);
    let owners = sent["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((&owners[0]["name"], &owners[1]["kind"]), (&json!("n"), &json!("Shop")));
}

#[test]
fn a_finalizer_is_taken_off_a_child_that_is_going_once_the_status_is_written() {
    let world = world(apply()).made(map("a", json!({"k": "v"}))).but(|live| {
        live["metadata"]["finalizers"] = json!(["example.com/counted", "example.com/other"]);
        live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    let answer = SyncResponse::from_status(json!({"counted": 1})).unwrap().status_first();
    let plan = check(
        &world,
        answer.let_go(child("a"), "example.com/counted").let_go(child("b"), "example.com/counted"),
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              write status of Shop.example.com/v1 ns/shop: the status has changed
                status.counted: added 1
                status.observedGeneration: added 3
              remove finalizer from ConfigMap.v1 ns/a: nothing is left to do for it"#]],
    );
    assert_eq!(plan.steps[1].body.value, json!({"metadata": {"finalizers": ["example.com/other"]}}));
}

#[test]
fn an_unowned_child_is_made_without_an_owner_and_then_left_alone() {
    let builder = || controller(ChildKind::new(map_kind()).unowned());
    let plan = world(builder()).check(
        [map("a", json!({"k": "v"}))],
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              create ConfigMap.v1 ns/a: it is desired and missing"#]],
    );
    assert_eq!(plan.steps[0].body.value["metadata"], json!({"name": "a", "namespace": "ns"}));
    let there = world(builder()).foreign(map("a", json!({"k": "changed"})));
    there.check(
        [map("a", json!({"k": "v"}))],
        expect!["Shop.example.com/v1 ns/shop (generation 3): nothing to do"],
    );
    let owned = world(builder()).made(map("a", json!({"k": "v"})));
    owned.check([], expect!["Shop.example.com/v1 ns/shop (generation 3): nothing to do"]);
}

#[test]
fn nothing_is_made_for_a_parent_that_goes() {
    let going = world(writing().until_gone())
        .parent(|parent| parent["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    let answer = SyncResponse::new().with_child(map("a", json!({}))).unwrap();
    check(&going, answer, expect!["Shop.example.com/v1 ns/shop (generation 3): nothing to do"]);
    check(
        &going,
        SyncResponse::new().end_parent(),
        expect![[r#"
            Shop.example.com/v1 ns/shop (generation 3)
              end Shop.example.com/v1 ns/shop: its time is over"#]],
    );
}
