//! A field of the status that is no longer true stays for ever, because the status counts as written when every field
//! that is to be told is told already. Roperator compares statuses as it compares children.

use mainstay_testkit::simulation::{Check, Family, Mishap, Part, Program, Script, Violation, check};
use serde_json::{Value, json};

use super::by_hand::{Watched, Write, failure, operator};
use super::shops::{definition, kind, shop};

/// Tells where a shop can be visited, if it can.
fn addresses(fix: bool) -> Program {
    operator("addresses", vec![Watched::all(&kind())], move |shop, _| {
        let mut status = json!({"observed": true});
        if let Some(address) = shop["spec"]["address"].as_str() {
            status["address"] = address.into();
        }
        let is_told = if fix { shop["status"] == status } else { is_within(&status, &shop["status"]) };
        if is_told { Vec::new() } else { vec![Write::Status(shop.clone(), status)] }
    })
}

fn is_within(desired: &Value, live: &Value) -> bool {
    desired.as_object().is_some_and(|desired| desired.iter().all(|(name, value)| live[name] == *value))
}

fn scene(fix: bool) -> Check {
    let script = Script::new().create(shop("corner", &json!({"address": "1 High Street"}))).patch(
        &kind(),
        "corner",
        json!({"spec": {"address": null}}),
    );
    check(addresses(fix)).given(definition()).script(script)
}

#[test]
fn field_that_stays_is_caught() {
    let report = scene(false).every_lost_event().report();
    let found = failure(&report, Part::Each(Family::Watches));
    assert!(
        matches!(found.faults.0[..], [fault] if matches!(fault.mishap, Mishap::Hold | Mishap::Miss)),
        "{}",
        found.story
    );
    assert!(
        matches!(&found.violations[..], [Violation::EndState { differences }]
        if matches!(&differences[..], [one] if one.contains("shops.example.dev default/corner: status.address"))),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_passes_everything() {
    scene(true).every_fault().seeds(10).run();
}
