//! A list item that is no longer wanted stays for ever: what is there counts as right when everything that is desired is
//! in it, and nobody asks whether there is more. Roperator compares all children in this way.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::Role;
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Mishap, Part, Program, Script, Violation, check};
use serde_json::{Value, json};

use super::by_hand::{Watched, child, failure, name_of, operator, parent, plan, text};

/// Grants what the parent lists.
fn grants(fix: bool) -> Program {
    let roles = Kind::of::<Role>();
    operator("grants", vec![Watched::parents(), Watched::all(&roles)], move |parent, children| {
        let verbs: Vec<&str> = text(parent, "verbs").split(',').collect();
        let rules = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]});
        plan(&[child(parent, &roles, name_of(parent), rules)], children, |desired, live| {
            is_within(&desired["rules"], &live["rules"], fix)
        })
    })
}

fn is_within(desired: &Value, live: &Value, fix: bool) -> bool {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => desired
            .iter()
            .all(|(name, desired)| live.get(name).is_some_and(|live| is_within(desired, live, fix))),
        (Value::Array(desired), Value::Array(live)) => {
            let is_long_enough = if fix { live.len() == desired.len() } else { live.len() >= desired.len() };
            is_long_enough && desired.iter().zip(live).all(|(desired, live)| is_within(desired, live, fix))
        }
        (desired, live) => desired == live,
    }
}

fn script() -> Script {
    Script::new().create(parent("staff", &json!({"verbs": "get,list"}))).patch(
        &Kind::of::<ConfigMap>(),
        "staff",
        json!({"data": {"verbs": "get"}}),
    )
}

#[test]
fn item_that_stays_is_caught() {
    let report = check(grants(false)).script(script()).every_lost_event().report();
    let found = failure(&report, Part::Each(Family::Watches));
    // Whoever never saw the longer list makes the shorter one.
    assert!(matches!(found.faults.0[..], [fault] if fault.mishap == Mishap::Miss), "{}", found.faults);
    assert!(
        matches!(&found.violations[..], [Violation::EndState { differences }]
        if differences.len() == 1 && differences[0].contains("staff") && differences[0].contains("\"list\" -> nothing")),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_passes_everything() {
    check(grants(true)).script(script()).every_fault().seeds(10).run();
}
