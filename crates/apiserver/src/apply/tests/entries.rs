//! The entries of `managedFields`: when they are made, folded, dropped, and what times they bear.

use super::kind::{Kind, WIDGET, WIDGET_V2, World, check, widget};
use crate::apply::{FieldSet, Target, Writer, keep_times, track_update};
use expect_test::expect;
use serde_json::{Value, json};

fn text(text: &str) -> Value {
    json!({"spec": {"text": text}})
}

#[test]
fn times_change_only_with_the_object() {
    check(
        widget(),
        &[("a", text("x")), ("a", text("x")), ("b", text("x")), ("=c", text("x")), ("=c", text("y"))],
        &expect![[r#"
            a: ok
            a: ok
            b: ok
            =c: ok
            =c: ok
            spec: {"text":"y"}
            c Update @5 {"f:spec":{"f:text":{}}}
        "#]],
    );
}

#[test]
fn subresources_have_entries_of_their_own() {
    check(
        widget(),
        &[
            ("=a", json!({"spec": {"text": "x"}, "status": {"phase": "no"}})),
            ("=a/status", json!({"spec": {"text": "no"}, "status": {"phase": "x"}})),
            ("b/status", json!({"status": {"phase": "y"}})),
            ("b/status!", json!({"status": {"phase": "y", "conditions": [{"type": "Ready"}]}})),
        ],
        &expect![[r#"
            =a: ok
            =a/status: ok
            b/status: Apply failed with 1 conflict: conflict with "a" with subresource "status" using apply.test/v1: .status.phase
            b/status!: ok
            spec: {"text":"no"}
            status: {"conditions":[{"type":"Ready"}],"phase":"y"}
            b/status Apply @4 {"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:type":{}}},"f:phase":{}}}
            a Update @1 {"f:spec":{".":{},"f:text":{}}}
        "#]],
    );
}

#[test]
fn names_and_what_the_server_keeps_are_nobodys() {
    let metadata =
        json!({"labels": {"a": "b"}, "finalizers": ["f"], "generation": 1, "resourceVersion": "1"});
    check(
        widget(),
        &[("=a", json!({"metadata": metadata})), ("b", json!({"metadata": metadata}))],
        &expect![[r#"
        =a: ok
        b: ok
        metadata: {"finalizers":["f"],"generation":1,"labels":{"a":"b"},"resourceVersion":"1"}
        b Apply @- {"f:metadata":{"f:finalizers":{"v:\"f\"":{}},"f:labels":{"f:a":{}}}}
        a Update @1 {"f:metadata":{"f:finalizers":{".":{},"v:\"f\"":{}},"f:labels":{".":{},"f:a":{}}}}
    "#]],
    );
}

#[test]
fn cleared_entries_stay_away_until_the_next_apply() {
    check(
        widget(),
        &[
            ("=a", text("x")),
            ("=a", json!({"metadata": {"managedFields": [{}]}, "spec": {"text": "x"}})),
            ("=a", text("y")),
            ("b", json!({"spec": {"text": "y", "count": 1}})),
        ],
        &expect![[r#"
            =a: ok
            =a: ok
            =a: ok
            b: ok
            spec: {"count":1,"text":"y"}
            b Apply @4 {"f:spec":{"f:count":{},"f:text":{}}}
            before-first-apply Update @4 {"f:spec":{".":{},"f:text":{}}}
        "#]],
    );
}

#[test]
fn entries_that_make_no_sense_do_not_replace_the_live_ones() {
    let entry = json!({"manager": "z", "operation": "Guess", "apiVersion": "v1", "fieldsType": "FieldsV1"});
    let mut body = text("x");
    body["metadata"] = json!({ "managedFields": [entry] });
    check(
        widget(),
        &[("=a", text("x")), ("=b", body)],
        &expect![[r#"
        =a: ok
        =b: ok
        spec: {"text":"x"}
        a Update @1 {"f:spec":{".":{},"f:text":{}}}
    "#]],
    );
}

#[test]
fn entries_sent_with_an_update_count() {
    let entry = json!({"manager": "z", "operation": "Apply", "apiVersion": "apply.test/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:text": {}, "x:later": {}}}});
    let mut body = text("x");
    body["metadata"] = json!({ "managedFields": [entry] });
    check(
        widget(),
        &[("=a", text("x")), ("=b", body)],
        &expect![[r#"
        =a: ok
        =b: ok
        spec: {"text":"x"}
        z Apply @- {"f:spec":{"f:text":{}}}
    "#]],
    );
}

#[test]
fn the_oldest_updates_are_folded_beyond_ten() {
    let mut world = World::new(widget());
    let mut labels = serde_json::Map::new();
    for i in 0..13 {
        labels.insert(format!("l{i:02}"), json!("x"));
        world.step(&format!("=u{i:02}"), &json!({"spec": {"labels": labels}}));
    }
    expect![[r#"
        spec: {"labels":{"l00":"x","l01":"x","l02":"x","l03":"x","l04":"x","l05":"x","l06":"x","l07":"x","l08":"x","l09":"x","l10":"x","l11":"x","l12":"x"}}
        ancient-changes Update @4 {"f:spec":{".":{},"f:labels":{".":{},"f:l00":{},"f:l01":{},"f:l02":{},"f:l03":{}}}}
        u04 Update @5 {"f:spec":{"f:labels":{"f:l04":{}}}}
        u05 Update @6 {"f:spec":{"f:labels":{"f:l05":{}}}}
        u06 Update @7 {"f:spec":{"f:labels":{"f:l06":{}}}}
        u07 Update @8 {"f:spec":{"f:labels":{"f:l07":{}}}}
        u08 Update @9 {"f:spec":{"f:labels":{"f:l08":{}}}}
        u09 Update @10 {"f:spec":{"f:labels":{"f:l09":{}}}}
        u10 Update @11 {"f:spec":{"f:labels":{"f:l10":{}}}}
        u11 Update @12 {"f:spec":{"f:labels":{"f:l11":{}}}}
        u12 Update @13 {"f:spec":{"f:labels":{"f:l12":{}}}}
    "#]].assert_eq(&world.state());
}

#[test]
fn entries_in_other_versions_keep_up() {
    let mut world = World::new(widget());
    world.step("a", &json!({"spec": {"text": "x", "labels": {"k": "1"}, "tags": ["t"]}}));
    let live = world.live.take();
    let mut world = World::new(Kind { api_version: "apply.test/v2", schema: &WIDGET_V2, ..widget() });
    world.live = live;
    world.live.as_mut().unwrap()["apiVersion"] = json!("apply.test/v2");
    let mut out = world.step("b", &json!({"spec": {"labels": {"k": "2"}}}));
    out += &world.step("b!", &json!({"spec": {"labels": {"k": "2"}, "tags": ["u"]}}));
    out += &world.step("a", &json!({"spec": {"labels": {"k": "2"}}}));
    expect![[r#"
        b: Apply failed with 1 conflict: conflict with "a": .spec.labels.k
        b!: ok
        a: ok
        spec: {"labels":{"k":"2"},"tags":["u"]}
        b Apply @2 {"f:spec":{"f:labels":{},"f:tags":{}}}
        a Apply @3 {"f:spec":{"f:labels":{}}}
    "#]]
    .assert_eq(&(out + &world.state()));
}

#[test]
fn entries_in_a_version_that_is_gone_are_dropped() {
    let mut world = World::new(widget());
    world.step("=a", &text("x"));
    world.live.as_mut().unwrap()["metadata"]["managedFields"][0]["apiVersion"] = json!("apply.test/v0");
    world.step("b", &text("y"));
    expect![[r#"
        spec: {"text":"y"}
        b Apply @2 {"f:spec":{"f:text":{}}}
    "#]]
    .assert_eq(&world.state());
}

#[test]
fn what_became_atomic_is_owned_as_a_whole() {
    let mut world = World::new(widget());
    world.step("=a", &json!({"spec": {"selector": {"s": "1"}, "args": ["x"]}}));
    let fields = json!({"f:spec": {"f:selector": {".": {}, "f:s": {}}, "f:args": {"v:\"x\"": {}}}});
    world.live.as_mut().unwrap()["metadata"]["managedFields"][0]["fieldsV1"] = fields;
    world.step("b", &text("y"));
    expect![[r#"
        spec: {"args":["x"],"selector":{"s":"1"},"text":"y"}
        b Apply @2 {"f:spec":{"f:text":{}}}
        a Update @1 {"f:spec":{"f:args":{},"f:selector":{}}}
    "#]]
    .assert_eq(&world.state());
}

#[test]
fn a_configuration_has_the_type_of_the_request_and_no_entries() {
    check(
        widget(),
        &[
            ("a", json!({"kind": "Gadget"})),
            ("a", json!({"apiVersion": "v1"})),
            ("a", json!({"metadata": {"managedFields": []}})),
            ("a", json!({"metadata": {"managedFields": null}})),
        ],
        &expect![[r"
            a: invalid object type: apply.test/v1, Kind=Gadget
            a: invalid object type: /v1, Kind=Widget
            a: metadata.managedFields must be nil
            a: ok
        "]],
    );
}

#[test]
fn unreadable_live_entries_stop_an_apply() {
    let mut world = World::new(widget());
    world.step("=a", &text("x"));
    let managed = &mut world.live.as_mut().unwrap()["metadata"]["managedFields"];
    managed[0].as_object_mut().unwrap().remove("fieldsType");
    let out = world.step("b", &text("y"));
    expect![[r"
        b: failed to decode managed fields: missing fieldsType in managed fields entry 0
    "]]
    .assert_eq(&out);
}

#[test]
fn times_are_kept_when_nothing_else_changed() {
    let object = |time: &str, text: &str| json!({"metadata": {"managedFields": [{"manager": "a", "time": time}]}, "spec": {"text": text}});
    let cases = [("x", "x", "1970-01-01T00:00:01Z"), ("x", "y", "1970-01-01T00:00:02Z")];
    for (before, after, time) in cases {
        let mut new = object("1970-01-01T00:00:02Z", after);
        keep_times(&object("1970-01-01T00:00:01Z", before), &mut new);
        assert_eq!(new, object(time, after));
    }
}

#[test]
fn times_are_whole_seconds() {
    let mut new = json!({"metadata": {}, "spec": {"text": "x"}});
    let target = Target {
        api_version: "apply.test/v1",
        kind: "Widget",
        schema: &WIDGET,
        reset: &FieldSet::default(),
        reset_elsewhere: false,
        convert: &|_, _| None,
    };
    let time = "2026-01-02T03:04:05.999Z".parse().unwrap();
    track_update(None, &mut new, &Writer { name: "", subresource: "", time }, &target);
    let entry = &new["metadata"]["managedFields"][0];
    assert_eq!((&entry["time"], &entry["manager"]), (&json!("2026-01-02T03:04:05Z"), &json!("unknown")));
}
