//! Two writes that belong together, and the first is taken for a sign that both were made.
//!
//! Sieve calls it an intermediate state, and found eleven such bugs in ten controllers: a controller dies between two
//! writes, and the one that takes its place believes from what it finds that nothing is left to do.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::{Client, ResourceExt as _};
use mainstay_testkit::simulation::{Family, Part, Program, Script, check, program};
use serde_json::json;

use super::by_hand::{Due, changes, create, end_state, found_in, list, object, paint};

/// Each ConfigMap gets a Secret and a Service.
fn operator(fix: bool) -> Program {
    program("pairs", move |seat| async move {
        let client = seat.client();
        let bells =
            vec![changes::<ConfigMap>(&client), changes::<Secret>(&client), changes::<Service>(&client)];
        let mut due = Due::on(bells);
        loop {
            due.wait().await;
            due.done(&pass(&client, fix).await);
        }
    })
}

async fn pass(client: &Client, fix: bool) -> kube::Result<()> {
    let (secrets, services) = (list::<Secret>(client).await?, list::<Service>(client).await?);
    for parent in list::<ConfigMap>(client).await? {
        let name = parent.name_any();
        let has_secret = secrets.iter().any(|secret| secret.name_any() == name);
        let has_service = services.iter().any(|service| service.name_any() == name);
        if !has_secret {
            create(client, &object::<Secret>(json!({"metadata": {"name": name}}))).await?;
        }
        let is_done = if fix { has_service } else { has_secret };
        if !is_done {
            let spec = json!({"ports": [{"port": 80}], "clusterIP": "None"});
            create(client, &object::<Service>(json!({"metadata": {"name": name}, "spec": spec}))).await?;
        }
    }
    Ok(())
}

fn script() -> Script {
    Script::new().create(paint(&json!({})))
}

#[test]
fn a_crash_between_two_writes_is_caught() {
    let report = check(operator(false)).script(script()).every_crash_point().report();
    let failure = found_in(&report, Part::Each(Family::CrashPoints));
    assert_eq!(failure.faults.to_string(), "crash after write 1");
    let differences = end_state(failure);
    assert!(differences.contains("services default/paint"), "{differences}");
}

#[test]
fn the_corrected_one_passes_everything() {
    check(operator(true)).script(script()).every_fault().seeds(10).run();
}
