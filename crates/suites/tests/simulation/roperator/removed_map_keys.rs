//! A key of a map that is no longer wanted stays for ever, as every desired key is there with its value. Roperator
//! compares all children in this way, so a password that the user has withdrawn is handed out further on.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Mishap, Part, Program, Script, Violation, check};
use serde_json::json;

use super::by_hand::{Watched, child, failure, name_of, operator, parent, plan};

/// Copies what the parent holds into a Secret.
fn copies(fix: bool) -> Program {
    let secrets = Kind::of::<Secret>();
    operator("copies", vec![Watched::parents(), Watched::all(&secrets)], move |parent, children| {
        let copy = child(parent, &secrets, name_of(parent), json!({"data": parent["data"]}));
        plan(&[copy], children, |desired, live| {
            let (Some(desired), Some(live)) = (desired["data"].as_object(), live["data"].as_object()) else {
                return false;
            };
            let has_no_more = !fix || desired.len() == live.len();
            has_no_more && desired.iter().all(|(key, value)| live.get(key) == Some(value))
        })
    })
}

fn script() -> Script {
    let (old, new) = ("b2xk", "bmV3");
    Script::new().create(parent("passwords", &json!({"old": old, "new": new}))).patch(
        &Kind::of::<ConfigMap>(),
        "passwords",
        json!({"data": {"old": null}}),
    )
}

#[test]
fn key_that_stays_is_caught() {
    let report = check(copies(false)).script(script()).every_lost_event().report();
    let found = failure(&report, Part::Each(Family::Watches));
    assert!(matches!(found.faults.0[..], [fault] if fault.mishap == Mishap::Miss), "{}", found.story);
    assert!(
        matches!(&found.violations[..], [Violation::EndState { differences }]
        if matches!(&differences[..], [one] if one.contains("secrets default/passwords: data.old"))),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_passes_everything() {
    check(copies(true)).script(script()).every_fault().seeds(10).run();
}
