use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn labels(text: &str) -> BTreeMap<&str, &str> {
    text.split_terminator(',').filter_map(|label| label.split_once('=')).collect()
}

fn selects(selector: &str, object: &str) -> bool {
    selector.parse::<Selector>().unwrap().matches(&labels(object))
}

#[test]
fn selectors_select_as_the_api_does() {
    for (selector, yes, no) in [
        ("", vec!["", "a=1"], vec![]),
        ("a=1", vec!["a=1", "a=1,b=2"], vec!["", "a=2"]),
        ("a == 1", vec!["a=1"], vec!["b=1"]),
        ("a=", vec!["a="], vec!["", "a=1"]),
        ("a!=1", vec!["", "a=2"], vec!["a=1"]),
        ("a in (1, 2)", vec!["a=1", "a=2"], vec!["", "a=3"]),
        ("a in (,1)", vec!["a=", "a=1"], vec![""]),
        ("a notin (1,2)", vec!["", "a=3"], vec!["a=1", "a=2"]),
        ("a", vec!["a=", "a=1"], vec!["", "b="]),
        ("!a", vec!["", "b=1"], vec!["a="]),
        ("a>5", vec!["a=6"], vec!["", "a=5", "a=x"]),
        ("a<5,b", vec!["a=4,b="], vec!["a=4", "a=5,b="]),
        ("x.io/in in (in)", vec!["x.io/in=in"], vec!["x.io/in=notin"]),
    ] {
        for object in yes {
            assert!(selects(selector, object), "{selector:?} on {object:?}");
        }
        for object in no {
            assert!(!selects(selector, object), "{selector:?} on {object:?}");
        }
    }
}

#[test]
fn text_of_a_selector_is_read_back_as_the_same() {
    for text in ["", "a=1", "!a,b!=2,c in (1,2),d notin (1,2),e,f<4,g>5", "a=", "a!="] {
        let selector: Selector = text.parse().unwrap();
        assert_eq!(selector.to_string(), text);
        assert_eq!(selector.to_string().parse(), Ok(selector));
    }
}

fn check_error(text: &str, expect: &Expect) {
    expect.assert_eq(&text.parse::<Selector>().unwrap_err().to_string());
}

#[test]
fn what_is_no_selector_is_refused_where_it_goes_wrong() {
    check_error("a=1,", &expect![[r#"label selector "a=1,": expected a label at """#]]);
    check_error("a=1 b=2", &expect![[r#"label selector "a=1 b=2": expected a comma at "b=2""#]]);
    check_error("a in 1", &expect![[r#"label selector "a in 1": expected a list in parentheses at "1""#]]);
    check_error("a in (1", &expect![[r#"label selector "a in (1": expected a closing parenthesis at """#]]);
    check_error("a>x", &expect![[r#"label selector "a>x": expected a whole number at "x""#]]);
    check_error("=1", &expect![[r#"label selector "=1": expected a label at "=1""#]]);
    check_error("a~1", &expect![[r#"label selector "a~1": expected an operator at "~1""#]]);
}

fn of_fields(fields: serde_json::Value) -> Result<Selector, SelectorError> {
    let fields: LabelSelector = serde_json::from_value(fields).unwrap();
    Selector::try_from(&fields)
}

#[test]
fn fields_of_an_object_mean_the_same_as_the_text() {
    let fields = json!({
        "matchLabels": {"a": "1"},
        "matchExpressions": [
            {"key": "b", "operator": "In", "values": ["1", "2"]},
            {"key": "c", "operator": "NotIn", "values": ["3"]},
            {"key": "d", "operator": "Exists"},
            {"key": "e", "operator": "DoesNotExist"},
        ],
    });
    assert_eq!(of_fields(fields), "a=1,b in (1,2),c!=3,d,!e".parse());
    assert_eq!(of_fields(json!({})), Ok(Selector::everything()));
    assert_eq!(Selector::labels([("a", "1")]), "a=1".parse().unwrap());
}

#[test]
fn impossible_expressions_are_refused() {
    for (operator, values) in
        [("In", json!([])), ("Exists", json!(["1"])), ("Gt", json!(["1"])), ("", json!([]))]
    {
        let fields = json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
        assert!(matches!(of_fields(fields), Err(SelectorError::Expression { .. })), "{operator}");
    }
}
