//! What a spec asked for stays when the spec asks for it no longer.
//!
//! Acto rolls every change back and expects to be where it was before. An operator that makes things and never takes
//! them away is not.

use k8s_openapi::api::core::v1::Secret;
use kube::{Client, ResourceExt as _};
use mainstay_testkit::simulation::{Check, Part, Program, Violation};
use serde_json::json;

use super::by_hand::{create, delete, found_in, list, object, on_changes};
use super::paints::{Paint, check_paint, definition};

/// Each Paint gets a Secret, and a second one to spare if it asks for it.
fn operator(fix: bool) -> Program {
    on_changes::<Paint, Secret, _>("spares", move |client| pass(client, fix))
}

async fn pass(client: Client, fix: bool) -> kube::Result<()> {
    let client = &client;
    let secrets = list::<Secret>(client).await?;
    let exists = |name: &str| secrets.iter().any(|secret| secret.name_any() == name);
    for paint in list::<Paint>(client).await? {
        let (name, spare) = (paint.name_any(), format!("{}-spare", paint.name_any()));
        for (name, wanted) in [(name, true), (spare, paint.spec.spare)] {
            if wanted && !exists(&name) {
                create(client, &object::<Secret>(json!({"metadata": {"name": name}}))).await?;
            } else if fix && !wanted && exists(&name) {
                delete::<Secret>(client, &name).await?;
            }
        }
    }
    Ok(())
}

fn checked(fix: bool) -> Check {
    check_paint(operator(fix), "spare", [json!(false), json!(true), json!(false)])
}

#[test]
fn a_rollback_that_does_not_restore_is_caught() {
    let report = checked(false).every_spec_change(definition("spare"), 3).report();
    let failure = found_in(&report, Part::SpecChanges);
    let [Violation::WayThere { differences }] = &failure.violations[..] else { panic!("{}", failure.story) };
    assert_eq!(differences[..], ["secrets default/paint-spare: should not exist"]);
}

#[test]
fn the_corrected_one_passes_everything() {
    checked(true).every_fault().seeds(10).every_spec_change(definition("spare"), 3).run();
}
