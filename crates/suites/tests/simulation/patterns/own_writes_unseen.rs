//! A decision on a cache that does not show the last one's result yet.
//!
//! Among the bugs that Sieve found by the way are those that need two things at once: here a watch that is late, and a
//! change of something else that makes the operator look again meanwhile. Kubernetes' own controllers keep
//! "expectations" against it.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, ResourceExt as _};
use kube_runtime::watcher::Config;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Family, Mishap, Part, Program, Script, Violation, check, program};
use serde_json::json;

use super::by_hand::{Due, cache, create, found_in, object, paint};

/// Each ConfigMap gets a Job.
fn operator(fix: bool) -> Program {
    program("jobs", move |seat| async move {
        let client = seat.client();
        let (parents, parents_changed) = cache::<ConfigMap>(&client, Config::default());
        let (jobs, jobs_changed) = cache::<Job>(&client, Config::default());
        let mut due = Due::on(vec![parents_changed, jobs_changed]);
        loop {
            due.wait().await;
            for parent in parents.state() {
                let is_its = |job: &Job| job.labels().get("of") == Some(&parent.name_any());
                if !jobs.state().iter().any(|job| is_its(job)) {
                    due.done(&create_job(&client, &parent.name_any(), fix).await);
                }
            }
        }
    })
}

async fn create_job(client: &Client, parent: &str, fix: bool) -> kube::Result<()> {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "paint", "image": "paint:1"}]});
    let mut job = json!({"metadata": {"labels": {"of": parent}}, "spec": {"template": {"spec": pod}}});
    // The server refuses a second one of the same name, whoever asks for it and whatever they have seen.
    if fix {
        job["metadata"]["name"] = json!(parent);
    } else {
        job["metadata"]["generateName"] = json!(format!("{parent}-"));
    }
    create(client, &object::<Job>(job)).await
}

fn checked(fix: bool) -> Check {
    let parents = Kind::of::<ConfigMap>();
    let script =
        Script::new().create(paint(&json!({}))).patch(&parents, "paint", json!({"data": {"colour": "red"}}));
    check(operator(fix)).script(script).always("never two Jobs of one ConfigMap", |state| {
        match state.of(&Kind::of::<Job>()).count() {
            0 | 1 => Ok(()),
            count => Err(format!("there are {count}")),
        }
    })
}

#[test]
fn a_second_job_is_caught() {
    let report = checked(false).every_lost_event().report();
    let failure = found_in(&report, Part::Each(Family::Watches));
    assert!(matches!(failure.faults.0[..], [fault] if matches!(fault.mishap, Mishap::Hold | Mishap::Miss)));
    let [Violation::Property { name, why }] = &failure.violations[..] else { panic!("{}", failure.story) };
    assert_eq!((name.as_str(), why.as_str()), ("never two Jobs of one ConfigMap", "there are 2"));
}

#[test]
fn the_corrected_one_passes_everything() {
    checked(true).every_fault().seeds(10).run();
}
