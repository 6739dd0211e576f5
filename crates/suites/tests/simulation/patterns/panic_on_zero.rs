//! A legal value for which the code has no answer.
//!
//! Acto gives every property values that its schema allows and nobody thought of. An incomplete reference to a Secret
//! brought down an operator of Redis so (xlab-uiuc/acto#106), and with it the service of all other objects.

use k8s_openapi::api::core::v1::Secret;
use kube::{Client, ResourceExt as _};
use mainstay_testkit::simulation::{Check, Part, Program, Violation};
use serde_json::json;

use super::by_hand::{create, found_in, list, object, on_changes, patch};
use super::paints::{Paint, check_paint, definition};

/// Each Paint gets a Secret that tells how much of it a coat takes.
fn operator(fix: bool) -> Program {
    on_changes::<Paint, Secret, _>("coats", move |client| pass(client, fix))
}

async fn pass(client: Client, fix: bool) -> kube::Result<()> {
    let client = &client;
    let secrets = list::<Secret>(client).await?;
    for paint in list::<Paint>(client).await? {
        let coats = if fix { paint.spec.coats.max(1) } else { paint.spec.coats };
        let share = (100 / coats).to_string();
        let wanted = json!({"metadata": {"name": paint.name_any(), "annotations": {"share": share}}});
        match secrets.iter().find(|secret| secret.name_any() == paint.name_any()) {
            None => create(client, &object::<Secret>(wanted)).await?,
            Some(secret) if secret.annotations().get("share") != Some(&share) => {
                patch(client, secret, wanted).await?;
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn checked(fix: bool) -> Check {
    check_paint(operator(fix), "coats", [json!(2), json!(1)])
}

#[test]
fn a_panic_is_caught() {
    let report = checked(false).every_spec_change(definition("coats"), 3).report();
    let failure = found_in(&report, Part::SpecChanges);
    let [Violation::Ended { program, how }] = &failure.violations[..] else { panic!("{}", failure.story) };
    assert_eq!((program.as_str(), how.as_str()), ("coats", "it panicked: attempt to divide by zero"));
    assert!(failure.story.contains(r#""coats":0"#), "{}", failure.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    checked(true).every_fault().seeds(10).every_spec_change(definition("coats"), 3).run();
}
