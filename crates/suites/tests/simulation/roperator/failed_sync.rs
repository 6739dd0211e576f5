//! An error counts as "no children", and all are deleted. Handlers of roperator that are written in the style of its
//! `failable` module answer an error with an empty list of children.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Mishap, Part, Program, Script, Violation, check, program};
use serde_json::{Value, json};

use super::by_hand::{Watched, carry_out, child, each_parent, failure, name_of, parent, plan};

/// A claim for each parent, of a class that has to be looked up elsewhere.
fn disks(fix: bool) -> Program {
    program("disks", move |seat| {
        let claims = Kind::of::<PersistentVolumeClaim>();
        let watched = vec![Watched::parents(), Watched::all(&claims)];
        each_parent(seat.client(), watched, move |parent, children| {
            let (client, external, claims) = (seat.client(), seat.external(), claims.clone());
            async move {
                let class = external.get("class").await;
                if fix && let Err(error) = class {
                    return Err(error.into());
                }
                let desired: Vec<Value> =
                    class.iter().map(|class| claim(&parent, &claims, class.as_ref())).collect();
                for write in plan(&desired, &children, |_, _| true) {
                    carry_out(&client, &write).await?;
                }
                // Tried again.
                class?;
                anyhow::Ok(())
            }
        })
    })
}

fn claim(parent: &Value, kind: &Kind, class: Option<&Value>) -> Value {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": class.unwrap_or(&json!("usual")),
    });
    child(parent, kind, name_of(parent), json!({"spec": spec}))
}

fn script() -> Script {
    Script::new().create(parent("letters", &json!({})))
}

#[test]
fn deletion_after_an_error_is_caught() {
    let report = check(disks(false)).script(script()).every_failed_request().report();
    let found = failure(&report, Part::Each(Family::Requests));
    assert!(
        matches!(found.faults.0[..], [fault] if matches!(fault.mishap, Mishap::TooManyRequests | Mishap::Refuse(_))),
        "{}",
        found.story
    );
    let is_lost = |violation: &Violation| matches!(violation, Violation::Lost { what, by } if what == "persistentvolumeclaims default/letters" && by == "disks");
    assert!(found.violations.iter().any(is_lost), "{}", found.story);
    assert!(found.story.contains("delete persistentvolumeclaims default/letters"), "{}", found.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    check(disks(true)).script(script()).every_fault().seeds(10).run();
}
