//! Classes that come before their kind, change, go, and come back; and those that are wrong.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use mainstay::Kind;
use mainstay_testkit::cluster::ClusterKind;
use serde_json::json;

use crate::suite::fixtures::{Plugin, World, classes, condition, env, in_each_world};

#[tokio::test]
async fn classes_come_and_go() {
    in_each_world(async |world| {
        tokio::join!(
            a_class_waits_for_its_kind(world),
            an_edited_class_is_applied_at_once(world),
            a_deleted_class_leaves_jobs_that_it_finds_again(world),
            a_kind_has_one_class(world),
            paths_have_to_fit_the_kind(world),
            a_stopped_class_leaves_its_streams_alone(world),
        );
    })
    .await;
}

fn says(finding: &str, status: &str, reason: &str) -> impl Fn(&serde_json::Value) -> bool {
    let expected = (status.to_owned(), reason.to_owned());
    move |class| condition(class, finding) == expected
}

/// Long enough for whoever would do something to do it.
async fn nothing_happens() {
    tokio::time::sleep(Duration::from_secs(2)).await;
}

async fn remove_kind(plugin: &Plugin<'_>) {
    let name = format!("{}.example.com", plugin.plural());
    let kind = Kind::of::<CustomResourceDefinition>();
    plugin.world.cluster.delete(&kind, &name).await;
    plugin.world.until_gone(&kind, &name).await;
}

async fn a_class_waits_for_its_kind(world: &World) {
    let kites = world.uninstalled("Kite");
    world.template("kites", json!({"mainstay.dev/ends-after": "never"})).await;
    world.cluster.create(kites.class(&json!({}))).await;
    world.until_class("kites", "Pending").await;
    let class = world.until(&classes(), "kites", "no kind", says("Defined", "False", "NotDefined")).await;
    assert_eq!(condition(&class, "Ready"), ("False".into(), "NotDefined".into()));

    world.cluster.define(kites.definition()).await;
    world.until_class("kites", "Ready").await;
    kites.run("red", json!({})).await;

    // With the definition go its objects, and with these their Jobs, which nobody records any more.
    remove_kind(&kites).await;
    world.until(&classes(), "kites", "no kind", says("Defined", "False", "NotDefined")).await;
    world.until_class("kites", "Pending").await;
    // kube-controller-manager takes half a minute to hear of a new kind, and longer to miss it.
    if world.cluster.kind() == ClusterKind::Embedded {
        kites.until_no_job("red").await;
    }

    world.cluster.define(kites.definition()).await;
    world.until_class("kites", "Ready").await;
    kites.run("blue", json!({})).await;
}

async fn an_edited_class_is_applied_at_once(world: &World) {
    let larks = world.plugin("Lark", json!({})).await;
    let job = larks.run("early", json!({"sinkSecretRef": {"name": "nest"}})).await;
    assert!(env(&job, "STREAMCONTEXT__SPEC").unwrap().contains("sinkSecretRef"));
    larks.patch_class(json!({"secretRefs": ["sinkSecretRef"]})).await;
    let job = larks.until_other_job("early", &job).await;
    assert!(!env(&job, "STREAMCONTEXT__SPEC").unwrap().contains("sinkSecretRef"));
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["envFrom"], json!([{"secretRef": {"name": "nest"}}]));

    world.template("hasty", json!({"mainstay.dev/ends-after": "1s", "mainstay.dev/exit-code": "1"})).await;
    larks.create("late", json!({"jobTemplateRef": {"name": "hasty"}})).await;
    larks.until_run("late", 1, "CrashLoopDetected").await;
    larks.patch_class(json!({"restart": {"budget": 1, "backoffSeconds": 1}})).await;
    larks.annotate("late", "mainstay.dev/restart", json!("1")).await;
    larks.until_run("late", 3, "CrashLoopDetected").await;
    assert_eq!(larks.job("early").await["metadata"]["uid"], job["metadata"]["uid"]);
}

