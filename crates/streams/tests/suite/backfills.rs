//! Backfills: by request, by annotation, and at the beginning.

use mainstay_testkit::eventually;
use serde_json::{Value, json};

use crate::suite::fixtures::{Plugin, World, classes, condition, env, in_each_world, requests};

#[tokio::test]
async fn streams_are_backfilled() {
    in_each_world(async |world| {
        for (name, ends, code) in
            [("fills", "2s", "0"), ("fails", "1s", "5"), ("fills-for-ever", "never", "0")]
        {
            world
                .template(name, json!({"mainstay.dev/ends-after": ends, "mainstay.dev/exit-code": code}))
                .await;
        }
        let restart = json!({"restart": {"backoffSeconds": 1}});
        let pools = world.plugin("Pool", with(&restart, "initialBackfill", json!(false))).await;
        tokio::join!(
            requests_are_carried_out_in_turn(&pools),
            a_cancelled_request_is_stopped(&pools),
            a_request_is_tried_again_as_often_as_it_says(&pools),
            a_reload_is_a_backfill(&pools),
            a_request_for_nothing_waits(&pools),
            a_request_that_cannot_be_carried_out_stops_nothing(&pools),
            a_new_stream_is_backfilled_if_it_says_how(world),
            a_kind_that_keeps_little_of_the_status_works_all_the_same(world),
        );
    })
    .await;
}

fn with(object: &Value, field: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[field] = value;
    object
}

fn backfilled_with(template: &str) -> Value {
    json!({"backfillJobTemplateRef": {"name": template}})
}

/// Makes a request with these fields.
async fn ask(plugin: &Plugin<'_>, name: &str, stream: &str, spec: Value) -> Value {
    let mut all = json!({"streamClass": plugin.plural(), "streamId": stream});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let metadata = json!({"name": name});
    let api_version = requests().api_version();
    let request =
        json!({"apiVersion": api_version, "kind": "BackfillRequest", "metadata": metadata, "spec": all});
    plugin.world.cluster.create(request).await
}

async fn until_request(plugin: &Plugin<'_>, name: &str, phase: &str) -> Value {
    let is = |request: &Value| request["status"]["phase"] == phase;
    plugin.world.until(&requests(), name, &format!("phase {phase}"), is).await
}

/// Waits for the Job of a backfill.
async fn backfill_job(plugin: &Plugin<'_>, stream: &str, id: &str) -> Value {
    eventually(&format!("{stream} to be backfilled for {id}"), async || {
        let jobs = plugin.all_jobs(stream).await;
        assert!(jobs.len() <= 1, "{jobs:#?}");
        jobs.into_iter().find(|job| env(job, "STREAMCONTEXT__BACKFILL_ID").as_deref() == Some(id))
    })
    .await
}

async fn requests_are_carried_out_in_turn(pools: &Plugin<'_>) {
    let stream = pools.run("deep", backfilled_with("fills")).await;
    assert_eq!(env(&stream, "STREAMCONTEXT__BACKFILL").as_deref(), Some("false"));
    let spec =
        json!({"payload": {"table": "a"}, "range": {"from": "1", "to": "2"}, "ttlSecondsAfterFinished": 1});
    let first = ask(pools, "deep-a", "deep", spec).await;
    // Later by name, should the server give both one time.
    ask(pools, "deep-b", "deep", json!({"payload": "all"})).await;
    let job = backfill_job(pools, "deep", "deep-a").await;
    assert_eq!(env(&job, "STREAMCONTEXT__BACKFILL").as_deref(), Some("true"));
    let passed: Value = serde_json::from_str(&env(&job, "STREAMCONTEXT__OVERRIDE").unwrap()).unwrap();
    assert_eq!(passed, json!({"table": "a", "range": {"from": "1", "to": "2"}}));
    assert_eq!(job["metadata"]["labels"]["mainstay.dev/backfill"], "true");

    let running = until_request(pools, "deep-a", "Running").await;
    assert_eq!(running["status"]["job"], job["metadata"]["name"]);
    let waiting = until_request(pools, "deep-b", "Queued").await;
    assert!(waiting["status"]["job"].is_null(), "{waiting:#}");
    pools.until("deep", "phase Backfilling", |stream| stream["status"]["phase"] == "Backfilling").await;

    let job = backfill_job(pools, "deep", "deep-b").await;
    assert_eq!(env(&job, "STREAMCONTEXT__OVERRIDE").as_deref(), Some("\"all\""));
    let second = until_request(pools, "deep-b", "Completed").await;
    assert_eq!(second["status"]["attempts"], 1);
    assert_eq!(condition(&second, "Ready"), ("True".into(), "Completed".into()));
    let stream = pools.until_phase("deep", "Running").await;
    assert_eq!(stream["status"]["runsStarted"], 4);
    // It was over, and went when its time had come; the other one stays.
    eventually("the first request to go", async || {
        let found = pools.world.cluster.find(&requests(), "deep-a").await;
        let is_there = found.is_some_and(|found| found["metadata"]["uid"] == first["metadata"]["uid"]);
        (!is_there).then_some(())
    })
    .await;
    until_request(pools, "deep-b", "Completed").await;
}

