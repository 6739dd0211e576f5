//! An event is waited for that nobody is owed.
//!
//! Sieve's unobserved state. The operator of Cassandra (instaclustr/cassandra-operator#398) removed the claim of a pod
//! when it saw the pod with a `deletionTimestamp`. If the pod was gone before anybody looked, the claim stayed for ever.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Client, ResourceExt as _};
use kube_runtime::watcher::{Config, Event};
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Mishap, Part, Program, Script, check, program};
use serde_json::json;

use super::by_hand::{create, delete, end_state, events, found_in, list, object, paint, pause};

/// Each ConfigMap gets a Secret, which goes with it.
fn operator(fix: bool) -> Program {
    program("pairs", move |seat| async move {
        let client = seat.client();
        let mut events = events::<ConfigMap>(&client, Config::default());
        while let Some(event) = events.next().await {
            let deleted = if let Event::Delete(parent) = &event { parent.name_any() } else { String::new() };
            while pass(&client, &deleted, fix).await.is_err() {
                pause().await;
            }
        }
    })
}

async fn pass(client: &Client, deleted: &str, fix: bool) -> kube::Result<()> {
    let (parents, secrets) = (list::<ConfigMap>(client).await?, list::<Secret>(client).await?);
    for name in parents.iter().map(ConfigMap::name_any) {
        if !secrets.iter().any(|secret| secret.name_any() == name) {
            create(client, &object::<Secret>(json!({"metadata": {"name": name}}))).await?;
        }
    }
    for name in secrets.iter().map(Secret::name_any) {
        let is_gone =
            if fix { !parents.iter().any(|parent| parent.name_any() == name) } else { name == deleted };
        if is_gone {
            delete::<Secret>(client, &name).await?;
        }
    }
    Ok(())
}

fn script() -> Script {
    Script::new().create(paint(&json!({}))).delete(&Kind::of::<ConfigMap>(), "paint")
}

#[test]
fn an_event_that_never_comes_is_caught() {
    let report = check(operator(false)).script(script()).every_lost_event().report();
    let failure = found_in(&report, Part::Each(Family::Watches));
    assert!(matches!(failure.faults.0[..], [fault] if matches!(fault.mishap, Mishap::Expire | Mishap::Miss)));
    let differences = end_state(failure);
    assert!(differences.contains("secrets default/paint"), "{differences}");
    assert!(failure.story.contains("is not told DELETED configmaps default/paint"), "{}", failure.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    check(operator(true)).script(script()).every_fault().seeds(10).run();
}
