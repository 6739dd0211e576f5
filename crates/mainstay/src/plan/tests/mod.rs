//! Plans, as people read them, for situations that are written down as JSON.

mod finalizer;
mod parent;
mod rolling;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::cache::Object;
use crate::controller::{ChildKind, Controller, ControllerBuilder, Rolling, Strategy};
use crate::diff::Desired;
use crate::handler::{Finalized, SyncResponse};
use crate::kind::{Kind, ObjectRef, Scope};
use crate::snapshot::Snapshot;

const FINALIZER: &str = "test.mainstay.dev/finalizer";

fn parent_kind() -> Kind {
    Kind::new("example.com/v1", "Shop", "shops", Scope::Namespaced)
}

fn map_kind() -> Kind {
    Kind::new("v1", "ConfigMap", "configmaps", Scope::Namespaced)
}

fn pod_kind() -> Kind {
    Kind::new("v1", "Pod", "pods", Scope::Namespaced)
}

/// A parent, what exists, and what the handler says.
struct World {
    controller: Controller,
    parent: Value,
    live: Vec<Value>,
    memory: Memory,
    has_status: bool,
    deletions_allowed: usize,
    namespace: Option<String>,
}

fn controller(child: ChildKind) -> ControllerBuilder {
    Controller::for_kind(parent_kind()).child(child)
}

fn world(builder: ControllerBuilder) -> World {
    World {
        controller: builder.sync(|_: &_| Ok(SyncResponse::new())),
        parent: json!({"apiVersion": "example.com/v1", "kind": "Shop", "spec": {"size": 1},
            "metadata": {"name": "shop", "namespace": "ns", "uid": "parent", "resourceVersion": "10", "generation": 3}}),
        live: Vec::new(),
        memory: Memory::default(),
        has_status: true,
        deletions_allowed: 100,
        namespace: None,
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is written with `json!`")]
fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn pod(name: &str, image: &str, ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": image}]},
        "status": {"conditions": [{"type": "Ready", "status": status, "reason": "Starting"}]}})
}

fn without_status(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}

impl World {
    /// Puts an object in the cluster as this operator would have made it for the parent.
    fn made(mut self, child: Value) -> Self {
        let status = child.get("status").cloned();
        let mut child = without_status(child);
        child["metadata"]["namespace"] = json!("ns");
        child["metadata"]["ownerReferences"] = json!([{"apiVersion": "example.com/v1", "kind": "Shop", "name": "shop",
            "uid": "parent", "controller": true, "blockOwnerDeletion": true}]);
        let mut live = Desired::new(child).unwrap().to_apply();
        if let Some(status) = status {
            live["status"] = status;
        }
        self.put(live);
        self
    }

    fn put(&mut self, mut object: Value) {
        let number = self.live.len();
        object["metadata"]["namespace"] = json!("ns");
        object["metadata"]["uid"] = json!(format!("uid-{number}"));
        object["metadata"]["resourceVersion"] = json!(format!("{}", 100 + number));
        self.live.push(object);
    }

    /// Puts somebody else's object in the cluster.
    fn foreign(mut self, object: Value) -> Self {
        self.put(object);
        self
    }

    /// Changes the object that was put last.
    fn but(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(self.live.last_mut().unwrap());
        self
    }

    fn parent(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.parent);
        self
    }

    fn plan_with(&self, decide: impl FnOnce(&Situation<'_>) -> Plan) -> Plan {
        let read = |kind: &Kind, value: &Value| Arc::new(Object::from_value(kind, value).unwrap());
        let of = |kind: &Kind| {
            let live = self.live.iter().filter(|live| live["kind"] == kind.kind());
            live.map(|live| read(kind, live)).collect::<Vec<_>>()
        };
        let ours = |object: &Arc<Object>| object.controller_uid() == Some("parent");
        let mut children = Vec::new();
        let mut strangers = BTreeMap::new();
        for child in &self.controller.children {
            let (mine, others): (Vec<_>, Vec<_>) = of(&child.kind).into_iter().partition(ours);
            children.push((child.kind.clone(), mine));
            strangers.extend(others.into_iter().map(|object| (object.reference(), object)));
        }
        let snapshot = Snapshot {
            registered: BTreeMap::new(),
            kind: parent_kind(),
            parent: read(&parent_kind(), &self.parent),
            children,
            revisions: of(&revision_kind()),
            now: Timestamp::UNIX_EPOCH,
        };
        decide(&Situation {
            controller: &self.controller,
            finalizer: FINALIZER,
            namespace: self.namespace.as_deref(),
            snapshot: &snapshot,
            parent_json: &self.parent,
            strangers: &strangers,
            rules: &BTreeMap::new(),
            memory: &self.memory,
            has_status: self.has_status,
            deletions_allowed: self.deletions_allowed,
        })
    }

    fn plan(&self, response: &SyncResponse) -> Plan {
        self.plan_with(|situation| decide_response(situation, response))
    }

    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
    fn check(&self, children: impl IntoIterator<Item = Value>, expected: Expect) -> Plan {
        let mut response = SyncResponse::new();
        for child in children {
            response.add_child(child).unwrap();
        }
        let plan = self.plan(&response);
        expected.assert_eq(&plan.to_string());
        plan
    }
}

