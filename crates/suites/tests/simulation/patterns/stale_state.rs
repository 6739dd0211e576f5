//! What is old is believed: data of the living is removed for the sake of the dead.
//!
//! Sieve's time travel, the commonest of its patterns. The operators of `ZooKeeper` (pravega/zookeeper-operator#312) and
//! Cassandra (datastax/cass-operator#412) were started again on an API server that lagged behind, saw there how an
//! earlier object of the same name was being deleted, and removed the claims of the new one, which have the same name.

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::{Api, Client, ResourceExt as _};
use kube_runtime::watcher;
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Mishap, Part, Program, Script, Violation, check, program};
use serde_json::json;

use super::by_hand::{Due, cache, changes, claim, create, delete, delete_seen, found_in, paint, patch};

const FINALIZER: &str = "example.com/claims";

/// Each ConfigMap gets a claim, which goes with it.
fn operator(fix: bool) -> Program {
    program("claims", move |seat| async move {
        let client = seat.client();
        // A list in one piece and of any age, which the server answers from what it has in memory.
        let config = watcher::Config { page_size: None, ..watcher::Config::default().any_semantic() };
        let (parents, changed) = cache::<ConfigMap>(&client, config);
        let mut due = Due::on(vec![changed, changes::<PersistentVolumeClaim>(&client)]);
        loop {
            due.wait().await;
            for parent in parents.state() {
                due.done(&pass(&client, &parent, fix).await);
            }
        }
    })
}

async fn pass(client: &Client, parent: &ConfigMap, fix: bool) -> kube::Result<()> {
    let claim_seen =
        Api::<PersistentVolumeClaim>::default_namespaced(client.clone()).get_opt(&parent.name_any()).await?;
    // The cache may be old. What cannot be undone is decided by what the server says itself.
    if fix {
        let now = Api::<ConfigMap>::default_namespaced(client.clone()).get_opt(&parent.name_any()).await?;
        if now.is_none_or(|now| now.resource_version() != parent.resource_version()) {
            return Ok(());
        }
    }
    if parent.metadata.deletion_timestamp.is_some() {
        match claim_seen {
            // And is done to that very claim: by the time that this arrives, another may have its name.
            Some(claim) if fix => delete_seen(client, &claim).await?,
            _ => delete::<PersistentVolumeClaim>(client, &parent.name_any()).await?,
        }
        return patch(client, parent, json!({"metadata": {"finalizers": null}})).await;
    }
    if parent.finalizers().is_empty() {
        return patch(client, parent, json!({"metadata": {"finalizers": [FINALIZER]}})).await;
    }
    create(client, &claim::<PersistentVolumeClaim>(&parent.name_any())).await
}

/// The second ConfigMap has the name of the first.
fn script() -> Script {
    Script::new()
        .create(paint(&json!({})))
        .delete(&Kind::of::<ConfigMap>(), "paint")
        .create(paint(&json!({})))
}

#[test]
fn a_deletion_that_is_long_past_is_caught() {
    let report = check(operator(false)).script(script()).every_time_travel().report();
    let failure = found_in(&report, Part::Each(Family::TimeTravel));
    assert!(matches!(failure.faults.0[..], [fault] if matches!(fault.mishap, Mishap::Travel(_))));
    let lost = |violation: &Violation| match violation {
        Violation::Lost { what, by } => {
            what == "persistentvolumeclaims default/paint" && by.starts_with("claims#")
        }
        _ => false,
    };
    assert!(failure.violations.iter().any(lost), "{}", failure.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    check(operator(true)).script(script()).every_fault().seeds(10).run();
}
