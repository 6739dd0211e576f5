//! Cron jobs. The clock is the machine's on both sides, so a case takes up to a minute.

use std::time::Duration;

use k8s_openapi::api::batch::v1::CronJob;
use mainstay::Kind;
use mainstay_testkit::eventually_within;
use serde_json::json;

use super::super::case::Case;
use super::super::side::exits;
use super::{jobs, template};

pub(crate) async fn runs(mut case: Case) -> Case {
    let kind = Kind::of::<CronJob>();
    let mut template = template("task:1", &exits(0));
    template["spec"]["restartPolicy"] = json!("Never");
    case.create(json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
        "spec": {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": {
            "metadata": {"labels": {"of": "tick"}, "annotations": {"note": "mine"}}, "spec": {"template": template}}},
    }))
    .await;
    eventually_within(Duration::from_secs(100), "a job", async || {
        (!case.names(&jobs()).await.is_empty()).then_some(())
    })
    .await;
    // Kubernetes' controller creates the Job, then writes when that was. A change in between makes it forget to.
    case.until(&kind, "tick", "scheduled", |cron| !cron["status"]["lastScheduleTime"].is_null()).await;
    case.patch(&kind, "tick", json!({"spec": {"suspend": true}})).await;
    case.until(&kind, "tick", "done", |cron| !cron["status"]["lastSuccessfulTime"].is_null()).await;
    // Its name says when it was due.
    let due = case.names(&jobs()).await;
    assert!(
        due.iter()
            .all(|name| name.trim_start_matches("tick-").parse::<i64>().is_ok_and(|at| at > 29_000_000)),
        "{due:?}"
    );
    case.show("ran once", &[&kind]).await;
    case
}