async fn a_cancelled_request_is_stopped(pools: &Plugin<'_>) {
    pools.run("wide", backfilled_with("fills-for-ever")).await;
    ask(pools, "wide-a", "wide", json!({})).await;
    until_request(pools, "wide-a", "Running").await;
    ask(pools, "wide-b", "wide", json!({})).await;
    until_request(pools, "wide-b", "Queued").await;
    for name in ["wide-b", "wide-a"] {
        pools.world.cluster.patch(&requests(), name, json!({"spec": {"cancelled": true}})).await;
        until_request(pools, name, "Cancelled").await;
    }
    let stream = pools.until_run("wide", 3, "Running").await;
    assert_eq!(stream["status"]["history"][0]["reason"], "BackfillCancelled");

    // One that is deleted is not wanted any more, either.
    ask(pools, "wide-c", "wide", json!({})).await;
    until_request(pools, "wide-c", "Running").await;
    pools.world.cluster.delete(&requests(), "wide-c").await;
    pools.until_run("wide", 5, "Running").await;
}

async fn a_request_is_tried_again_as_often_as_it_says(pools: &Plugin<'_>) {
    pools.run("muddy", backfilled_with("fails")).await;
    ask(pools, "muddy-a", "muddy", json!({"retries": 1})).await;
    let request = until_request(pools, "muddy-a", "Failed").await;
    assert_eq!(request["status"]["attempts"], 2);
    let stream = pools.until_run("muddy", 3, "CrashLoopDetected").await;
    let history = stream["status"]["history"].as_array().unwrap();
    let codes: Vec<_> = history.iter().map(|past| (&past["kind"], &past["exitCode"])).collect();
    let (backfill, code) = (json!("Backfill"), json!(5));
    assert_eq!(codes[..2], [(&backfill, &code), (&backfill, &code)]);

    pools.patch("muddy", backfilled_with("fills")).await;
    pools.until_run("muddy", 4, "Running").await;
}

async fn a_reload_is_a_backfill(pools: &Plugin<'_>) {
    let first = pools.run("clear", json!({})).await;
    // Without a template of its own, a backfill is made from the stream's.
    pools.patch("clear", backfilled_with("fills")).await;
    pools.until_other_job("clear", &first).await;
    pools.until_run("clear", 2, "Running").await;
    pools.annotate("clear", "mainstay.dev/reload", json!("monday")).await;
    let job = backfill_job(pools, "clear", "run-3").await;
    assert_eq!(env(&job, "STREAMCONTEXT__BACKFILL").as_deref(), Some("true"));
    let stream = pools.until_run("clear", 4, "Running").await;
    assert_eq!(stream["status"]["reloaded"], "monday");
    assert_eq!(stream["metadata"]["annotations"]["mainstay.dev/reload"], "monday");
}

