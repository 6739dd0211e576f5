//! The first child that the server refuses keeps the others from being written. Roperator writes children one after the
//! other and gives up at the first error; as the refused one is the first again next time, the others never come.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Mishap, Part, Program, Script, Violation, check, program};
use serde_json::{Value, json};

use super::by_hand::{Watched, carry_out, child, each_parent, failure, parent, plan, text};

/// A Secret of each name that the parent lists.
fn tokens(fix: bool) -> Program {
    program("tokens", move |seat| {
        let secrets = Kind::of::<Secret>();
        let watched = vec![Watched::parents(), Watched::all(&secrets)];
        each_parent(seat.client(), watched, move |parent, children| {
            let (client, secrets) = (seat.client(), secrets.clone());
            async move {
                let names = text(&parent, "names").split(',');
                let desired: Vec<Value> =
                    names.map(|name| child(&parent, &secrets, name, json!({}))).collect();
                let mut outcome = Ok(());
                for write in plan(&desired, &children, |_, _| true) {
                    if let Err(error) = carry_out(&client, &write).await {
                        outcome = Err(error);
                        if !fix {
                            break;
                        }
                    }
                }
                outcome
            }
        })
    })
}

/// No Secret can have the second list's first name.
fn script() -> Script {
    Script::new().create(parent("doors", &json!({"names": "front"}))).patch(
        &Kind::of::<ConfigMap>(),
        "doors",
        json!({"data": {"names": "Back Door,front"}}),
    )
}

#[test]
fn child_that_never_comes_is_caught() {
    let report = check(tokens(false)).script(script()).every_lost_event().report();
    let found = failure(&report, Part::Each(Family::Watches));
    // Whoever never saw the first list never makes what both have in common.
    assert!(matches!(found.faults.0[..], [fault] if fault.mishap == Mishap::Miss), "{}", found.story);
    assert!(
        matches!(&found.violations[..], [Violation::EndState { differences }]
        if differences == &["secrets default/front: missing"]),
        "{}",
        found.story
    );
    assert!(found.story.contains("create secrets default (write 1) -> 422"), "{}", found.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    check(tokens(true)).script(script()).every_fault().seeds(10).run();
}
