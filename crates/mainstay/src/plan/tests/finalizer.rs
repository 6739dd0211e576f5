//! Finalizers: set in time, taken off in time.

use super::*;

fn finalizing() -> ControllerBuilder {
    apply().finalize(|_: &_| Ok(Finalized::Done))
}

fn going(parent: &mut Value) {
    parent["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    parent["metadata"]["finalizers"] = json!(["others", FINALIZER]);
}

#[test]
fn it_is_set_before_anything_is_made() {
    let plan = world(finalizing()).check(
        [map("a", json!({}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          add finalizer to Shop.example.com/v1 ns/shop: something is to be done before it goes
          create ConfigMap.v1 ns/a: it is desired and missing"#]],
    );
    assert_eq!(plan.steps[0].body.value["metadata"]["finalizers"], json!([FINALIZER]));
}

#[test]
fn one_that_nobody_needs_any_more_is_taken_off() {
    let world = world(apply()).parent(|parent| parent["metadata"]["finalizers"] = json!([FINALIZER]));
    world.check([], expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          remove finalizer from Shop.example.com/v1 ns/shop: nothing is to be done any more before it goes"#]]);
}

#[test]
fn done_takes_it_off_and_leaves_those_of_others() {
    let world = world(finalizing()).parent(going).made(map("a", json!({})));
    let plan = world.plan_with(|situation| decide_finalized(situation, &Finalized::Done));
    assert_eq!(plan.steps.len(), 1, "{plan}");
    assert_eq!(plan.steps[0].body.value["metadata"]["finalizers"], json!(["others"]));
}

#[test]
fn not_yet_keeps_children_that_it_does_not_name() {
    let world = world(finalizing()).parent(going).made(map("data", json!({})));
    let response = SyncResponse::new().with_child(map("cleanup", json!({}))).unwrap();
    let plan = world.plan_with(|situation| decide_finalized(situation, &Finalized::NotYet(response)));
    expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          create ConfigMap.v1 ns/cleanup: it is desired and missing
          waiting: the finalizer has more to do"#]]
    .assert_eq(&plan.to_string());
}

#[test]
fn orphans_are_released_before_the_parent_goes() {
    let orphaning = controller(ChildKind::new(map_kind()).orphan_on_delete());
    let world = world(orphaning).parent(going).made(map("a", json!({})));
    let plan = world.plan_with(|situation| decide_finalized(situation, &Finalized::Done));
    expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          release ConfigMap.v1 ns/a: it shall outlive its parent
          remove finalizer from Shop.example.com/v1 ns/shop: all that had to be done before it goes is done"#]]
    .assert_eq(&plan.to_string());
    assert_eq!(plan.steps[0].body.value["metadata"]["ownerReferences"], json!([]));
}