fn apply() -> ControllerBuilder {
    controller(ChildKind::new(map_kind()))
}

#[test]
fn a_missing_child_is_created_and_belongs_to_its_parent() {
    let plan = world(apply()).check(
        [map("a", json!({"k": "v"}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          create ConfigMap.v1 ns/a: it is desired and missing"#]],
    );
    let body = &plan.steps[0].body;
    assert_eq!(body.precondition, Precondition::Absent);
    assert_eq!(body.value["metadata"]["ownerReferences"][0]["uid"], "parent");
    assert_eq!(body.value["metadata"]["ownerReferences"][0]["controller"], true);
}

#[test]
fn a_child_as_desired_is_left_alone_whatever_others_added() {
    let world =
        world(apply()).made(map("a", json!({"k": "v"}))).but(|live| live["data"]["theirs"] = json!("x"));
    world.check(
        [map("a", json!({"k": "v"}))],
        expect!["Shop.example.com/v1 ns/shop (generation 3): nothing to do"],
    );
}

#[test]
fn a_changed_desire_is_applied_with_the_fields_that_differ() {
    let world = world(apply()).made(map("a", json!({"k": "v"})));
    let plan = world.check(
        [map("a", json!({"k": "w"}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          apply ConfigMap.v1 ns/a: what is desired has changed
            data.k: "v" → "w""#]],
    );
    assert_eq!(plan.steps[0].body.precondition, Precondition::Uid("uid-0".into()));
}

#[test]
fn a_field_that_is_no_longer_named_is_an_apply_although_nothing_named_differs() {
    let world = world(apply()).made(map("a", json!({"k": "v", "gone": "x"})));
    world.check(
        [map("a", json!({"k": "v"}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          apply ConfigMap.v1 ns/a: what is desired has changed"#]],
    );
}

#[test]
fn what_somebody_changed_is_put_back() {
    let world =
        world(apply()).made(map("a", json!({"k": "v"}))).but(|live| live["data"]["k"] = json!("theirs"));
    world.check(
        [map("a", json!({"k": "v"}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          apply ConfigMap.v1 ns/a: it was changed by somebody else
            data.k: "theirs" → "v""#]],
    );
}

#[test]
fn a_child_that_is_not_desired_is_deleted_by_uid_and_kind() {
    let secrets = Kind::new("v1", "Secret", "secrets", Scope::Namespaced);
    let world = world(apply().child(ChildKind::new(secrets)))
        .made(map("same-name", json!({})))
        .made(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "same-name"}}));
    let plan = world.check(
        [map("same-name", json!({}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          delete Secret.v1 ns/same-name: it is no longer desired"#]],
    );
    assert_eq!(plan.steps[0].body.precondition, Precondition::Uid("uid-1".into()));
}

#[test]
fn a_child_that_is_only_named_is_kept_as_it_is() {
    let world = world(apply()).made(map("a", json!({"k": "v"})));
    let only_named =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}});
    world.check([only_named], expect!["Shop.example.com/v1 ns/shop (generation 3): nothing to do"]);
}

#[test]
fn a_child_that_is_being_deleted_is_waited_for() {
    let world = world(apply())
        .made(map("a", json!({})))
        .but(|live| live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    world.check(
        [map("a", json!({}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          waiting: ConfigMap.v1 ns/a is still being deleted"#]],
    );
}

#[test]
fn bad_answers_are_refused_whole() {
    let refused = |child: Value, expected: Expect| {
        let plan =
            world(apply()).made(map("old", json!({}))).plan(&SyncResponse::new().with_child(child).unwrap());
        assert!(plan.writes_nothing(), "{plan}");
        expected.assert_eq(&plan.waiting[0].to_string());
    };
    let mut with_status = map("a", json!({}));
    with_status["status"] = json!({"ready": true});
    refused(
        with_status,
        expect![
            "the handler's answer cannot be acted on: children[0], ConfigMap a: status: a child's status is set by its own controller; leave it out"
        ],
    );
    let mut elsewhere = map("a", json!({}));
    elsewhere["metadata"]["namespace"] = json!("other");
    refused(
        elsewhere,
        expect![
            "the handler's answer cannot be acted on: children[0], ConfigMap a: metadata.namespace: it is in other, but its parent is in ns; a namespaced parent's children are in its own namespace"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}),
        expect![
            "the handler's answer cannot be acted on: children[0], Pod a: v1 Pod is not a child kind of this controller; declare it with `child` or `owns`"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}),
        expect![
            "the handler's answer cannot be acted on: children[0], ConfigMap without a name: metadata.generateName: children need a name of their own, so that the next sync finds them"
        ],
    );
    refused(
        json!("text"),
        expect![
            "the handler's answer cannot be acted on: children[0], object without a name: it is not an object"
        ],
    );
}

#[test]
fn the_same_child_twice_is_refused() {
    let response =
        SyncResponse::new().with_child(map("a", json!({}))).unwrap().with_child(map("a", json!({}))).unwrap();
    let plan = world(apply()).plan(&response);
    assert_eq!(plan.waiting[0].reason(), "BadAnswer");
    assert!(plan.waiting[0].to_string().ends_with("children[1], ConfigMap a: it is there twice"));
}

#[test]
fn somebody_elses_object_is_not_touched() {
    let owned = json!([{"apiVersion": "example.com/v1", "kind": "Shop", "name": "other", "uid": "other", "controller": true}]);
    let world =
        world(apply()).foreign(map("a", json!({}))).but(|live| live["metadata"]["ownerReferences"] = owned);
    world.check(
        [map("a", json!({}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          write status of Shop.example.com/v1 ns/shop: the status has changed
            status.conditions: added [{"lastTransitionTime":"1970-01-01T00:00:00Z","message":"Con…
          waiting: ConfigMap.v1 ns/a belongs to Shop other; it was not touched"#]],
    );
}

#[test]
fn an_object_of_nobody_is_adopted_only_if_its_labels_are_those_to_adopt() {
    let adopting = || {
        controller(
            ChildKind::new(map_kind())
                .adopt(|parent| format!("shop={}", parent["metadata"]["name"].as_str().unwrap())),
        )
    };
    let stranger = |label: &str| {
        let mut stranger = map("a", json!({}));
        stranger["metadata"]["labels"] = json!({"shop": label});
        stranger
    };
    let plan = world(adopting()).foreign(stranger("shop")).check(
        [map("a", json!({"k": "v"}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          apply ConfigMap.v1 ns/a: it belongs to nobody and may be adopted"#]],
    );
    let precondition = Precondition::Unchanged { uid: "uid-0".into(), resource_version: "100".into() };
    assert_eq!(plan.steps[0].body.precondition, precondition);
    let mut other = world(adopting()).foreign(stranger("other"));
    other.has_status = false;
    other.check(
        [map("a", json!({"k": "v"}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          waiting: ConfigMap.v1 ns/a exists and was not made for this parent; it was not touched"#]],
    );
}

#[test]
fn a_child_that_lost_its_owner_reference_gets_it_back() {
    let world = world(apply())
        .made(map("a", json!({"k": "v"})))
        .but(|live| live["metadata"]["ownerReferences"] = json!([]));
    world.check(
        [map("a", json!({"k": "v"}))],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          apply ConfigMap.v1 ns/a: it has lost its owner reference"#]],
    );
}

#[test]
fn each_strategy_makes_a_difference_good_in_its_way() {
    let with = |strategy: Strategy| {
        world(controller(ChildKind::new(map_kind()).strategy(strategy))).made(map("a", json!({"k": "v"})))
    };
    let wanted = || [map("a", json!({"k": "w"}))];
    with(Strategy::Replace).check(
        wanted(),
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          replace ConfigMap.v1 ns/a: what is desired has changed
            data.k: "v" → "w""#]],
    );
    with(Strategy::Recreate).check(
        wanted(),
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          delete ConfigMap.v1 ns/a: it differs and is to be created anew
            data.k: "v" → "w""#]],
    );
    with(Strategy::OnDelete).check(
        wanted(),
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          waiting: ConfigMap.v1 ns/a differs in data.k and is only changed when somebody deletes it"#]],
    );
}

#[test]
fn an_immutable_field_is_changed_by_recreating_only_where_that_is_allowed() {
    let wanted = map("a", json!({"k": "w"}));
    for (child, expected) in [
        (ChildKind::new(map_kind()), Action::Apply),
        (ChildKind::new(map_kind()).recreate_when_immutable(), Action::Delete),
    ] {
        let mut world = world(controller(child)).made(map("a", json!({"k": "v"})));
        let object = ObjectRef { kind: map_kind(), key: crate::Key::namespaced("ns", "a") };
        let hash = world.plan(&SyncResponse::new().with_child(&wanted).unwrap()).steps[0].body.value["metadata"]
            ["annotations"][crate::diff::APPLIED]
            .as_str()
            .unwrap()
            .to_owned();
        world.memory.refused.insert(object, Refusal { hash, immutable: true });
        let plan = world.plan(&SyncResponse::new().with_child(&wanted).unwrap());
        assert_eq!(plan.steps[0].action, expected, "{plan}");
    }
}

#[test]
fn deletions_beyond_the_budget_are_withheld() {
    let mut world =
        world(apply()).made(map("a", json!({}))).made(map("b", json!({}))).made(map("c", json!({})));
    world.deletions_allowed = 1;
    world.check(
        [],
        expect![[r#"
        Shop.example.com/v1 ns/shop (generation 3)
          delete ConfigMap.v1 ns/a: it is no longer desired
          waiting: 2 deletions are withheld until the deletion budget allows them"#]],
    );
}
