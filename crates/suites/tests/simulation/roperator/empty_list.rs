//! A desired list without items is taken for no wish at all, so the last item is never removed. In roperator this
//! follows from the comparison by place: there is no desired item that the live list could lack.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::Role;
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Mishap, Part, Program, Script, Violation, check};
use serde_json::{Value, json};

use super::by_hand::{Watched, child, failure, name_of, operator, parent, plan, text};

/// Grants a right, or none.
fn grants(fix: bool) -> Program {
    let roles = Kind::of::<Role>();
    operator("grants", vec![Watched::parents(), Watched::all(&roles)], move |parent, children| {
        let rules = match text(parent, "verb") {
            "" => json!([]),
            verb => json!([{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]),
        };
        let role = child(parent, &roles, name_of(parent), json!({"rules": rules}));
        plan(&[role], children, |desired, live| {
            let wishes = desired["rules"].as_array().map_or(0, Vec::len);
            (wishes == 0 && !fix) || desired["rules"] == *items(live)
        })
    })
}

/// The rules of a role; a list without items may be left out by the server.
fn items(role: &Value) -> &Value {
    static NONE: Value = Value::Array(Vec::new());
    if role["rules"].is_array() { &role["rules"] } else { &NONE }
}

fn script() -> Script {
    Script::new().create(parent("staff", &json!({"verb": "get"}))).patch(
        &Kind::of::<ConfigMap>(),
        "staff",
        json!({"data": {"verb": ""}}),
    )
}

#[test]
fn last_item_that_stays_is_caught() {
    let report = check(grants(false)).script(script()).every_lost_event().report();
    let found = failure(&report, Part::Each(Family::Watches));
    assert!(matches!(found.faults.0[..], [fault] if fault.mishap == Mishap::Miss), "{}", found.story);
    assert!(
        matches!(&found.violations[..], [Violation::EndState { differences }]
        if matches!(&differences[..], [one] if one.contains("default/staff: rules"))),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_passes_everything() {
    check(grants(true)).script(script()).every_fault().seeds(10).run();
}
