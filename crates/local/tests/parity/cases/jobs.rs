//! Jobs.

use serde_json::{Value, json};

use super::super::case::Case;
use super::super::side::{exits, runs};
use super::{jobs, pods, template};

fn job(simulated: &Value, more: &Value) -> Value {
    let mut template = template("task:1", simulated);
    template["spec"]["restartPolicy"] = json!("Never");
    template["metadata"]["labels"] = json!({"app": "task"});
    let mut object = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "task"}, "spec": {"template": template}});
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

fn has(condition: &'static str) -> impl Fn(&Value) -> bool {
    move |job| {
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|known| known["type"] == condition && known["status"] == "True")
    }
}

pub(crate) async fn succeeds(mut case: Case) -> Case {
    case.create(job(&exits(0), &json!({"completions": 3, "parallelism": 2}))).await;
    case.until(&jobs(), "task", "complete", has("Complete")).await;
    case.show("complete", &[&jobs(), &pods()]).await;
    case
}

pub(crate) async fn fails(mut case: Case) -> Case {
    case.create(job(&exits(3), &json!({"backoffLimit": 0}))).await;
    case.until(&jobs(), "task", "failed", has("Failed")).await;
    case.show("failed", &[&jobs(), &pods()]).await;
    case
}

pub(crate) async fn indexed(mut case: Case) -> Case {
    let more =
        json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 0});
    case.create(job(&exits(0), &more)).await;
    case.until(&jobs(), "task", "complete", has("Complete")).await;
    case.show("complete", &[&jobs(), &pods()]).await;
    case
}

pub(crate) async fn suspended(mut case: Case) -> Case {
    case.create(job(&runs(), &json!({"suspend": true}))).await;
    case.until(&jobs(), "task", "suspended", has("Suspended")).await;
    case.show("suspended", &[&jobs(), &pods()]).await;
    case.patch(&jobs(), "task", json!({"spec": {"suspend": false}})).await;
    case.until(&jobs(), "task", "ready", |job| job["status"]["ready"] == 1).await;
    case.show("resumed", &[&jobs(), &pods()]).await;
    case.patch(&jobs(), "task", json!({"spec": {"suspend": true}})).await;
    case.until(&jobs(), "task", "suspended", has("Suspended")).await;
    case.show("suspended again", &[&jobs(), &pods()]).await;
    case
}

pub(crate) async fn has_a_deadline(mut case: Case) -> Case {
    case.create(job(&runs(), &json!({"activeDeadlineSeconds": 3}))).await;
    case.until(&jobs(), "task", "failed", has("Failed")).await;
    case.show("too late", &[&jobs(), &pods()]).await;
    case
}

pub(crate) async fn has_a_failure_policy(mut case: Case) -> Case {
    let policy = json!({"podFailurePolicy": {"rules": [
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
    ]}});
    case.create(job(&exits(42), &policy)).await;
    case.until(&jobs(), "task", "failed", has("Failed")).await;
    case.show("failed at once", &[&jobs(), &pods()]).await;
    case
}

pub(crate) async fn is_deleted_when_old(mut case: Case) -> Case {
    case.create(job(&exits(0), &json!({"ttlSecondsAfterFinished": 3}))).await;
    case.until(&jobs(), "task", "complete", has("Complete")).await;
    mainstay_testkit::eventually("the job is gone", async || {
        case.names(&jobs()).await.is_empty().then_some(())
    })
    .await;
    case.show("gone", &[&jobs(), &pods()]).await;
    case
}
