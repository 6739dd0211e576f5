//! What is a difference and what is not, case by case.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::super::{Extent, Learned, Ownership, Rules, compare, difference};
use super::{lines, rules};

fn spec(spec: &Value) -> Value {
    json!({"spec": spec})
}

#[track_caller]
fn check(rules: &Rules, desired: &Value, live: &Value, expect: &Expect) {
    expect.assert_eq(&lines(compare(&spec(desired), &spec(live), rules, &Learned::nothing())));
}

#[track_caller]
fn equal(rules: &Rules, desired: &Value, live: &Value) {
    assert_eq!(compare(&spec(desired), &spec(live), rules, &Learned::nothing()), []);
}

#[test]
fn only_desired_fields_are_looked_at() {
    let rules = rules();
    equal(&rules, &json!({"a": 1}), &json!({"a": 1, "b": 2}));
    equal(&rules, &json!({"a": 1, "b": null}), &json!({"a": 1.0, "b": 2}));
    check(
        &rules,
        &json!({"a": 2, "b": {"c": null}}),
        &json!({"a": 1}),
        &expect![[r"
        spec.a: 1 → 2
        spec.b: added {}
    "]],
    );
}

#[test]
fn keyed_items_are_matched_by_their_keys() {
    let rules = rules();
    let desired = json!({"keyed": [{"name": "web", "image": "b"}, {"name": "log", "image": "l"}]});
    let live = json!({"keyed": [
        {"name": "injected"},
        {"name": "web", "protocol": "UDP", "image": "u"},
        {"name": "web", "protocol": "TCP", "image": "a", "extra": true},
    ]});
    check(
        &rules,
        &desired,
        &live,
        &expect![[r#"
        spec.keyed[name=web,protocol=TCP].image: "a" → "b"
        spec.keyed[name=log,protocol=TCP]: added {"image":"l","name":"log"}
    "#]],
    );
    equal(&rules, &json!({"keyed": []}), &live);
    equal(&rules, &json!({"keyed": []}), &json!({}));
    equal(&rules, &json!({"merged": [{"name": "b"}]}), &json!({"merged": [{"name": "a"}, {"name": "b"}]}));
}

#[test]
fn an_item_that_is_there_twice_is_a_difference() {
    let live = json!({"merged": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]});
    check(
        &rules(),
        &json!({"merged": [{"name": "A", "value": "1"}]}),
        &live,
        &expect![[r#"
        spec.merged[name=A]: {"name":"A","value":"1"} → {"name":"A","value":"1"}
    "#]],
    );
    equal(&rules(), &live, &live);
    let desired = json!({"merged": [{"name": "A", "value": "1"}, {"name": "A", "value": "3"}]});
    check(
        &rules(),
        &desired,
        &live,
        &expect![[r#"
        spec.merged: [{"name":"A","value":"1"},{"name":"A","value":"2"}] → [{"name":"A","value":"1"},{"name":"A","value":"3"}]
    "#]],
    );
}

#[test]
fn a_long_list_is_matched_as_a_short_one() {
    let item = |number: usize| json!({"name": format!("n{number}"), "value": number});
    let desired: Vec<Value> = (0..100).map(item).collect();
    let mut live: Vec<Value> = (0..120).rev().map(item).collect();
    equal(&rules(), &json!({"merged": desired}), &json!({"merged": live}));
    live.retain(|item| item["value"] != 7);
    live.push(json!({"name": "n9"}));
    check(
        &rules(),
        &json!({"merged": desired}),
        &json!({"merged": live}),
        &expect![[r#"
        spec.merged[name=n7]: added {"name":"n7","value":7}
        spec.merged[name=n9]: {"name":"n9","value":9} → {"name":"n9","value":9}
    "#]],
    );
    let (wanted, found): (Vec<usize>, Vec<usize>) = ((0..100).collect(), (1..120).rev().collect());
    check(
        &rules(),
        &json!({"set": wanted}),
        &json!({"set": found}),
        &expect![[r"
        spec.set[=0]: added 0
    "]],
    );
}

#[test]
fn sets_need_only_have_the_members() {
    let rules = rules();
    equal(&rules, &json!({"set": ["a", "a"]}), &json!({"set": ["b", "a"]}));
    check(
        &rules,
        &json!({"set": ["a", "c", "c"]}),
        &json!({"set": ["b", "a"]}),
        &expect![[r#"
        spec.set[=c]: added "c"
    "#]],
    );
}

#[test]
fn atomic_lists_and_maps_are_compared_as_a_whole() {
    let rules = rules();
    equal(
        &rules,
        &json!({"atomic": [{"amount": "1", "x": null}]}),
        &json!({"atomic": [{"amount": "1000m"}]}),
    );
    equal(&rules, &json!({"whole": {"amount": 1}}), &json!({"whole": {"amount": "1"}}));
    check(
        &rules,
        &json!({"atomic": [], "bare": [1]}),
        &json!({"atomic": [1], "bare": [1, 2]}),
        &expect![[r"
        spec.atomic: [1] → []
        spec.bare: [1,2] → [1]
    "]],
    );
    check(
        &rules,
        &json!({"whole": {"a": 1}}),
        &json!({"whole": {"a": 1, "b": 2}}),
        &expect![[r#"
        spec.whole: {"a":1,"b":2} → {"a":1}
    "#]],
    );
    check(
        &rules,
        &json!({"atomic": []}),
        &json!({}),
        &expect![[r"
        spec.atomic: added []
    "]],
    );
}

#[test]
fn quantities_are_compared_by_value_and_other_strings_are_not() {
    let rules = rules();
    equal(&rules, &json!({"amount": "1Gi"}), &json!({"amount": 1_073_741_824}));
    equal(&rules, &json!({"amounts": {"cpu": 0.5}}), &json!({"amounts": {"cpu": "500m"}}));
    check(
        &rules,
        &json!({"amounts": {"cpu": "1"}, "name": "1"}),
        &json!({"amounts": {"cpu": "1m"}, "name": 1}),
        &expect![[r#"
        spec.amounts.cpu: "1m" → "1"
        spec.name: 1 → "1"
    "#]],
    );
}

#[test]
fn without_a_schema_named_items_are_matched_by_name() {
    let rules = Rules::unknown();
    equal(
        &rules,
        &json!({"any": [{"name": "b"}]}),
        &json!({"any": [{"name": "a"}, {"x": 1}, {"name": "b", "y": 2}]}),
    );
    check(
        &rules,
        &json!({"any": [{"name": 1}], "none": []}),
        &json!({"any": [{"name": 1}, 2], "none": [1]}),
        &expect![[r#"
        spec.any: [{"name":1},2] → [{"name":1}]
        spec.none: [1] → []
    "#]],
    );
}

#[test]
fn of_metadata_only_what_an_author_decides_is_compared() {
    let desired = json!({"metadata": {
        "name": "web", "labels": {"a": "1"}, "uid": "x", "resourceVersion": "1", "generateName": "w-",
        "finalizers": ["mine"], "ownerReferences": [{"uid": "1", "controller": true}],
    }});
    let live = json!({"metadata": {
        "name": "web", "labels": {"a": "2", "b": "3"}, "uid": "y", "resourceVersion": "2",
        "finalizers": ["theirs"], "ownerReferences": [{"uid": "2"}, {"uid": "1", "controller": false}],
    }});
    expect![[r#"
        metadata.finalizers[=mine]: added "mine"
        metadata.labels.a: "2" → "1"
        metadata.ownerReferences[uid="1"].controller: false → true
    "#]]
    .assert_eq(&lines(compare(&desired, &live, &Rules::unknown(), &Learned::nothing())));
}

#[test]
fn a_rewriting_is_learned_until_either_side_changes() {
    let rules = rules();
    let sent =
        spec(&json!({"whole": {"path": "name"}, "flag": false, "merged": [{"name": "a", "text": "X"}]}));
    let made =
        spec(&json!({"whole": {"path": "name", "version": "v1"}, "merged": [{"name": "a", "text": "x"}]}));
    let learned = Learned::from_response(&sent, &made, &rules);
    assert_eq!(learned.len(), 3);
    let told = |desired: &Value, live: &Value| lines(compare(desired, live, &rules, &learned));

    expect![""].assert_eq(&told(&sent, &made));
    let mut edited = made.clone();
    edited["spec"]["whole"]["version"] = json!("v2");
    edited["spec"]["merged"] = json!([{"name": "new", "text": "X"}, {"name": "a", "text": "X"}]);
    edited["spec"]["flag"] = json!(true);
    expect![[r#"
        spec.flag: true → false
        spec.whole: {"path":"name","version":"v2"} → {"path":"name"}
    "#]]
    .assert_eq(&told(&sent, &edited));
    let mut wanted = sent.clone();
    wanted["spec"]["merged"][0]["text"] = json!("Y");
    expect![[r#"
        spec.merged[name=a].text: "x" → "Y"
    "#]]
    .assert_eq(&told(&wanted, &made));
}

#[test]
fn nothing_learned_takes_no_room() {
    assert_eq!(size_of::<Learned>(), 2 * size_of::<usize>());
    let object = spec(&json!({"a": 1}));
    assert!(Learned::from_response(&object, &object, &Rules::unknown()).is_empty());
}

#[test]
fn a_difference_tells_removals_and_leaves_out_what_the_server_keeps() {
    let old = json!({
        "metadata": {"resourceVersion": "1", "generation": 1, "uid": "x", "managedFields": [], "labels": {"a": "1"}},
        "spec": {"merged": [{"name": "a", "v": 1}, {"name": "b"}], "bare": ["x", "y"], "set": ["s", "t"], "gone": true},
        "status": {"ready": 1},
    });
    let new = json!({
        "metadata": {"resourceVersion": "2", "generation": 2, "labels": {}},
        "spec": {"merged": [{"name": "a", "v": 2}, {"name": "c"}], "bare": ["x", "z"], "set": ["t"], "gone": null},
        "status": {"ready": 2},
    });
    expect![[r#"
        metadata.labels.a: removed, was "1"
        spec.bare[1]: "y" → "z"
        spec.gone: removed, was true
        spec.merged[name=a].v: 1 → 2
        spec.merged[name=c]: added {"name":"c"}
        spec.merged[name=b]: removed, was {"name":"b"}
        spec.set[=s]: removed, was "s"
    "#]]
    .assert_eq(&lines(difference(&old, &new, &rules(), Extent::WithoutStatus)));
    let status = difference(&old, &new, &rules(), Extent::WithStatus);
    assert_eq!(status.last().unwrap().to_string(), "status.ready: 1 → 2");
    let order = difference(
        &spec(&json!({"set": ["a", "b"]})),
        &spec(&json!({"set": ["b", "a"]})),
        &rules(),
        Extent::WithStatus,
    );
    assert_eq!(lines(order), "spec.set: [\"a\",\"b\"] → [\"b\",\"a\"]\n");
}

#[test]
fn ownership_is_read_from_managed_fields() {
    let object = json!({"metadata": {"managedFields": [
        {"manager": "web", "operation": "Apply", "fieldsV1": {
            "f:metadata": {"f:labels": {}, "f:finalizers": {".": {}, "v:\"mine\"": {}}},
            "f:spec": {"f:bare": {}, "f:count": {}, "f:keyed": {
                "k:{\"name\":\"a\",\"protocol\":\"TCP\"}": {".": {}, "f:image": {}, "f:name": {}},
                "k:{\"name\":\"\\u003c\",\"protocol\":\"TCP\"}": {".": {}, "f:image": {}},
            }},
        }},
        {"manager": "web", "operation": "Update", "fieldsV1": {"f:spec": {"f:updated": {}}}},
        {"manager": "web", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {"f:x": {}}}},
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {
            "f:theirs": {}, "f:count": {}, "f:keyed": {"k:{\"name\":\"a\",\"protocol\":\"TCP\"}": {"f:image": {}}},
        }}},
    ]}});
    let ours = Ownership::of(&object, "web", "");
    let owns = |path: &str| ours.owns(&path.parse().unwrap());
    for path in [
        "metadata.labels",
        "metadata.finalizers[=mine]",
        "spec.bare",
        "spec.bare[1]",
        "spec.updated",
        "spec.keyed[name=a,protocol=TCP]",
        "spec.keyed[name=a,protocol=TCP].image",
        r#"spec.keyed[name="<",protocol=TCP].image"#,
    ] {
        assert!(owns(path), "{path}");
    }
    for path in [
        ".",
        "spec",
        "spec.theirs",
        "metadata.labels.app",
        "metadata.finalizers[=theirs]",
        "spec.keyed",
        "spec.keyed[name=b,protocol=TCP]",
        "spec.keyed[name=a,protocol=TCP].port",
        "status.x",
    ] {
        assert!(!owns(path), "{path}");
    }
    assert!(Ownership::of(&object, "web", "status").owns(&"status.x".parse().unwrap()));
    assert!(Ownership::of(&object, "nobody", "").is_empty());

    let desired = json!({"metadata": {"finalizers": ["mine"]}, "spec": {"bare": [1], "keyed": []}});
    let dropped: Vec<String> =
        ours.paths_not_in(&desired, &rules()).iter().map(ToString::to_string).collect();
    assert_eq!(
        dropped,
        ["metadata.labels", r#"spec.keyed[name="<",protocol=TCP]"#, "spec.keyed[name=a,protocol=TCP].name",]
    );
}

#[test]
fn a_change_is_owned_only_when_all_of_it_is() {
    let object = json!({"metadata": {"managedFields": [{"manager": "web", "operation": "Apply", "fieldsV1": {
        "f:spec": {"f:strategy": {"f:type": {}}, "f:keyed": {"k:{\"name\":\"a\",\"protocol\":\"TCP\"}": {
            ".": {}, "f:name": {}, "f:whole": {}, "f:set": {"v:\"x\"": {}}, "f:bare": {},
        }}},
    }}]}});
    let ours = Ownership::of(&object, "web", "");
    let owned = |desired: &Value| {
        let changes = compare(&spec(desired), &json!({"spec": {}}), &rules(), &Learned::nothing());
        changes.iter().all(|change| ours.owns_change(change, &rules()))
    };
    assert!(owned(&json!({"strategy": {"type": "x"}})));
    assert!(!owned(&json!({"strategy": {"type": "x", "other": 1}})));
    assert!(owned(&json!({"keyed": [{"name": "a", "whole": {"x": 1}, "set": ["x"], "bare": [1]}]})));
    assert!(!owned(&json!({"keyed": [{"name": "a", "set": ["x", "y"]}]})));
    assert!(!owned(&json!({"keyed": [{"name": "b"}]})));
}
