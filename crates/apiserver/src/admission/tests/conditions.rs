use super::super::conditions::{ConditionError, Conditions, Inputs, check_match_condition};
use super::super::hook::FailurePolicy;
use super::super::review::request_variable;
use super::super::{Operation, Served};
use super::{config_map, create_config_map};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;

fn evaluate(expressions: &[&str], policy: FailurePolicy) -> Result<bool, ConditionError> {
    let attributes = create_config_map();
    assert_eq!(attributes.operation, Operation::Create);
    let form = Served { resource: attributes.resource, kind: attributes.kind };
    let request = request_variable(&attributes, form).unwrap();
    let object = config_map();
    let inputs = Inputs { object: Some(object), old: None, request };
    let conditions: Vec<Value> = expressions.iter().map(|e| json!({"name": "c", "expression": e})).collect();
    Conditions::default().hold(&conditions, policy, &inputs, &AtomicBool::new(false))
}

#[test]
fn conditions_see_the_request_and_its_objects() {
    let check = |expression: &str, expected: bool| {
        assert_eq!(evaluate(&[expression], FailurePolicy::Fail), Ok(expected), "{expression}");
    };
    check("true", true);
    check("false", false);
    check("oldObject == null", true);
    check("oldObject != null && oldObject.data.a == '1'", false);
    check("oldObject == null || oldObject.data.a == '1'", true);
    check("namespaceObject == null", true);
    check("request.operation == 'CREATE'", true);
    check("request.name == ''", false);
    check("has(request.name)", true);
    check("has(request.subResource)", false);
    check("request.namespace == 'test'", true);
    check("request.userInfo.username == 'admin'", true);
    check("'system:masters' in request.userInfo.groups", true);
    check("request.dryRun", false);
    check("request.options.kind == 'CreateOptions'", true);
    check("request.resource.resource == 'configmaps'", true);
    check("object.data.a == '1'", true);
    check("object.data.a == 1", false);
    check("int(object.data.a) == 1", true);
    check("object.metadata.name.startsWith('x')", false);
    check("object.kind.matches('^Conf')", true);
    check("has(object.data) && object.data.exists(k, k == 'a')", true);
    check("!has(object.metadata.labels) || object.metadata.labels['a'] == 'b'", true);
    check("object.data.zzz == 'x' || true", true);
    check("object.data.zzz == 'x' && false", false);
    check("has(oldObject.data)", false);
    check("object.data.all(k, object.data[k] == '1')", true);
    check("object.data.map(k, k) == ['a']", true);
    check("object.data.filter(k, true).size() == 1", true);
    check("object.metadata.?labels.orValue({}) == {}", true);
    check("object.?data.a.orValue('x') == '1'", true);
    check("quantity('1Gi').isGreaterThan(quantity('1Mi'))", true);
    check("'abc'.find('b') == 'b'", true);
    check("object.data.a != null", true);
    check("timestamp('2026-01-01T00:00:00Z').getFullYear() > 2000", true);
}

#[test]
fn failing_conditions_refuse_in_the_words_of_kubernetes() {
    let check = |expressions: &[&str], expected: Expect| {
        let error = evaluate(expressions, FailurePolicy::Fail).unwrap_err();
        expected.assert_eq(&error.to_string());
    };
    check(
        &["object.data.zzz == 'x'"],
        expect!["expression 'object.data.zzz == 'x'' resulted in error: no such key: zzz"],
    );
    check(
        &["oldObject.data.a=='1'"],
        expect!["expression 'oldObject.data.a=='1'' resulted in error: no such key: data"],
    );
    check(
        &["object.metadata.labels['a']=='b'"],
        expect!["expression 'object.metadata.labels['a']=='b'' resulted in error: no such key: labels"],
    );
    check(
        &["request.subResource == ''"],
        expect!["expression 'request.subResource == ''' resulted in error: no such key: subResource"],
    );
    check(
        &["has(oldObject.data.a)"],
        expect!["expression 'has(oldObject.data.a)' resulted in error: no such key: data"],
    );
    check(
        &["object.data.a.b == 1"],
        expect!["expression 'object.data.a.b == 1' resulted in error: no such key: b"],
    );
    check(
        &["object.data['b'] == '1'"],
        expect!["expression 'object.data['b'] == '1'' resulted in error: no such key: b"],
    );
    check(
        &["object.data.a > 1"],
        expect!["expression 'object.data.a > 1' resulted in error: no such overload"],
    );
    check(&["!object.data"], expect!["expression '!object.data' resulted in error: no such overload"]);
    check(
        &["[1,2][5] == 1"],
        expect!["expression '[1,2][5] == 1' resulted in error: index out of bounds: 5"],
    );
    check(&["1/0 == 1"], expect!["expression '1/0 == 1' resulted in error: division by zero"]);
    check(
        &["object.data.zzz == 'x'", "1/0==1"],
        expect![
            "[expression 'object.data.zzz == 'x'' resulted in error: no such key: zzz, expression '1/0==1' resulted in error: division by zero]"
        ],
    );
}

#[test]
fn a_false_condition_excludes_whatever_else_fails() {
    assert_eq!(evaluate(&["object.data.zzz == 'x'", "false"], FailurePolicy::Fail), Ok(false));
    assert!(evaluate(&["object.data.zzz == 'x'", "true"], FailurePolicy::Fail).is_err());
    assert_eq!(evaluate(&["1/0 == 1"], FailurePolicy::Ignore), Ok(false));
}

#[test]
fn permissions_cannot_be_asked_for() {
    let expression = "authorizer.group('').resource('pods').check('create').allowed()";
    assert_eq!(evaluate(&[expression], FailurePolicy::Ignore), Err(ConditionError::Authorizer));
    assert_eq!(check_match_condition(expression), Err(ConditionError::Authorizer));
    assert_eq!(check_match_condition("object.data.a == '1'"), Ok(()));
    assert!(check_match_condition("size(").is_err());
}
