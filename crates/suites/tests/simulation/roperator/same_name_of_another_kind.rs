//! A child that is no longer desired survives when a desired one of another kind has its name: roperator looks for the
//! names of desired children only, whatever their kind.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Mishap, Part, Program, Script, Violation, check};
use serde_json::{Value, json};

use super::by_hand::{Watched, Write, child, failure, name_of, operator, parent, plan, text, uid_of};

/// A Secret for each parent, and a service account of the same name where one is wanted.
fn accounts(fix: bool) -> Program {
    let (secrets, accounts) = (Kind::of::<Secret>(), Kind::of::<ServiceAccount>());
    let watched = vec![Watched::parents(), Watched::all(&secrets), Watched::all(&accounts)];
    operator("accounts", watched, move |parent, children| {
        let mut desired = vec![child(parent, &secrets, name_of(parent), json!({}))];
        if text(parent, "account") == "yes" {
            desired.push(child(parent, &accounts, name_of(parent), json!({})));
        }
        let made = plan(&desired, children, |_, _| true).into_iter();
        let made = made.filter(|write| !matches!(write, Write::Delete { .. }));
        let surplus = children.iter().filter(|child| !is_desired(child, &desired, fix));
        let removed = surplus.map(|child| Write::Delete { object: child.clone(), uid: uid_of(child) });
        made.chain(removed).collect()
    })
}

fn is_desired(child: &Value, desired: &[Value], fix: bool) -> bool {
    desired.iter().any(|wish| name_of(wish) == name_of(child) && (!fix || wish["kind"] == child["kind"]))
}

fn script() -> Script {
    Script::new().create(parent("robot", &json!({"account": "yes"}))).patch(
        &Kind::of::<ConfigMap>(),
        "robot",
        json!({"data": {"account": "no"}}),
    )
}

#[test]
fn child_that_survives_is_caught() {
    let report = check(accounts(false)).script(script()).every_lost_event().report();
    let found = failure(&report, Part::Each(Family::Watches));
    assert!(matches!(found.faults.0[..], [fault] if fault.mishap == Mishap::Miss), "{}", found.story);
    assert!(
        matches!(&found.violations[..], [Violation::EndState { differences }]
        if matches!(&differences[..], [one] if one.contains("serviceaccounts default/robot"))),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_passes_everything() {
    check(accounts(true)).script(script()).every_fault().seeds(10).run();
}
