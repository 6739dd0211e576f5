//! Rolling changes and revisions.

use super::*;

fn rolling(at_most: usize) -> World {
    let mut world =
        world(controller(ChildKind::new(pod_kind()).strategy(Strategy::Rolling(Rolling::at_most(at_most)))));
    // The revision of the present spec is there already.
    let plan = world.plan(&SyncResponse::new());
    let mut revision = plan.steps[0].body.value.clone();
    revision["metadata"]["ownerReferences"][0]["uid"] = json!("parent");
    world.put(revision);
    world
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.steps.iter().map(|step| step.object.key.name()).collect()
}

fn wanted(image: &str) -> SyncResponse {
    let mut response = SyncResponse::new();
    for name in ["a", "b", "c"] {
        response.add_child(without_status(pod(name, image, true))).unwrap();
    }
    response
}

#[test]
fn only_as_many_change_as_may_be_unavailable() {
    let world = rolling(1).made(pod("a", "1", true)).made(pod("b", "1", true)).made(pod("c", "1", true));
    let plan = world.plan(&wanted("2"));
    assert_eq!(names(&plan), ["a"], "{plan}");
    assert_eq!(plan.waiting[0].to_string(), "rolling out: 2 of Pod.v1 to go");
}

#[test]
fn one_that_is_not_ready_holds_the_others_up() {
    let world = rolling(1).made(pod("a", "2", false)).made(pod("b", "1", true)).made(pod("c", "1", true));
    let plan = world.plan(&wanted("2"));
    assert!(plan.writes_nothing(), "{plan}");
    assert_eq!(plan.waiting[0].to_string(), "rolling out: 2 of Pod.v1 to go, waiting for a (Starting)");
}

#[test]
fn one_that_is_down_anyway_is_changed_at_once() {
    let world = rolling(1).made(pod("a", "1", true)).made(pod("b", "1", false)).made(pod("c", "1", true));
    assert_eq!(names(&world.plan(&wanted("2"))), ["b"]);
}

#[test]
fn missing_ones_are_created_at_once_and_count_as_unavailable() {
    let world = rolling(2).made(pod("a", "1", true)).made(pod("b", "1", true));
    assert_eq!(names(&world.plan(&wanted("2"))), ["a", "c"]);
}

#[test]
fn a_new_spec_is_a_new_revision_and_an_old_one_comes_back_as_the_newest() {
    let first = rolling(1);
    let second = |mut world: World| {
        world.parent["spec"] = json!({"size": 2});
        world
    };
    let mut world = second(first);
    let plan = world.plan(&SyncResponse::new());
    assert_eq!((plan.steps[0].action, &plan.steps[0].body.value["revision"]), (Action::Create, &json!(2)));
    assert_eq!(plan.steps[0].body.value["data"]["spec"], json!({"size": 2}));
    world.put(plan.steps[0].body.value.clone());
    assert!(world.plan(&SyncResponse::new()).is_settled());
    world.parent["spec"] = json!({"size": 1});
    let plan = world.plan(&SyncResponse::new());
    assert_eq!((plan.steps[0].action, &plan.steps[0].body.value["revision"]), (Action::Apply, &json!(3)));
}
