//! Each kind of list and map: who owns what, what conflicts, what is removed.

use super::kind::{check, widget};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn check_specs(steps: &[(&str, Value)], expect: &Expect) {
    let steps: Vec<(&str, Value)> = steps.iter().map(|(who, spec)| (*who, json!({"spec": spec}))).collect();
    check(widget(), &steps, expect);
}

#[test]
fn scalars_are_shared_while_equal_and_conflict_when_not() {
    check_specs(
        &[
            ("a", json!({"text": "x", "count": 1})),
            ("b", json!({"text": "x"})),
            ("b", json!({"text": "y"})),
            ("b!", json!({"text": "y"})),
        ],
        &expect![[r#"
            a: ok
            b: ok
            b: Apply failed with 1 conflict: conflict with "a": .spec.text
            b!: ok
            spec: {"count":1,"text":"y"}
            a Apply @1 {"f:spec":{"f:count":{}}}
            b Apply @4 {"f:spec":{"f:text":{}}}
        "#]],
    );
}

#[test]
fn a_field_goes_when_its_last_owner_drops_it() {
    check_specs(
        &[
            ("a", json!({"text": "x", "count": 1})),
            ("b", json!({"text": "x"})),
            ("a", json!({})),
            ("b", json!({})),
        ],
        &expect![[r#"
            a: ok
            b: ok
            a: ok
            b: ok
            spec: null
            a Apply @3 {"f:spec":{}}
            b Apply @4 {"f:spec":{}}
        "#]],
    );
}

#[test]
fn entries_of_a_map_are_owned_each_on_its_own() {
    check_specs(
        &[
            ("a", json!({"labels": {"k": "1", "l": "1"}})),
            ("b", json!({"labels": {"m": "1"}})),
            ("a", json!({"labels": {"k": "2"}})),
            ("b", json!({"labels": {"m": "1", "k": "1"}})),
        ],
        &expect![[r#"
            a: ok
            b: ok
            a: ok
            b: Apply failed with 1 conflict: conflict with "a": .spec.labels.k
            spec: {"labels":{"k":"2","m":"1"}}
            b Apply @2 {"f:spec":{"f:labels":{"f:m":{}}}}
            a Apply @3 {"f:spec":{"f:labels":{"f:k":{}}}}
        "#]],
    );
}

#[test]
fn an_atomic_map_has_one_owner() {
    check_specs(
        &[
            ("a", json!({"selector": {"s": "1"}})),
            ("b", json!({"selector": {"t": "1"}})),
            ("b!", json!({"selector": {"t": "1"}})),
        ],
        &expect![[r#"
            a: ok
            b: Apply failed with 1 conflict: conflict with "a": .spec.selector
            b!: ok
            spec: {"selector":{"t":"1"}}
            b Apply @3 {"f:spec":{"f:selector":{}}}
        "#]],
    );
}

#[test]
fn an_atomic_list_is_replaced() {
    check_specs(
        &[
            ("a", json!({"args": ["1", "2"]})),
            ("b", json!({"args": ["2"]})),
            ("a", json!({"args": ["2"]})),
            ("b", json!({"args": ["2"]})),
        ],
        &expect![[r#"
            a: ok
            b: Apply failed with 1 conflict: conflict with "a": .spec.args
            a: ok
            b: ok
            spec: {"args":["2"]}
            b Apply @- {"f:spec":{"f:args":{}}}
            a Apply @3 {"f:spec":{"f:args":{}}}
        "#]],
    );
}

#[test]
fn items_of_a_set_are_owned_each_on_its_own() {
    check_specs(
        &[
            ("a", json!({"tags": ["x", "y"], "numbers": [100, 2]})),
            ("b", json!({"tags": ["z", "y"], "numbers": [10]})),
            ("a", json!({"tags": ["y"]})),
        ],
        &expect![[r#"
            a: ok
            b: ok
            a: ok
            spec: {"numbers":[10],"tags":["z","y"]}
            b Apply @2 {"f:spec":{"f:numbers":{"v:10":{}},"f:tags":{"v:\"y\"":{},"v:\"z\"":{}}}}
            a Apply @3 {"f:spec":{"f:tags":{"v:\"y\"":{}}}}
        "#]],
    );
}

#[test]
fn items_of_a_keyed_list_are_merged_by_key() {
    check_specs(
        &[
            ("a", json!({"items": [{"name": "x", "value": "1"}, {"name": "y", "value": "1"}]})),
            ("b", json!({"items": [{"name": "z"}, {"name": "y", "args": ["q"]}]})),
            ("b", json!({"items": [{"name": "y", "value": "2"}]})),
            ("a", json!({"items": [{"name": "x", "value": "2"}]})),
        ],
        &expect![[r#"
            a: ok
            b: ok
            b: Apply failed with 1 conflict: conflict with "a": .spec.items[name="y"].value
            a: ok
            spec: {"items":[{"name":"x","value":"2"},{"name":"z"},{"args":["q"],"name":"y"}]}
            b Apply @2 {"f:spec":{"f:items":{"k:{\"name\":\"y\"}":{".":{},"f:args":{},"f:name":{}},"k:{\"name\":\"z\"}":{".":{},"f:name":{}}}}}
            a Apply @4 {"f:spec":{"f:items":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:value":{}}}}}
        "#]],
    );
}

#[test]
fn an_absent_key_is_its_default() {
    check_specs(
        &[
            ("a", json!({"items": [{"name": "x", "ports": [{"port": 80, "name": "p"}, {"port": 443}]}]})),
            ("b", json!({"items": [{"name": "x", "ports": [{"port": 80, "protocol": "TCP", "name": "q"}]}]})),
            ("b", json!({"items": [{"name": "x", "ports": [{"port": 80, "protocol": "UDP", "name": "q"}]}]})),
        ],
        &expect![[r#"
            a: ok
            b: Apply failed with 1 conflict: conflict with "a": .spec.items[name="x"].ports[port=80,protocol="TCP"].name
            b: ok
            spec: {"items":[{"name":"x","ports":[{"name":"p","port":80},{"port":443},{"name":"q","port":80,"protocol":"UDP"}]}]}
            a Apply @1 {"f:spec":{"f:items":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}}}
            b Apply @3 {"f:spec":{"f:items":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{}}}}}}}
        "#]],
    );
}

#[test]
fn shared_items_take_the_applied_order_and_others_keep_their_place() {
    let names = |names: &[&str]| {
        let items: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({ "items": items })
    };
    check_specs(
        &[
            ("a", names(&["a", "b", "c", "d", "e"])),
            ("b", names(&["d", "new", "b"])),
            ("c", names(&["last"])),
        ],
        &expect![[r#"
            a: ok
            b: ok
            c: ok
            spec: {"items":[{"name":"a"},{"name":"c"},{"name":"d"},{"name":"e"},{"name":"new"},{"name":"b"},{"name":"last"}]}
            a Apply @1 {"f:spec":{"f:items":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}},"k:{\"name\":\"c\"}":{".":{},"f:name":{}},"k:{\"name\":\"d\"}":{".":{},"f:name":{}},"k:{\"name\":\"e\"}":{".":{},"f:name":{}}}}}
            b Apply @2 {"f:spec":{"f:items":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}},"k:{\"name\":\"d\"}":{".":{},"f:name":{}},"k:{\"name\":\"new\"}":{".":{},"f:name":{}}}}}
            c Apply @3 {"f:spec":{"f:items":{"k:{\"name\":\"last\"}":{".":{},"f:name":{}}}}}
        "#]],
    );
}

#[test]
fn what_the_schema_does_not_know_is_owned_by_its_shape() {
    check_specs(
        &[
            ("a", json!({"free": {"u": {"p": 1, "q": [1, 2]}, "known": {"a": "1"}}, "any": {"x": {"y": 1}}})),
            ("b", json!({"free": {"u": {"r": 1}}, "any": {"x": {"z": null}}})),
            ("c", json!({"any": "text"})),
            ("c!", json!({"any": "text"})),
        ],
        &expect![[r#"
            a: ok
            b: ok
            c: ok
            c!: ok
            spec: {"any":"text","free":{"known":{"a":"1"},"u":{"p":1,"q":[1,2],"r":1}}}
            a Apply @1 {"f:spec":{"f:free":{"f:known":{"f:a":{}},"f:u":{".":{},"f:p":{},"f:q":{}}}}}
            b Apply @2 {"f:spec":{"f:free":{"f:u":{".":{},"f:r":{}}}}}
            c Apply @3 {"f:spec":{"f:any":{}}}
        "#]],
    );
}

#[test]
fn empty_and_null_values_are_owned_themselves() {
    check_specs(
        &[
            ("a", json!({"nested": {"b": {}}, "maybe": null, "labels": {}, "tags": [], "items": []})),
            ("b", json!({"nested": {"b": {"c": "1"}}, "labels": {"k": "1"}, "port": "http"})),
            ("c", json!({"port": 80, "maybe": "x"})),
        ],
        &expect![[r#"
            a: ok
            b: ok
            c: Apply failed with 2 conflicts: conflicts with "a":
            - .spec.maybe
            conflicts with "b":
            - .spec.port
            spec: {"items":[],"labels":{"k":"1"},"maybe":null,"nested":{"b":{"c":"1"}},"port":"http","tags":[]}
            a Apply @1 {"f:spec":{"f:labels":{},"f:maybe":{},"f:nested":{"f:b":{}}}}
            b Apply @2 {"f:spec":{"f:labels":{"f:k":{}},"f:nested":{"f:b":{"f:c":{}}},"f:port":{}}}
        "#]],
    );
}

#[test]
fn a_replace_takes_what_it_changes_and_forgets_what_it_removes() {
    check_specs(
        &[
            ("a", json!({"text": "x", "count": 1, "items": [{"name": "x", "value": "1"}, {"name": "y"}]})),
            ("=b", json!({"text": "x", "count": 2, "items": [{"name": "x", "value": "2"}]})),
            ("=b", json!({"text": "x", "count": 2, "items": [{"name": "x", "value": "2"}]})),
            ("a", json!({"text": "x"})),
        ],
        &expect![[r#"
            a: ok
            =b: ok
            =b: ok
            a: ok
            spec: {"count":2,"items":null,"text":"x"}
            a Apply @4 {"f:spec":{"f:text":{}}}
            b Update @2 {"f:spec":{"f:count":{}}}
        "#]],
    );
}

#[test]
fn items_that_share_a_key_are_owned_together() {
    check_specs(
        &[
            ("=a", json!({"tags": ["x"], "items": [{"name": "x", "value": "1"}]})),
            ("=b", json!({"tags": ["x", "x"], "items": [{"name": "x", "value": "1"}, {"name": "x"}]})),
            ("=c", json!({"tags": ["x", "x"], "items": [{"name": "x", "value": "2"}, {"name": "x"}]})),
            ("d", json!({"items": [{"name": "x", "value": "3"}]})),
            ("d!", json!({"items": [{"name": "x", "value": "3"}]})),
        ],
        &expect![[r#"
            =a: ok
            =b: ok
            =c: ok
            d: Apply failed with 1 conflict: conflict with "c" using apply.test/v1: .spec.items[name="x"]
            d!: ok
            spec: {"items":[{"name":"x","value":"3"}],"tags":["x","x"]}
            d Apply @5 {"f:spec":{"f:items":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:value":{}}}}}
            a Update @1 {"f:spec":{".":{},"f:items":{},"f:tags":{}}}
            b Update @2 {"f:spec":{"f:tags":{"v:\"x\"":{}}}}
        "#]],
    );
}

#[test]
fn wrong_configurations_are_refused_with_the_reason() {
    let specs = [
        json!({"bogus": 1}),
        json!({"nested": {"b": {"d": 1}}}),
        json!({"text": 1}),
        json!({"text": {"a": [1.5]}}),
        json!({"count": "x"}),
        json!({"count": [1]}),
        json!({"labels": ["x"]}),
        json!({"tags": "x"}),
        json!({"port": {}}),
        json!({"tags": ["a", "b", "a"]}),
        json!({"tags": ["a", null]}),
        json!({"tags": [{"a": 1}]}),
        json!({"tags": [["a"]]}),
        json!({"numbers": [1_000_000, 1_000_000.0]}),
        json!({"items": [{"name": "x"}, {"name": "x", "value": 1}]}),
        json!({"items": [{"value": "x"}]}),
        json!({"items": [null]}),
        json!({"items": ["x"]}),
        json!({"items": [{"name": "x", "ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}]}),
        json!({"args": ["x", 1], "text": true}),
    ];
    let steps: Vec<(&str, Value)> = specs.into_iter().map(|spec| ("a", spec)).collect();
    check_specs(
        &steps,
        &expect![[r#"
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.bogus: field not declared in schema
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.nested.b.d: field not declared in schema
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.text: expected string, got &value.valueUnstructured{Value:1}
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":[]interface {}{1.5}}}
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.count: expected numeric (int or float), got string
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.count: expected numeric (int or float), got []interface {}
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.labels: expected map, got &{[x]}
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.tags: expected list, got &{x}
            a: ok
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.tags: duplicate entries for key [="a"]
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.tags: element 1: associative list without keys has an element that's an explicit null
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.tags: element 0: associative list without keys has an element that's a map type
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.tags: element 0: not supported: associative list with lists as elements
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.numbers: duplicate entries for key [=1000000]
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): errors:
              .spec.items: duplicate entries for key [name="x"]
              .spec.items[name="x"].value: expected string, got &value.valueUnstructured{Value:1}
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.items: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn't have default values for any key fields)
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.items: element 0: associative list with keys may not have a null element
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.items: element 0: associative list with keys may not have non-map elements
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): .spec.items[name="x"].ports: duplicate entries for key [port=1,protocol="TCP"]
            a: failed to create typed patch object (ns/it; apply.test/v1, Kind=Widget): errors:
              .spec.args[1]: expected string, got &value.valueUnstructured{Value:1}
              .spec.text: expected string, got &value.valueUnstructured{Value:true}
            spec: {"port":{}}
            a Apply @9 {"f:spec":{"f:port":{}}}
        "#]],
    );
}
