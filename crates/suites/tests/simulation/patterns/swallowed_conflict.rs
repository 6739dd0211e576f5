//! A conflict is taken for somebody else's having done the work.
//!
//! "The object has been modified" is often passed over in silence, as an event will come and all be looked at again. But
//! the event of the change that caused the conflict may have come already, and then nothing makes the operator look.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Client, ResourceExt as _};
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Part, Program, Script, check};
use serde_json::json;

use super::by_hand::{create, end_state, found_in, list, object, on_changes, paint, patch};

/// Each ConfigMap gets a Secret with its colour.
fn operator(fix: bool) -> Program {
    on_changes::<ConfigMap, Secret, _>("colours", move |client| pass(client, fix))
}

async fn pass(client: Client, fix: bool) -> kube::Result<()> {
    let client = &client;
    let secrets = list::<Secret>(client).await?;
    for parent in list::<ConfigMap>(client).await? {
        let name = parent.name_any();
        let colour = parent.data.as_ref().and_then(|data| data.get("colour"));
        let wanted = json!({"metadata": {"name": name, "annotations": {"colour": colour}}});
        match secrets.iter().find(|secret| secret.name_any() == name) {
            None => create(client, &object::<Secret>(wanted)).await?,
            Some(secret) if secret.annotations().get("colour") != colour => {
                match patch(client, secret, wanted).await {
                    Err(kube::Error::Api(status)) if status.code == 409 && !fix => {}
                    other => other?,
                }
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn script() -> Script {
    let change = json!({"data": {"colour": "blue"}});
    Script::new().create(paint(&json!({"colour": "red"}))).patch(&Kind::of::<ConfigMap>(), "paint", change)
}

#[test]
fn an_update_that_is_lost_is_caught() {
    let report = check(operator(false)).script(script()).every_failed_request().report();
    let failure = found_in(&report, Part::Each(Family::Requests));
    assert_eq!(failure.faults.to_string(), "answer 409 to write 2");
    let differences = end_state(failure);
    assert!(differences.contains("metadata.annotations.colour"), "{differences}");
    assert!(failure.story.contains("patch secrets default/paint (write 2) -> 409"), "{}", failure.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    check(operator(true)).script(script()).every_fault().seeds(10).run();
}
