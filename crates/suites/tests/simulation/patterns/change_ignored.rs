//! A property that is looked at once: when the child is made.
//!
//! The commonest of what Acto finds by comparing spec and state: the user changes a property, the server accepts it, and
//! nothing follows from it. A paint that was made with the later
//! spec at once has another child.

use k8s_openapi::api::core::v1::Secret;
use kube::{Client, ResourceExt as _};
use mainstay_testkit::simulation::{Check, Part, Program, Violation};
use serde_json::json;

use super::by_hand::{create, found_in, list, object, on_changes, patch};
use super::paints::{Paint, check_paint, definition};

/// Each Paint gets a Secret with its colour.
fn operator(fix: bool) -> Program {
    on_changes::<Paint, Secret, _>("colours", move |client| pass(client, fix))
}

async fn pass(client: Client, fix: bool) -> kube::Result<()> {
    let client = &client;
    let secrets = list::<Secret>(client).await?;
    for paint in list::<Paint>(client).await? {
        let name = paint.name_any();
        let wanted = json!({"metadata": {"name": name, "annotations": {"colour": paint.spec.colour}}});
        match secrets.iter().find(|secret| secret.name_any() == name) {
            None => create(client, &object::<Secret>(wanted)).await?,
            Some(secret) if fix && secret.annotations().get("colour") != Some(&paint.spec.colour) => {
                patch(client, secret, wanted).await?;
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn checked(fix: bool) -> Check {
    check_paint(operator(fix), "colour", [json!("red"), json!("blue")])
}

#[test]
fn a_change_that_nothing_follows_from_is_caught() {
    let report = checked(false).every_spec_change(definition("colour"), 3).report();
    let failure = found_in(&report, Part::SpecChanges);
    let [Violation::WayThere { differences }] = &failure.violations[..] else { panic!("{}", failure.story) };
    assert_eq!(differences[..], ["secrets default/paint: metadata.annotations.colour"]);
}

#[test]
fn the_corrected_one_passes_everything() {
    checked(true).every_fault().seeds(10).every_spec_change(definition("colour"), 3).run();
}
