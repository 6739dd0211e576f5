//! What paths and changes look like.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Change, FieldPath, Literal, Step};
use crate::{Kind, Scope};

#[test]
fn paths_are_written_as_people_write_them() {
    for text in [
        ".",
        "spec",
        "spec.template.spec.containers[name=web].image",
        r#"metadata.annotations["a.b/c"]"#,
        "spec.args[2]",
        "spec.ports[containerPort=80,protocol=TCP].name",
        "metadata.finalizers[=example.com/cleanup]",
        r#"a[name="80"].b[=80].c[=true].d[="true"].e[=null].f[=1.5].g[={"x":1}]"#,
        r#"["a.b"][""].c"#,
    ] {
        assert_eq!(text.parse::<FieldPath>().unwrap().to_string(), text);
    }
}

#[test]
fn keys_of_an_item_have_one_order() {
    let path: FieldPath = "ports[protocol=TCP,containerPort=80.0]".parse().unwrap();
    assert_eq!(path.to_string(), "ports[containerPort=80,protocol=TCP]");
}

#[test]
fn what_is_no_path_is_refused_with_the_place() {
    let refuse = |text: &str, expect: Expect| {
        expect.assert_eq(&text.parse::<FieldPath>().unwrap_err().to_string());
    };
    refuse("", expect![[r#"cannot read the field path "": it is empty at byte 0"#]]);
    refuse("a..b", expect![[r#"cannot read the field path "a..b": a name is missing at byte 2"#]]);
    refuse("a[2", expect![[r#"cannot read the field path "a[2": an equals sign is missing at byte 3"#]]);
    refuse(
        "a[0]b",
        expect![[r#"cannot read the field path "a[0]b": a dot or a bracket is missing at byte 4"#]],
    );
    refuse("a[b=é]", expect![[r#"cannot read the field path "a[b=é]": this is no JSON value at byte 4"#]]);
    refuse("a[b=c", expect![[r#"cannot read the field path "a[b=c": a bracket is not closed at byte 5"#]]);
}

fn change(path: &str, from: Value, to: Value) -> Change {
    let some = |value: Value| (!value.is_null()).then_some(value);
    Change { path: path.parse().unwrap(), from: some(from), to: some(to) }
}

#[test]
fn a_change_is_one_line() {
    let check = |change: Change, expect: Expect| expect.assert_eq(&change.to_string());
    check(change("spec.replicas", json!(2), json!(3)), expect!["spec.replicas: 2 → 3"]);
    check(change("spec.paused", Value::Null, json!(true)), expect!["spec.paused: added true"]);
    check(change("spec.paused", json!(true), Value::Null), expect!["spec.paused: removed, was true"]);
    check(
        change("spec.text", json!("line\n\"x\""), json!({"b": [1, null], "a": {}})),
        expect![[r#"spec.text: "line\n\"x\"" → {"a":{},"b":[1,null]}"#]],
    );
    check(
        change("data.page", json!("é".repeat(100)), json!(vec!["x"; 40])),
        expect![[
            r#"data.page: "ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé… → ["x","x","x","x","x","x","x","x","x","x","x","x","x","x","x"…"#
        ]],
    );
}

#[test]
fn long_values_that_begin_alike_are_shown_where_they_differ() {
    let page = |end: &str| json!(format!("{}{end}", "é".repeat(100)));
    let lead = "é".repeat(20);
    assert_eq!(
        change("data.page", page("one"), page("two")).to_string(),
        format!(r#"data.page: …{lead}one" → …{lead}two""#)
    );
}

#[test]
fn changes_can_be_stored() {
    let stored = serde_json::to_value(change("spec.paused", Value::Null, json!(true))).unwrap();
    assert_eq!(stored, json!({"path": "spec.paused", "to": true}));
    assert_eq!(
        serde_json::from_value::<Change>(stored).unwrap(),
        change("spec.paused", Value::Null, json!(true))
    );
}

#[test]
fn what_a_secret_holds_is_not_shown() {
    let secret = Kind::new("v1", "Secret", "secrets", Scope::Namespaced);
    let last = r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#;
    for path in
        [".", "data", "data.password", "stringData.password", "metadata", "metadata.annotations", last]
    {
        let shown = change(path, json!("hunter1"), json!({"password": "hunter2"})).showable(&secret);
        assert_eq!(shown.to_string(), format!("{path}: (redacted) → (redacted)"));
        assert!(!serde_json::to_string(&shown).unwrap().contains("hunter"));
    }
    let label = change("metadata.labels.app", json!("a"), json!("b"));
    assert_eq!(label.clone().showable(&secret), label);
    let config = Kind::new("v1", "ConfigMap", "configmaps", Scope::Namespaced);
    let data = change("data.page", json!("a"), json!("b"));
    assert_eq!(data.clone().showable(&config), data);
    assert_eq!(change("data.a", Value::Null, json!("b")).redacted().to_string(), "data.a: added (redacted)");
}

fn literal() -> impl Strategy<Value = Literal> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
        ".{0,6}".prop_map(Value::from),
        "[a-z0-9./=\\[\\],-]{0,6}".prop_map(Value::from),
        Just(json!("true")),
        Just(json!({"b": [1], "a": "]"})),
    ];
    value.prop_map(|value| Literal::from(&value))
}

fn name() -> impl Strategy<Value = Box<str>> {
    prop_oneof!["[a-z]{1,4}", ".{0,4}", "[a-z./]{0,4}", "[0-9]{1,2}"].prop_map(Box::from)
}

prop_compose! {
    fn keys()(keys in prop::collection::btree_map(name(), literal(), 1..4)) -> Box<[(Box<str>, Literal)]> {
        keys.into_iter().collect()
    }
}

proptest! {
    #[test]
    fn the_text_of_a_path_is_read_back(steps in prop::collection::vec(
        prop_oneof![
            name().prop_map(Step::Field),
            keys().prop_map(Step::Item),
            literal().prop_map(Step::Member),
            any::<usize>().prop_map(Step::Index),
        ],
        0..6,
    )) {
        let path: FieldPath = steps.into_iter().collect();
        prop_assert_eq!(path.to_string().parse::<FieldPath>().unwrap(), path);
    }

    #[test]
    fn any_text_is_a_path_or_is_refused(text in ".{0,12}|[a-z.=\\[\\]\",0-9]{0,12}") {
        if let Ok(path) = text.parse::<FieldPath>() {
            prop_assert_eq!(path.to_string().parse::<FieldPath>().unwrap(), path);
        }
    }
}
