//! Something is made outside of the cluster before its name is written down.
//!
//! An operator that dies between the two makes another one when it comes back, as it knows of none. Kubernetes' volume
//! provisioners were turned round for that reason: first the record, then the volume (kubernetes/kubernetes#15203).

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, ResourceExt as _};
use mainstay_testkit::simulation::{External, Family, Part, Program, Script, check, program};
use serde_json::json;

use super::by_hand::{Due, changes, end_state, found_in, list, paint, patch, unreachable_outside};

/// Each ConfigMap gets a bucket with the first number that is free.
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
    for parent in list::<ConfigMap>(client).await? {
        let recorded = parent.annotations().get("bucket");
        if let Some(bucket) = recorded {
            if fix && !exists(outside, bucket).await? {
                make(outside, bucket).await?;
            }
            continue;
        }
        let mut number = 1;
        while exists(outside, &format!("bucket-{number}")).await? {
            number += 1;
        }
        let bucket = format!("bucket-{number}");
        if !fix {
            make(outside, &bucket).await?;
        }
        patch(client, &parent, json!({"metadata": {"annotations": {"bucket": bucket}}})).await?;
    }
    Ok(())
}

async fn exists(outside: &External, bucket: &str) -> kube::Result<bool> {
    outside.get(bucket).await.map(|found| found.is_some()).map_err(unreachable_outside)
}

async fn make(outside: &External, bucket: &str) -> kube::Result<()> {
    outside.put(bucket, json!({})).await.map_err(unreachable_outside)
}

fn script() -> Script {
    Script::new().create(paint(&json!({})))
}

#[test]
fn a_leak_is_caught() {
    let report = check(operator(false)).script(script()).every_crash_point().report();
    let failure = found_in(&report, Part::Each(Family::CrashPoints));
    assert_eq!(failure.faults.to_string(), "crash after write 1");
    let differences = end_state(failure);
    assert!(differences.contains("external bucket-2"), "{differences}");
}

#[test]
fn the_corrected_one_passes_everything() {
    check(operator(true)).script(script()).every_fault().seeds(10).run();
}
