//! Sets of fields and their steps.

use crate::apply::path::Element;
use crate::apply::set::FieldSet;
use expect_test::expect;
use serde_json::{Value, json};

fn set(fields: &Value) -> FieldSet {
    FieldSet::parse(fields).unwrap()
}

#[test]
fn steps_read_and_print() {
    let cases = [
        ("f:a.b/c", ".a.b/c"),
        (r#"k:{"name":"a","port":80}"#, r#"[name="a",port=80]"#),
        (r#"v:"a\"b""#, r#"[="a\"b"]"#),
        ("v:1.5", "[=1.5]"),
        ("v:true", "[=true]"),
        ("v:10000000", "[=10000000]"),
        ("i:3", "[3]"),
    ];
    for (text, printed) in cases {
        let element = Element::parse(text).unwrap().unwrap();
        assert_eq!(element.to_string(), printed);
        assert_eq!(element.encode(), text);
    }
    assert_eq!(Element::parse("x:later"), Ok(None));
    for wrong in ["f", "", "fa", "i:x", "v:{", "k:[]", "é"] {
        assert!(Element::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn steps_sort_by_kind_then_value() {
    let sorted = [
        "f:a",
        "f:b",
        r#"k:{"a":9}"#,
        r#"k:{"a":10}"#,
        r#"k:{"a":10,"b":"x"}"#,
        r#"k:{"b":1}"#,
        "v:9",
        "v:10",
        "v:10.5",
        r#"v:"a""#,
        "v:false",
        "v:true",
        "i:0",
    ];
    let elements: Vec<Element> = sorted.iter().map(|text| Element::parse(text).unwrap().unwrap()).collect();
    assert!(elements.is_sorted());
    assert_eq!(Element::parse("v:1"), Element::parse("v:1.0"));
}

#[test]
fn a_field_is_a_member_if_marked_or_bare() {
    let fields =
        json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}, "f:e": {".": {}}, "x:later": {"f:f": {}}});
    assert_eq!(set(&fields).paths(9, ToString::to_string), [".a", ".e", ".a.b", ".c.d"]);
    assert_eq!(set(&fields).paths(3, ToString::to_string), [".a", ".e", ".a.b"]);
    assert_eq!(set(&fields).len(), 4);
    expect![[r#"{"f:a":{".":{},"f:b":{}},"f:c":{"f:d":{}},"f:e":{}}"#]]
        .assert_eq(&set(&fields).to_value().to_string());
    assert!(set(&json!({".": {}})).is_empty());
    assert!(FieldSet::parse(&json!([])).is_err());
    assert!(FieldSet::parse(&json!({"f:a": 1})).is_err());
    assert!(FieldSet::parse(&json!({"bad": {}})).is_err());
}

#[test]
fn sets_combine() {
    let a = json!({"f:a": {".": {}, "f:x": {}, "f:y": {}}, "f:b": {}, "f:c": {"f:x": {}}});
    let b = json!({"f:a": {"f:x": {}, "f:z": {}}, "f:b": {}, "f:c": {}});
    let text = |set: FieldSet| set.to_value().to_string();
    let all = [
        text(set(&a).union(set(&b))),
        text(set(&a).intersection(&set(&b))),
        text(set(&a).difference(&set(&b))),
        text(set(&a).recursive_difference(&set(&b))),
        text(set(&b).difference(&set(&a))),
    ];
    expect![[r#"
        {"f:a":{".":{},"f:x":{},"f:y":{},"f:z":{}},"f:b":{},"f:c":{".":{},"f:x":{}}}
        {"f:a":{"f:x":{}},"f:b":{}}
        {"f:a":{".":{},"f:y":{}},"f:c":{"f:x":{}}}
        {"f:a":{".":{},"f:y":{}}}
        {"f:a":{"f:z":{}},"f:c":{}}"#]]
    .assert_eq(&all.join("\n"));
    assert!(set(&a).union(set(&b)).contains_all(&set(&a)));
    assert!(!set(&a).contains_all(&set(&b)));
}
