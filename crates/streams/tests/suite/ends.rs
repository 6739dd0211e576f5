//! What follows when a Job ends.

use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_testkit::eventually;
use serde_json::{Value, json};

use crate::suite::fixtures::{Plugin, World, condition, env, in_each_world, jobs, template};

#[tokio::test]
async fn ends_are_followed_up() {
    in_each_world(async |world| {
        ends_with(world, "fails-1", "1").await;
        ends_with(world, "fails-3", "3").await;
        ends_with(world, "fails-7", "7").await;
        ends_with(world, "completes", "0").await;
        tokio::join!(
            a_stream_that_completes_is_run_again(world),
            a_stream_that_fails_is_a_crash_loop_until_it_is_mended(world),
            a_budget_grants_attempts_with_growing_pauses(world),
            exit_codes_mean_what_the_class_says(world),
            an_eviction_is_no_crash(world),
        );
        an_outcome_is_recorded_after_a_downtime_of_the_operator(world).await;
    })
    .await;
}

async fn ends_with(world: &World, name: &str, code: &str) {
    world.template(name, json!({"mainstay.dev/ends-after": "1s", "mainstay.dev/exit-code": code})).await;
}

fn with_template(name: &str) -> Value {
    json!({"jobTemplateRef": {"name": name}})
}

