//! An operator that relies on being the only one.
//!
//! Neither a Deployment with one replica nor a lease keeps a second instance from running: the first may have been stalled
//! between looking and writing, and wakes up when the other has done the work. Only the server can refuse the second write.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, ResourceExt as _};
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Family, Part, Program, Script, Violation, check, program};
use serde_json::json;

use super::by_hand::{Due, changes, create, found_in, list, object, paint};

/// Each run that a ConfigMap asks for by its number gets a Job.
fn operator(fix: bool) -> Program {
    program("runs", move |seat| async move {
        let client = seat.client();
        let mut due = Due::on(vec![changes::<ConfigMap>(&client), changes::<Job>(&client)]);
        loop {
            due.wait().await;
            due.done(&pass(&client, fix).await);
        }
    })
}

async fn pass(client: &Client, fix: bool) -> kube::Result<()> {
    let jobs = list::<Job>(client).await?;
    for parent in list::<ConfigMap>(client).await? {
        let run = parent.data.as_ref().and_then(|data| data.get("run"));
        if jobs.iter().any(|job| job.labels().get("run") == run) {
            continue;
        }
        let mut metadata = json!({"labels": {"run": run}});
        if fix {
            metadata["name"] = json!(format!("{}-{}", parent.name_any(), run.map_or("", String::as_str)));
        } else {
            metadata["generateName"] = json!(format!("{}-", parent.name_any()));
        }
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "paint", "image": "paint:1"}]});
        create(client, &object::<Job>(json!({"metadata": metadata, "spec": {"template": {"spec": pod}}})))
            .await?;
    }
    Ok(())
}

fn checked(fix: bool) -> Check {
    let script = Script::new().create(paint(&json!({"run": "1"})));
    check(operator(fix)).script(script).always("never two Jobs of one run", |state| {
        let mut runs: Vec<_> =
            state.of(&Kind::of::<Job>()).map(|job| &job["metadata"]["labels"]["run"]).collect();
        let count = runs.len();
        runs.dedup();
        if runs.len() == count { Ok(()) } else { Err(format!("{count} Jobs of {} runs", runs.len())) }
    })
}

#[test]
fn two_that_both_act_are_caught() {
    let report = checked(false).every_second_leader().report();
    let failure = found_in(&report, Part::Each(Family::TwoLeaders));
    assert_eq!(failure.faults.to_string(), "two leaders at write 1");
    let [Violation::Property { why, .. }] = &failure.violations[..] else { panic!("{}", failure.story) };
    assert_eq!(why, "2 Jobs of 1 runs");
    assert!(failure.story.contains("runs#2       create jobs.batch default"), "{}", failure.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    checked(true).every_fault().seeds(10).run();
}