async fn a_request_for_nothing_waits(pools: &Plugin<'_>) {
    ask(pools, "lost", "later", json!({})).await;
    let is = |request: &Value| condition(request, "Ready").1 == "StreamMissing";
    let request = pools.world.until(&requests(), "lost", "no stream", is).await;
    assert_eq!(request["status"]["phase"], "Pending");
    pools.create("later", backfilled_with("fills")).await;
    until_request(pools, "lost", "Completed").await;
    pools.until_phase("later", "Running").await;
}

async fn a_request_that_cannot_be_carried_out_stops_nothing(pools: &Plugin<'_>) {
    let job = pools.run("calm", backfilled_with("fills")).await;
    ask(pools, "calm-a", "calm", json!({"payload": "x".repeat(130 * 1024)})).await;
    let request = until_request(pools, "calm-a", "Failed").await;
    assert_eq!(condition(&request, "Ready"), ("False".into(), "PayloadTooLarge".into()));
    let stream = pools.until_run("calm", 1, "Running").await;
    assert_eq!(pools.job("calm").await["metadata"]["uid"], job["metadata"]["uid"], "{stream:#}");
    ask(pools, "calm-b", "calm", json!({"payload": "x".repeat(1024)})).await;
    until_request(pools, "calm-b", "Completed").await;
    pools.until_run("calm", 3, "Running").await;
}

async fn a_new_stream_is_backfilled_if_it_says_how(world: &World) {
    let lakes = world.plugin("Lake", json!({})).await;
    lakes.create("new", backfilled_with("fills")).await;
    let job = backfill_job(&lakes, "new", "run-1").await;
    assert_eq!(env(&job, "STREAMCONTEXT__BACKFILL").as_deref(), Some("true"));
    lakes.until_run("new", 1, "Backfilling").await;
    let stream = lakes.until_run("new", 2, "Running").await;
    assert_eq!(stream["status"]["initialised"], true);
    assert_eq!(stream["status"]["history"][0]["kind"], "Backfill");
    let job = lakes.run("plain", json!({})).await;
    assert_eq!(env(&job, "STREAMCONTEXT__BACKFILL").as_deref(), Some("false"));
}

async fn a_kind_that_keeps_little_of_the_status_works_all_the_same(world: &World) {
    let sands = world.uninstalled("Sand");
    world.template("sands", json!({"mainstay.dev/ends-after": "never"})).await;
    let mut definition = sands.definition();
    let text = json!({"type": "string"});
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({
        "type": "object",
        "properties": {
            "phase": text, "configurationHash": text, "conditions": {"type": "array", "items": anything},
        },
    });
    world.cluster.define(definition).await;
    world.cluster.create(sands.class(&json!({"initialBackfill": false}))).await;
    world.until_class("sands", "Ready").await;
    let record = |stream: &Value| -> Value {
        let kept = stream["metadata"]["annotations"]["mainstay.dev/stream-record"].as_str();
        serde_json::from_str(kept.unwrap_or("null")).unwrap()
    };
    let run_in = |number: u64, phase: &'static str| {
        // The record follows the status; nothing is let go before both are written.
        move |stream: &Value| {
            let record = record(stream);
            stream["status"]["phase"] == phase && record["phase"] == phase && record["runsStarted"] == number
        }
    };

    sands.create("dry", json!({"jobTemplateRef": {"name": "fails"}})).await;
    let stream = sands.until("dry", "a crash loop", run_in(1, "CrashLoopDetected")).await;
    assert!(stream["status"]["history"].is_null());
    assert_eq!(record(&stream)["history"][0]["exitCode"], 5, "{stream:#}");
    sands.patch("dry", json!({"jobTemplateRef": {"name": "sands"}})).await;
    sands.until("dry", "another run", run_in(2, "Running")).await;

    sands.create("wet", backfilled_with("fills")).await;
    sands.until("wet", "a run", run_in(1, "Running")).await;
    ask(&sands, "wet-a", "wet", json!({})).await;
    until_request(&sands, "wet-a", "Running").await;
    until_request(&sands, "wet-a", "Completed").await;
    sands.until("wet", "a run after its backfill", run_in(3, "Running")).await;
    world
        .until(&classes(), "sands", "two running streams", |class| {
            class["status"]["streams"] == json!({"total": 2, "byPhase": {"Running": 2}})
        })
        .await;
}
