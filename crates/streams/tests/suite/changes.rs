//! Templates that change, and Jobs that somebody else lays hands on.

use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_testkit::eventually;
use serde_json::{Value, json};

use crate::suite::fixtures::{Plugin, World, in_each_world, jobs, templates};

#[tokio::test]
async fn jobs_are_kept_as_they_shall_be() {
    in_each_world(async |world| {
        tokio::join!(
            a_changed_template_restarts_one_stream_after_the_other(world),
            what_somebody_does_to_a_job_is_undone(world),
        );
    })
    .await;
}

async fn change_template(plugin: &Plugin<'_>) {
    let metadata = json!({"labels": {"edition": "second"}});
    let patch = json!({"spec": {"template": {"metadata": metadata}}});
    plugin.world.cluster.patch(&templates(), plugin.plural(), patch).await;
}

fn is_second(job: &Value) -> bool {
    job["metadata"]["labels"]["edition"] == "second"
}

async fn a_changed_template_restarts_one_stream_after_the_other(world: &World) {
    let geese = world.plugin("Goose", json!({"rollout": {"maxUnavailable": 1, "minReadySeconds": 1}})).await;
    let names = ["first", "second", "third"];
    tokio::join!(
        geese.run(names[0], json!({})),
        geese.run(names[1], json!({})),
        geese.run(names[2], json!({})),
    );
    change_template(&geese).await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
    loop {
        let all = world.list(&jobs()).await;
        let of = |name: &&str| {
            let of_it = all.iter().filter(|job| job["metadata"]["labels"]["mainstay.dev/stream"] == **name);
            of_it.cloned().collect::<Vec<_>>()
        };
        let each: Vec<Vec<Value>> = names.iter().map(of).collect();
        let is_live = |job: &Value| job["metadata"]["deletionTimestamp"].is_null();
        let without = each.iter().filter(|jobs| !jobs.iter().any(is_live)).count();
        assert!(without <= 1, "{without} streams are without a Job: {each:#?}");
        assert!(each.iter().all(|jobs| jobs.len() <= 1), "a stream has two Jobs: {each:#?}");
        if each.iter().all(|jobs| jobs.iter().any(|job| is_live(job) && is_second(job))) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "not all were restarted: {each:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    for name in names {
        let stream = geese.until_run(name, 2, "Running").await;
        assert_eq!(stream["status"]["history"][0]["reason"], "ConfigurationChanged");
    }
}

async fn what_somebody_does_to_a_job_is_undone(world: &World) {
    let hares = world.plugin("Hare", json!({})).await;
    tokio::join!(
        a_deleted_job_is_made_again(&hares),
        pods_that_a_job_leaves_behind_are_ended(&hares),
        a_changed_job_is_made_anew(&hares, "still", json!({"suspend": true})),
        a_changed_job_is_made_anew(&hares, "twin", json!({"parallelism": 2})),
        a_restart_is_a_new_job(&hares),
        a_job_that_belongs_to_nobody_is_let_be(&hares),
    );
}

async fn a_deleted_job_is_made_again(hares: &Plugin<'_>) {
    let job = hares.run("gone", json!({})).await;
    hares.world.delete_job(&job).await;
    hares.until_other_job("gone", &job).await;
    let stream = hares.until_run("gone", 2, "Running").await;
    let past = &stream["status"]["history"][0];
    assert_eq!((&past["outcome"], &past["reason"]), (&json!("Stopped"), &json!("Deleted")));
}

async fn pods_that_a_job_leaves_behind_are_ended(hares: &Plugin<'_>) {
    let pod = Kind::of::<Pod>();
    let job = hares.run("left", json!({})).await;
    let is_its =
        |pod: &Value| pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == job["metadata"]["name"];
    let old = eventually("its pod", async || hares.world.list(&pod).await.into_iter().find(is_its)).await;
    hares.world.delete_job_alone(&job).await;
    hares.until_run("left", 2, "Running").await;
    hares.job("left").await;
    hares.world.until_gone(&pod, old["metadata"]["name"].as_str().unwrap()).await;
}

async fn a_changed_job_is_made_anew(hares: &Plugin<'_>, name: &str, spec: Value) {
    let job = hares.run(name, json!({})).await;
    let before = hares.until_phase(name, "Running").await;
    let patch = json!({"spec": spec});
    hares.world.cluster.patch(&jobs(), job["metadata"]["name"].as_str().unwrap(), patch).await;
    let second = hares.until_other_job(name, &job).await;
    for (field, changed) in spec.as_object().unwrap() {
        assert_ne!(second["spec"][field], *changed);
    }
    let after = hares.until_run(name, 2, "Running").await;
    assert_eq!(after["status"]["configurationHash"], before["status"]["configurationHash"]);
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
}

async fn a_restart_is_a_new_job(hares: &Plugin<'_>) {
    let job = hares.run("again", json!({})).await;
    hares.annotate("again", "mainstay.dev/restart", json!("monday")).await;
    hares.until_other_job("again", &job).await;
    let stream = hares.until_run("again", 2, "Running").await;
    assert_eq!(stream["status"]["history"][0]["reason"], "RestartRequested");
}

async fn a_job_that_belongs_to_nobody_is_let_be(hares: &Plugin<'_>) {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "other"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "example.com/a"}]}}},
    });
    let made = hares.world.cluster.create(job).await;
    hares.run("beside", json!({})).await;
    let job = hares.world.cluster.find(&jobs(), "other").await.unwrap();
    assert_eq!(job["metadata"]["uid"], made["metadata"]["uid"]);
    assert!(job["metadata"]["labels"]["mainstay.dev/stream-uid"].is_null());
}
