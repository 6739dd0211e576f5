//! A delete hits whatever has the name by then, also what the user has made in the meantime. Roperator deletes by name,
//! without the uid of what it has seen.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Family, Mishap, Part, Program, Script, Violation, check};
use serde_json::{Value, json};

use super::by_hand::{TRACKING, Watched, Write, child, failure, operator, parent, plan, text};

/// A Secret for each parent that wants one.
fn tokens(fix: bool) -> Program {
    let secrets = Kind::of::<Secret>();
    let watched = vec![Watched::parents(), Watched { kind: secrets.clone(), label: Some(TRACKING) }];
    operator("tokens", watched, move |parent, children| {
        let wants = text(parent, "token") == "yes";
        let desired: Vec<Value> =
            wants.then(|| child(parent, &secrets, "token", json!({}))).into_iter().collect();
        let mut writes = plan(&desired, children, |_, _| true);
        for write in &mut writes {
            if let Write::Delete { uid, .. } = write
                && !fix
            {
                *uid = None;
            }
        }
        writes
    })
}

/// The user gives up the operator's Secret, and soon makes another of the same name: before a lease has run out.
fn scene(fix: bool) -> Check {
    let script = Script::new()
        .create(parent("door", &json!({"token": "yes"})))
        .patch(&Kind::of::<ConfigMap>(), "door", json!({"data": {"token": "no"}}))
        .at_once()
        .wait(Duration::from_secs(10))
        .at_once()
        .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}));
    check(tokens(fix)).script(script)
}

#[test]
fn deletion_of_what_the_user_made_is_caught() {
    let report = scene(false).every_second_leader().report();
    let found = failure(&report, Part::Each(Family::TwoLeaders));
    assert!(matches!(found.faults.0[..], [fault] if fault.mishap == Mishap::TwoLeaders), "{}", found.story);
    assert!(
        matches!(&found.violations[0], Violation::Lost { what, by } if what == "secrets default/token" && by == "tokens"),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_passes_everything() {
    scene(true).every_fault().seeds(10).run();
}
