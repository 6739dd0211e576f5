//! Entries are added to a child and never removed from it.
//!
//! Acto compares what different ways to the same spec come to. Labels that a user took out of the spec stayed on the
//! service of Cassandra (k8ssandra/cass-operator#330), because the operator merged maps and knew nothing of removals.

use k8s_openapi::api::core::v1::Secret;
use kube::{Client, ResourceExt as _};
use mainstay_testkit::simulation::{Check, Part, Program, Violation};
use serde_json::{Value, json};

use super::by_hand::{create, found_in, list, object, on_changes, patch};
use super::paints::{Paint, check_paint, definition};

/// Each Paint gets a Secret with its shades.
fn operator(fix: bool) -> Program {
    on_changes::<Paint, Secret, _>("shades", move |client| pass(client, fix))
}

async fn pass(client: Client, fix: bool) -> kube::Result<()> {
    let client = &client;
    let secrets = list::<Secret>(client).await?;
    for paint in list::<Paint>(client).await? {
        let name = paint.name_any();
        let mut annotations = json!(paint.spec.shades);
        let Some(secret) = secrets.iter().find(|secret| secret.name_any() == name) else {
            create(
                client,
                &object::<Secret>(json!({"metadata": {"name": name, "annotations": annotations}})),
            )
            .await?;
            continue;
        };
        if fix {
            // A merge patch removes what it names as null.
            for shade in secret.annotations().keys().filter(|shade| !paint.spec.shades.contains_key(*shade)) {
                annotations[shade] = Value::Null;
            }
        }
        let has = |(shade, value): (&String, &Value)| json!(secret.annotations().get(shade)) == *value;
        if !annotations.as_object().into_iter().flatten().all(has) {
            patch(client, secret, json!({"metadata": {"annotations": annotations}})).await?;
        }
    }
    Ok(())
}

fn checked(fix: bool) -> Check {
    check_paint(operator(fix), "shades", [json!({"dark": "1"}), json!({"dark": null, "light": "1"})])
}

#[test]
fn an_end_that_depends_on_the_way_there_is_caught() {
    let report = checked(false).every_spec_change(definition("shades"), 3).report();
    let failure = found_in(&report, Part::SpecChanges);
    let [Violation::WayThere { differences }] = &failure.violations[..] else { panic!("{}", failure.story) };
    assert!(differences[0].starts_with("secrets default/paint: metadata.annotations"), "{differences:?}");
}

#[test]
fn the_corrected_one_passes_everything() {
    checked(true).every_fault().seeds(10).every_spec_change(definition("shades"), 3).run();
}