/// The outcomes in the history, the newest first: `Failed 3 BackoffLimitExceeded`.
fn outcomes(stream: &Value) -> Vec<String> {
    let history = stream["status"]["history"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let one = |past: &Value| {
        format!(
            "{} {} {} {}",
            text(&past["kind"]),
            text(&past["outcome"]),
            past["exitCode"],
            text(&past["reason"])
        )
    };
    history.iter().map(one).collect()
}

async fn a_stream_that_completes_is_run_again(world: &World) {
    let restart = json!({"minimumIntervalSeconds": 0});
    let clouds = world.plugin("Cloud", json!({"restart": restart, "history": 2})).await;
    clouds.create("cirrus", with_template("completes")).await;
    let stream = clouds
        .until("cirrus", "four runs", |stream| stream["status"]["runsStarted"].as_u64() >= Some(4))
        .await;
    assert_eq!(outcomes(&stream), ["Stream Completed null Completed", "Stream Completed null Completed"]);
    assert!(stream["status"]["failures"].is_null());
    assert!(stream["status"]["restarts"].as_u64() >= Some(3));

    // One that is done too soon waits.
    clouds.patch_class(json!({"restart": {"minimumIntervalSeconds": 600}})).await;
    let stream = clouds.until("cirrus", "a pause", |stream| !stream["status"]["nextAttempt"].is_null()).await;
    assert_eq!(stream["status"]["phase"], "Pending");
    assert_eq!(condition(&stream, "Ready").0, "False");
}

async fn a_stream_that_fails_is_a_crash_loop_until_it_is_mended(world: &World) {
    let rocks = world.plugin("Rock", json!({})).await;
    rocks.create("flint", with_template("fails-3")).await;
    let stream = rocks.until_run("flint", 1, "CrashLoopDetected").await;
    assert_eq!(outcomes(&stream), ["Stream Failed 3 BackoffLimitExceeded"]);
    rocks.until_no_job("flint").await;
    rocks.until("flint", "the rule", |stream| condition(stream, "Ready").1 == "CrashLoop").await;
    eventually("an event that says so", async || {
        world.events("flint").await.contains(&"CrashLoopDetected".to_owned()).then_some(())
    })
    .await;

    rocks.patch("flint", json!({"source": "b"})).await;
    rocks.until_run("flint", 2, "CrashLoopDetected").await;
    rocks.annotate("flint", "mainstay.dev/restart", json!("1")).await;
    rocks.until_run("flint", 3, "CrashLoopDetected").await;
    rocks.patch("flint", json!({"suspended": true})).await;
    rocks.until_phase("flint", "Suspended").await;
    rocks.patch("flint", json!({"suspended": false})).await;
    rocks.until_run("flint", 4, "CrashLoopDetected").await;
    rocks.patch("flint", with_template("rocks")).await;
    rocks.until_run("flint", 5, "Running").await;
}

async fn a_budget_grants_attempts_with_growing_pauses(world: &World) {
    let restart = json!({"budget": 2, "backoffSeconds": 1});
    let leaks = world.plugin("Leak", json!({"restart": restart})).await;
    leaks.create("slow", with_template("fails-1")).await;
    leaks.until("slow", "a next attempt", |stream| !stream["status"]["nextAttempt"].is_null()).await;
    let stream = leaks.until_run("slow", 3, "CrashLoopDetected").await;
    assert_eq!(outcomes(&stream), ["Stream Failed 1 BackoffLimitExceeded"; 3]);
    assert_eq!(stream["status"]["failures"], 3);
    let history = &stream["status"]["history"];
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let pause = |place: usize| {
        time(&history[place]["startedAt"]).duration_since(time(&history[place + 1]["endedAt"])).as_secs_f64()
    };
    assert!(pause(1) >= 1.0 && pause(0) >= 2.0, "{history:#}");
}

async fn exit_codes_mean_what_the_class_says(world: &World) {
    let codes = json!({"fatal": [7], "retryable": [1], "backfill": [3]});
    let restart = json!({"budget": 5, "backoffSeconds": 1, "minimumIntervalSeconds": 0, "exitCodes": codes});
    let ports = world.plugin("Port", json!({"restart": restart, "initialBackfill": false})).await;
    tokio::join!(
        async {
            ports.create("fatal", with_template("fails-7")).await;
            let stream = ports.until_run("fatal", 1, "CrashLoopDetected").await;
            assert_eq!(outcomes(&stream), ["Stream Failed 7 BackoffLimitExceeded"]);
        },
        async {
            ports.create("retryable", with_template("fails-1")).await;
            let is_third = |stream: &Value| stream["status"]["runsStarted"].as_u64() >= Some(3);
            let stream = ports.until("retryable", "a third run", is_third).await;
            assert!(stream["status"]["failures"].is_null() && stream["status"]["crashed"].is_null());
        },
        async {
            let mut spec = with_template("fails-3");
            spec["backfillJobTemplateRef"] = json!({"name": "completes"});
            ports.create("backfill", spec).await;
            let stream = ports.until("backfill", "a backfill", |stream| outcomes(stream).len() >= 2).await;
            let mut told = outcomes(&stream);
            told.reverse();
            assert_eq!(
                told[..2],
                ["Stream Failed 3 BackoffLimitExceeded", "Backfill Completed null Completed"]
            );
        },
    );
}

async fn an_eviction_is_no_crash(world: &World) {
    let moors = world.plugin("Moor", json!({})).await;
    moors.run("north", json!({})).await;
    let pods = Kind::of::<Pod>();
    let pod = async |before: &Value| {
        eventually("a pod that is ready", async || {
            let is_its = |pod: &&Value| {
                let labels = &pod["metadata"]["labels"];
                let ready = condition(pod, "Ready").0 == "True";
                labels["mainstay.dev/stream-kind"] == "Moor" && ready && pod["metadata"]["uid"] != *before
            };
            world.list(&pods).await.iter().find(is_its).cloned()
        })
        .await
    };
    let mut before = Value::Null;
    for _ in 0..3 {
        let found = pod(&before).await;
        let name = found["metadata"]["name"].as_str().unwrap();
        let path = format!("{}/{name}/eviction", pods.collection_path(Some(world.cluster.namespace())));
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        let request = http::Request::post(path).header("content-type", "application/json");
        let (status, answer) = world.cluster.send(request.body(eviction.to_string().into()).unwrap()).await;
        assert!(status.is_success(), "{answer}");
        before = found["metadata"]["uid"].clone();
    }
    pod(&before).await;
    let is_ready = |stream: &Value| condition(stream, "Ready").0 == "True";
    let stream = moors.until("north", "a ready pod", is_ready).await;
    assert_eq!(
        (&stream["status"]["phase"], &stream["status"]["runsStarted"]),
        (&json!("Running"), &json!(1))
    );
    assert!(stream["status"]["failures"].is_null() && stream["status"]["history"].is_null(), "{stream:#}");
}

/// The Job is to go a second after its end, while nobody is there to see it.
async fn an_outcome_is_recorded_after_a_downtime_of_the_operator(world: &mut World) {
    let mut short =
        template("short", &json!({"mainstay.dev/ends-after": "3s", "mainstay.dev/exit-code": "4"}));
    short["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = json!(1);
    world.cluster.create(short).await;
    world.plugin("Ember", json!({})).await;
    world.uninstalled("Ember").run("last", with_template("short")).await;
    world.kill().await;
    let job = {
        let embers = world.uninstalled("Ember");
        let job = embers.job("last").await;
        let name = job["metadata"]["name"].as_str().unwrap().to_owned();
        world
            .until(&jobs(), &name, "been told to go", |job| !job["metadata"]["deletionTimestamp"].is_null())
            .await;
        job
    };
    world.start();
    let embers = world.uninstalled("Ember");
    let stream = embers.until_run("last", 1, "CrashLoopDetected").await;
    let past = &stream["status"]["history"][0];
    assert_eq!(past["job"], job["metadata"]["name"]);
    assert_eq!((&past["outcome"], &past["reason"]), (&json!("Failed"), &json!("BackoffLimitExceeded")));
    embers.until_no_job("last").await;
    nobody_is_disturbed(&embers).await;
}

/// What ran before the downtime runs on.
async fn nobody_is_disturbed(embers: &Plugin<'_>) {
    let rocks = embers.world.uninstalled("Rock");
    let job = rocks.job("flint").await;
    assert_eq!(env(&job, "STREAMCONTEXT__STREAM_ID").as_deref(), Some("flint"));
    rocks.until_run("flint", 5, "Running").await;
}
