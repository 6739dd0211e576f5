//! From the first Job of a stream to the last.

use k8s_openapi::api::batch::v1::CronJob;
use k8s_openapi::api::core::v1::{Pod, Secret};
use mainstay::Kind;
use mainstay_testkit::eventually;
use serde_json::{Value, json};

use crate::suite::fixtures::{World, classes, env, in_each_world, jobs};

#[tokio::test]
async fn streams_live() {
    in_each_world(async |world| {
        tokio::join!(
            a_stream_has_one_job_that_follows_its_spec(world),
            the_job_gets_all_that_its_program_reads(world),
            all_that_keep_a_stream_suspended_count(world),
            streams_of_two_kinds_may_have_one_name(world),
            a_schedule_becomes_a_cron_job(world),
        );
        what_has_converged_is_let_be(world).await;
    })
    .await;
}

async fn a_stream_has_one_job_that_follows_its_spec(world: &World) {
    let feeds = world.plugin("Feed", json!({})).await;
    feeds.run("orders", json!({})).await;
    let first = feeds.until_phase("orders", "Running").await;

    feeds.patch("orders", json!({"source": "b"})).await;
    let second = feeds.until_run("orders", 2, "Running").await;
    assert_ne!(second["status"]["configurationHash"], first["status"]["configurationHash"]);
    assert_eq!(second["status"]["history"][0]["reason"], "ConfigurationChanged");
    assert_eq!(second["status"]["history"][0]["outcome"], "Stopped");
    feeds.job("orders").await;

    feeds.patch("orders", json!({"suspended": true})).await;
    feeds.until_phase("orders", "Suspended").await;
    assert!(feeds.jobs("orders").await.is_empty());
    feeds.patch("orders", json!({"suspended": false})).await;
    feeds.until_phase("orders", "Running").await;
    world
        .until(&classes(), "feeds", "a running stream", |class| {
            class["status"]["streams"] == json!({"total": 1, "byPhase": {"Running": 1}})
        })
        .await;

    // Another one of the same name waits for what is left of this one.
    let job = feeds.job("orders").await;
    world.cluster.delete(&feeds.kind, "orders").await;
    feeds.create("orders", json!({})).await;
    feeds.until_other_job("orders", &job).await;
    feeds.until_run("orders", 1, "Running").await;

    world.cluster.delete(&feeds.kind, "orders").await;
    feeds.until_no_job("orders").await;
    eventually("its pods to go", async || {
        let pods = world.list(&Kind::of::<Pod>()).await;
        let is_its = |pod: &Value| pod["metadata"]["labels"]["mainstay.dev/stream"] == "orders";
        (!pods.iter().any(is_its)).then_some(())
    })
    .await;
}

async fn the_job_gets_all_that_its_program_reads(world: &World) {
    let taps = world.plugin("Tap", json!({"secretRefs": ["sinkSecretRef"]})).await;
    let stream = taps.create("sales", json!({"sinkSecretRef": {"name": "sink"}, "table": {"id": 7}})).await;
    // The Secret is not there yet: the pod waits for it, not the Job.
    taps.until_phase("sales", "Running").await;
    let job = taps.job("sales").await;
    assert_eq!(env(&job, "STREAMCONTEXT__STREAM_ID").as_deref(), Some("sales"));
    assert_eq!(env(&job, "STREAMCONTEXT__STREAM_KIND").as_deref(), Some("Tap"));
    assert_eq!(env(&job, "STREAMCONTEXT__BACKFILL").as_deref(), Some("false"));
    assert_eq!(env(&job, "STREAMCONTEXT__BACKFILL_ID"), None);
    assert_eq!(env(&job, "STREAMCONTEXT__OVERRIDE"), None);
    let spec: Value = serde_json::from_str(&env(&job, "STREAMCONTEXT__SPEC").unwrap()).unwrap();
    assert_eq!(spec, json!({"source": "a", "jobTemplateRef": {"name": "taps"}, "table": {"id": 7}}));
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["envFrom"], json!([{"secretRef": {"name": "sink"}}]));
    let owner = &job["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("Tap"), &json!(true)));
    assert_eq!(owner["uid"], stream["metadata"]["uid"]);

    // Never a value of a Secret, whatever becomes of it.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sink"}, "stringData": {"PASSWORD": "xyzzy"},
    });
    world.cluster.create(secret).await;
    let with_secret = taps.until_other_job("sales", &job).await;
    world.cluster.patch(&Kind::of::<Secret>(), "sink", json!({"stringData": {"PASSWORD": "plugh"}})).await;
    let changed = taps.until_other_job("sales", &with_secret).await;
    let stream = taps.until_run("sales", 3, "Running").await;
    assert_eq!(stream["status"]["history"][0]["reason"], "ConfigurationChanged");
    let told = format!("{stream} {changed}");
    assert!(!told.contains("plugh") && !told.contains("cGx1Z2g"), "{told}");
}

async fn all_that_keep_a_stream_suspended_count(world: &World) {
    let wells = world.plugin("Well", json!({})).await;
    wells.run("north", json!({})).await;
    wells.annotate("north", "mainstay.dev/suspend", json!("true")).await;
    let by = async |what: &str| {
        wells
            .until("north", what, |stream| {
                let told = stream["status"]["conditions"][0]["message"].as_str().unwrap_or_default();
                stream["status"]["phase"] == "Suspended" && told == format!("Suspended {what}")
            })
            .await;
        wells.until_no_job("north").await;
    };
    by("by its annotation").await;
    wells.annotate("north", "downtime.mainstay.dev/move", json!("2026-01-01T00:00:00Z")).await;
    wells.annotate("north", "downtime.mainstay.dev/upgrade", json!("2026-01-01T00:00:00Z")).await;
    by("by its annotation, by the downtime move, by the downtime upgrade").await;
    wells.annotate("north", "mainstay.dev/suspend", Value::Null).await;
    wells.annotate("north", "downtime.mainstay.dev/move", Value::Null).await;
    by("by the downtime upgrade").await;
    wells.annotate("north", "downtime.mainstay.dev/upgrade", Value::Null).await;
    let stream = wells.until_run("north", 2, "Running").await;
    assert_eq!(stream["status"]["history"][0]["reason"], "Suspended");
}

