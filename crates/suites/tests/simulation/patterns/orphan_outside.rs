//! The finalizer goes before what it stands for.
//!
//! A finalizer keeps an object as a reminder that something outside of the cluster is to be removed. Once it is off, the
//! object is gone, and a crash before the removal leaves something that nobody knows of and somebody pays for. Before
//! services had finalizers, every restart could leave a load balancer so (kubernetes/kubernetes#15203).

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, ResourceExt as _};
use mainstay::Kind;
use mainstay_testkit::simulation::{External, ExternalError, Family, Part, Program, Script, check, program};
use serde_json::json;

use super::by_hand::{Due, changes, end_state, found_in, list, paint, patch, unreachable_outside};

const FINALIZER: &str = "example.com/bucket";

/// Each ConfigMap gets a bucket, which goes with it.
fn operator(fix: bool) -> Program {
    program("buckets", move |seat| async move {
        let (client, outside) = (seat.client(), seat.external());
        let mut due = Due::on(vec![changes::<ConfigMap>(&client)]);
        loop {
            due.wait().await;
            due.done(&pass(&client, &outside, fix).await);
        }
    })
}

async fn pass(client: &Client, outside: &External, fix: bool) -> kube::Result<()> {
    let failed = |error: ExternalError| unreachable_outside(error);
    for parent in list::<ConfigMap>(client).await? {
        let name = parent.name_any();
        if parent.metadata.deletion_timestamp.is_some() {
            if fix {
                outside.remove(&name).await.map_err(failed)?;
            }
            patch(client, &parent, json!({"metadata": {"finalizers": null}})).await?;
            if !fix {
                outside.remove(&name).await.map_err(failed)?;
            }
        } else if parent.finalizers().is_empty() {
            patch(client, &parent, json!({"metadata": {"finalizers": [FINALIZER]}})).await?;
        } else if outside.get(&name).await.map_err(failed)?.is_none() {
            outside.put(&name, json!({"of": name})).await.map_err(failed)?;
        }
    }
    Ok(())
}

fn script() -> Script {
    Script::new().create(paint(&json!({}))).delete(&Kind::of::<ConfigMap>(), "paint")
}

#[test]
fn an_orphan_is_caught() {
    let report = check(operator(false)).script(script()).every_crash_point().report();
    let failure = found_in(&report, Part::Each(Family::CrashPoints));
    assert_eq!(failure.faults.to_string(), "crash after write 3");
    let differences = end_state(failure);
    assert!(differences.contains("external paint"), "{differences}");
}

#[test]
fn the_corrected_one_passes_everything_but_a_second_leader() {
    // Nothing keeps an instance that was stalled from making a bucket again; that takes a lease.
    check(operator(true)).script(script()).every_fault().but(Family::TwoLeaders).seeds(10).run();
}
