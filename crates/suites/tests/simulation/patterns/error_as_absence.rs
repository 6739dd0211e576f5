//! An error is taken for an answer: what cannot be asked after is not there.
//!
//! `get(…).is_err()` and `if err != nil` are easily written for "it does not exist". Then one 500 of a busy server is
//! enough to remove what belongs to the living: storage classes (red-hat-storage/ocs-operator#4056), or the last that is
//! known of a database (Azure/azure-service-operator#1335).

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::{Api, Client, ResourceExt as _};
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Part, Point, Program, Script, Violation, check, program};
use serde_json::json;

use super::by_hand::{Due, changes, claim, create, delete, found_in, list, paint};

/// Each ConfigMap gets a claim, which goes with it.
fn operator(fix: bool) -> Program {
    program("claims", move |seat| async move {
        let client = seat.client();
        let mut due = Due::on(vec![changes::<ConfigMap>(&client), changes::<PersistentVolumeClaim>(&client)]);
        loop {
            due.wait().await;
            due.done(&pass(&client, fix).await);
        }
    })
}

async fn pass(client: &Client, fix: bool) -> kube::Result<()> {
    let parents = Api::<ConfigMap>::default_namespaced(client.clone());
    let claims = list::<PersistentVolumeClaim>(client).await?;
    for name in claims.iter().map(PersistentVolumeClaim::name_any) {
        let is_gone =
            if fix { parents.get_opt(&name).await?.is_none() } else { parents.get(&name).await.is_err() };
        if is_gone {
            delete::<PersistentVolumeClaim>(client, &name).await?;
        }
    }
    for name in list::<ConfigMap>(client).await?.iter().map(ConfigMap::name_any) {
        if !claims.iter().any(|claim| claim.name_any() == name) {
            create(client, &claim::<PersistentVolumeClaim>(&name)).await?;
        }
    }
    Ok(())
}

fn script() -> Script {
    Script::new().create(paint(&json!({}))).delete(&Kind::of::<ConfigMap>(), "paint")
}

#[test]
fn a_claim_that_one_error_costs_is_caught() {
    let report = check(operator(false)).script(script()).every_failed_request().report();
    let failure = found_in(&report, Part::Each(Family::Requests));
    assert!(
        matches!(failure.faults.0[..], [fault] if matches!(fault.point, Point::Read(_))),
        "{}",
        failure.story
    );
    let lost =
        Violation::Lost { what: "persistentvolumeclaims default/paint".to_owned(), by: "claims".to_owned() };
    assert!(failure.violations.contains(&lost), "{}", failure.story);
    assert!(failure.story.contains("get configmaps default/paint"), "{}", failure.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    check(operator(true)).script(script()).every_fault().seeds(10).run();
}