async fn streams_of_two_kinds_may_have_one_name(world: &World) {
    let (rivers, brooks) = tokio::join!(world.plugin("River", json!({})), world.plugin("Brook", json!({})));
    let (one, other) = tokio::join!(rivers.run("main", json!({})), brooks.run("main", json!({})));
    assert_ne!(one["metadata"]["name"], other["metadata"]["name"]);
    world.cluster.delete(&rivers.kind, "main").await;
    rivers.until_no_job("main").await;
    assert_eq!(brooks.job("main").await["metadata"]["uid"], other["metadata"]["uid"]);
}

async fn a_schedule_becomes_a_cron_job(world: &World) {
    let tides = world.plugin("Tide", json!({"restart": {"budget": 1}})).await;
    world.template("slot", json!({"mainstay.dev/ends-after": "1s", "mainstay.dev/exit-code": "6"})).await;
    let spec = json!({"schedule": "0 0 1 1 *", "jobTemplateRef": {"name": "slot"}});
    tides.create("high", spec).await;
    let stream = tides.until_phase("high", "Scheduled").await;
    assert!(tides.all_jobs("high").await.is_empty());
    let name = stream["status"]["run"]["job"].as_str().unwrap().to_owned();
    let cron_job = world.cluster.find(&Kind::of::<CronJob>(), &name).await.unwrap();
    assert_eq!(cron_job["spec"]["schedule"], "0 0 1 1 *");

    start_slot(world, &cron_job, "high-1").await;
    let stream = tides
        .until("high", "the outcome of a slot", |stream| !stream["status"]["history"][0].is_null())
        .await;
    let past = &stream["status"]["history"][0];
    assert_eq!((&past["job"], &past["kind"]), (&json!("high-1"), &json!("Schedule")));
    assert_eq!((&past["outcome"], &past["exitCode"]), (&json!("Failed"), &json!(6)));
    let stream = tides.until_phase("high", "Scheduled").await;
    assert_eq!(stream["status"]["failures"], 1);

    // The budget is used up.
    start_slot(world, &cron_job, "high-2").await;
    let stream = tides.until_run("high", 1, "CrashLoopDetected").await;
    // The end of the CronJob itself may be in the history by now, too.
    let history = stream["status"]["history"].as_array().unwrap();
    assert!(history.iter().any(|past| past["job"] == "high-1"), "{stream:#}");
    world.until_gone(&Kind::of::<CronJob>(), &name).await;

    tides.patch("high", json!({"schedule": null, "jobTemplateRef": {"name": "tides"}})).await;
    tides.until_run("high", 2, "Running").await;
    world.until_gone(&jobs(), "high-1").await;
}

/// As the controller of `CronJob`s starts one when its time has come.
async fn start_slot(world: &World, cron_job: &Value, name: &str) {
    let metadata = &cron_job["metadata"];
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "name": metadata["name"], "uid": metadata["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    let mut job = cron_job["spec"]["jobTemplate"].clone();
    job["apiVersion"] = json!("batch/v1");
    job["kind"] = json!("Job");
    job["metadata"]["name"] = json!(name);
    job["metadata"]["ownerReferences"] = json!([owner]);
    world.cluster.create(job).await;
}

/// For longer than anything is looked at again.
async fn what_has_converged_is_let_be(world: &World) {
    let all = async || {
        let mut versions = Vec::new();
        for kind in [classes(), jobs(), Kind::of::<CronJob>(), Kind::of::<Pod>()] {
            versions.extend(world.list(&kind).await);
        }
        for kind in ["Feed", "Tap", "Well", "River", "Brook", "Tide"] {
            versions.extend(world.list(&world.uninstalled(kind).kind).await);
        }
        let version = |object: &Value| {
            let metadata = &object["metadata"];
            format!("{} {} {}", object["kind"], metadata["name"], metadata["resourceVersion"])
        };
        versions.iter().map(version).collect::<Vec<_>>()
    };
    // The counts of a class follow within seconds.
    for (class, total) in
        [("feeds", 0), ("taps", 1), ("wells", 1), ("rivers", 0), ("brooks", 1), ("tides", 1)]
    {
        let by_phase = if total == 0 { json!({}) } else { json!({"Running": total}) };
        let counts = json!({"total": total, "byPhase": by_phase});
        world.until(&classes(), class, "its counts", |class| class["status"]["streams"] == counts).await;
    }
    // A stream that was rolled is watched until it has been ready for a while.
    for kind in ["Tap", "Well", "Brook", "Tide"] {
        let kind = world.uninstalled(kind).kind;
        eventually(&format!("{} to hold no seat of a roll-out", kind.kind()), async || {
            let streams = world.list(&kind).await;
            streams.iter().all(|stream| stream["status"]["rollout"].is_null()).then_some(())
        })
        .await;
    }
    let before = all().await;
    assert!(before.len() > 10, "{before:?}");
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    assert_eq!(all().await, before);
}
