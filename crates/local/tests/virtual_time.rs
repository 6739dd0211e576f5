//! A whole cluster under virtual time: days of a `CronJob` pass in seconds, and every Job of it runs.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use mainstay::{Operator, OperatorBuilder};
use mainstay_apiserver::{ApiServer, Clock, TokioClock};
use mainstay_local::node::{self, Node};
use mainstay_local::{controllers, scheduler};
use mainstay_testkit::RunningOperator;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The API server's clock, as operators have it.
#[derive(Debug, Clone, Copy)]
struct Shared(TokioClock);

impl mainstay::clock::Clock for Shared {
    fn now(&self) -> Timestamp {
        Clock::now(&self.0)
    }
}

/// An API server, and all that makes a cluster of it, at this time.
async fn cluster_at(start: &str) -> (kube::Client, Vec<RunningOperator>) {
    let clock = TokioClock::starting_at(start.parse().unwrap());
    let server = ApiServer::builder().clock(clock).build().unwrap();
    let client = kube::Client::new(server, "default");
    make_node(&client).await;
    let builder = |name| Operator::builder(name, client.clone()).clock(Shared(clock)).seed(1);
    let run = |builder: OperatorBuilder| RunningOperator::start(builder.build().unwrap());
    let running = vec![
        run(controllers::configure(builder(controllers::NAME))),
        run(scheduler::configure(builder(scheduler::NAME))),
        run(node::configure(builder(node::NAME), &Node::new("local", "127.0.0.1"))),
    ];
    (client, running)
}

/// A node without a heartbeat, which would be thousands of writes here.
async fn make_node(client: &kube::Client) {
    let nodes: Api<NodeObject> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &of(json!({"metadata": {"name": "local"}}))).await.unwrap();
    let capacity = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    let status = json!({"status": {"capacity": capacity, "allocatable": capacity,
        "conditions": [{"type": "Ready", "status": "True"}]}});
    nodes.patch_status("local", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let untainted = json!({"spec": {"taints": null}});
    nodes.patch("local", &PatchParams::default(), &Patch::Merge(untainted)).await.unwrap();
}

fn of<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

/// When the Jobs that are there were due, and how many of them are complete.
async fn jobs(client: &kube::Client) -> (Vec<String>, usize) {
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let jobs = jobs.list(&ListParams::default()).await.unwrap().items;
    let due =
        jobs.iter().map(|job| job.annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"].clone());
    let mut due: Vec<String> = due.collect();
    due.sort();
    let complete = jobs.iter().filter(|job| {
        let conditions =
            job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == "Complete" && condition.status == "True")
    });
    (due, complete.count())
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_keeps_to_its_time_zone_when_clocks_change() {
    let (client, _running) = cluster_at("2026-10-23T12:00:00Z").await;
    let cron_jobs: Api<CronJob> = Api::default_namespaced(client.clone());
    let cron_job = json!({
        "metadata": {"name": "report"},
        "spec": {
            "schedule": "30 7 * * *", "timeZone": "Europe/Berlin", "successfulJobsHistoryLimit": 10,
            "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "report:1"}]}}}},
        },
    });
    cron_jobs.create(&PostParams::default(), &of(cron_job)).await.unwrap();
    tokio::time::sleep(Duration::from_hours(4 * 24)).await;
    let (due, complete) = jobs(&client).await;
    // Summer time ends in the night before the 25th.
    assert_eq!(
        due,
        [
            "2026-10-24T07:30:00+02:00",
            "2026-10-25T07:30:00+01:00",
            "2026-10-26T07:30:00+01:00",
            "2026-10-27T07:30:00+01:00",
        ]
    );
    assert_eq!(complete, 4, "each of them has run to its end");
    let status = cron_jobs.get("report").await.unwrap().status.unwrap();
    assert_eq!(status.last_schedule_time.unwrap().0.to_string(), "2026-10-27T06:30:00Z");
    assert_eq!(status.active, None);
}

#[tokio::test(start_paused = true)]
async fn history_limits_keep_the_latest_jobs() {
    let (client, _running) = cluster_at("2026-01-01T00:00:30Z").await;
    let cron_jobs: Api<CronJob> = Api::default_namespaced(client.clone());
    let cron_job = json!({
        "metadata": {"name": "tick"},
        "spec": {
            "schedule": "*/10 * * * *", "successfulJobsHistoryLimit": 2,
            "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "tick:1"}]}}}},
        },
    });
    cron_jobs.create(&PostParams::default(), &of(cron_job)).await.unwrap();
    tokio::time::sleep(Duration::from_mins(55)).await;
    let (due, complete) = jobs(&client).await;
    assert_eq!(due, ["2026-01-01T00:40:00Z", "2026-01-01T00:50:00Z"]);
    assert_eq!(complete, 2);
}