async fn a_deleted_class_leaves_jobs_that_it_finds_again(world: &World) {
    let moles = world.plugin("Mole", json!({})).await;
    let (kept, lost) = tokio::join!(moles.run("kept", json!({})), moles.run("lost", json!({})));
    let changed = moles.run("changed", json!({})).await;
    world.cluster.delete(&classes(), "moles").await;
    world.until_gone(&classes(), "moles").await;
    nothing_happens().await;

    // What is deleted meanwhile goes, and what is changed meanwhile runs on.
    world.delete_job(&lost).await;
    moles.until_no_job("lost").await;
    moles.patch("changed", json!({"source": "b"})).await;
    nothing_happens().await;
    assert!(moles.jobs("lost").await.is_empty());
    for (name, job) in [("kept", &kept), ("changed", &changed)] {
        assert_eq!(moles.job(name).await["metadata"]["uid"], job["metadata"]["uid"]);
    }

    world.cluster.create(moles.class(&json!({}))).await;
    world
        .until(&classes(), "moles", "its streams again", |class| {
            class["status"]["streams"] == json!({"total": 3, "byPhase": {"Running": 3}})
        })
        .await;
    moles.until_run("lost", 2, "Running").await;
    moles.until_run("changed", 2, "Running").await;
    let stream = moles.until_run("kept", 1, "Running").await;
    assert_eq!(stream["status"]["runsStarted"], 1);
    assert_eq!(moles.job("kept").await["metadata"]["uid"], kept["metadata"]["uid"]);
}

async fn a_kind_has_one_class(world: &World) {
    let newts = world.plugin("Newt", json!({})).await;
    let job = newts.run("one", json!({})).await;
    let mut second = newts.class(&json!({"restart": {"budget": 3}}));
    second["metadata"]["name"] = json!("newts-too");
    world.cluster.create(second).await;
    let class = world.until_class("newts-too", "Failed").await;
    assert_eq!(condition(&class, "Unclaimed"), ("False".into(), "ClaimedByAnother".into()));
    assert_eq!(condition(&class, "Ready"), ("False".into(), "ClaimedByAnother".into()));
    world.until_class("newts", "Ready").await;

    world.cluster.delete(&classes(), "newts").await;
    world.until_class("newts-too", "Ready").await;
    newts.create("two", json!({})).await;
    newts.until_phase("two", "Running").await;
    assert_eq!(newts.job("one").await["metadata"]["uid"], job["metadata"]["uid"]);
}

async fn paths_have_to_fit_the_kind(world: &World) {
    let owls = world.uninstalled("Owl");
    world.template("owls", json!({"mainstay.dev/ends-after": "never"})).await;
    world.cluster.define(owls.definition()).await;
    world.cluster.create(owls.class(&json!({"paths": {"suspended": "spec.source"}}))).await;
    let class = world.until_class("owls", "Failed").await;
    assert_eq!(condition(&class, "PathsFit"), ("False".into(), "PathsDoNotFit".into()));
    let told = class["status"]["conditions"].to_string();
    assert!(told.contains("spec.paths.suspended: leads to spec.source, which is a string"), "{told}");

    owls.patch_class(json!({"paths": {"suspended": "spec.execution.paused"}})).await;
    world.until_class("owls", "Ready").await;
    owls.create("grey", json!({"execution": {"paused": true}})).await;
    owls.until_phase("grey", "Suspended").await;
    owls.patch("grey", json!({"execution": {"paused": false}})).await;
    owls.until_phase("grey", "Running").await;
}

async fn a_stopped_class_leaves_its_streams_alone(world: &World) {
    let pikes = world.plugin("Pike", json!({})).await;
    let job = pikes.run("long", json!({})).await;
    pikes.patch_class(json!({"stopped": true})).await;
    let class = world.until_class("pikes", "Stopped").await;
    assert_eq!(condition(&class, "Watched"), ("False".into(), "Stopped".into()));
    pikes.patch("long", json!({"source": "b"})).await;
    pikes.create("short", json!({})).await;
    nothing_happens().await;
    assert_eq!(pikes.job("long").await["metadata"]["uid"], job["metadata"]["uid"]);
    assert!(pikes.jobs("short").await.is_empty());
    pikes.patch_class(json!({"stopped": false})).await;
    pikes.until_run("long", 2, "Running").await;
    pikes.until_run("short", 1, "Running").await;
}
