//! What is wrong is told where it is, is mended by mending it, and holds up nobody else.

use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::Kind;
use mainstay_testkit::eventually;
use serde_json::{Value, json};

use crate::suite::fixtures::{Plugin, condition, env, in_each_world, template, templates};

#[tokio::test]
async fn what_is_wrong_is_told() {
    in_each_world(async |world| {
        let seeds = world.plugin("Seed", json!({"secretRefs": ["sinkSecretRef"]})).await;
        tokio::join!(
            a_template_may_come_later(&seeds),
            a_template_without_containers_waits_for_some(&seeds),
            a_reference_of_another_type_is_no_reference(&seeds),
            a_schedule_that_is_none_is_told(&seeds),
            a_running_stream_survives_a_mistake(&seeds),
            a_running_stream_survives_a_template_that_makes_no_job(&seeds),
            a_job_that_the_server_refuses_is_told_in_its_words(&seeds),
            an_enormous_spec_is_in_a_file(&seeds),
        );
    })
    .await;
}

/// Waits until a stream says what is wrong with it, in a condition and an event.
async fn fails(seeds: &Plugin<'_>, name: &str, reason: &str, told: &str) {
    let stream = seeds.until_phase(name, "Failed").await;
    assert_eq!(condition(&stream, "ConfigurationValid"), ("False".into(), reason.into()));
    let conditions = stream["status"]["conditions"].to_string();
    assert!(conditions.contains(told), "{conditions}");
    assert!(seeds.all_jobs(name).await.is_empty());
    eventually(&format!("the event {reason} about {name}"), async || {
        seeds.world.events(name).await.iter().any(|known| known == reason).then_some(())
    })
    .await;
    // Others are started meanwhile.
    seeds.run(&format!("beside-{name}"), json!({})).await;
}

async fn runs(seeds: &Plugin<'_>, name: &str) {
    let stream = seeds.until_phase(name, "Running").await;
    assert_eq!(condition(&stream, "ConfigurationValid"), (String::new(), String::new()));
}

async fn a_template_may_come_later(seeds: &Plugin<'_>) {
    seeds.create("oak", json!({"jobTemplateRef": {"name": "later"}})).await;
    fails(seeds, "oak", "TemplateMissing", "spec.jobTemplateRef: there is no StreamingJobTemplate later")
        .await;
    seeds.world.template("later", json!({"mainstay.dev/ends-after": "never"})).await;
    runs(seeds, "oak").await;
}

async fn a_template_without_containers_waits_for_some(seeds: &Plugin<'_>) {
    let whole = template("empty", &json!({"mainstay.dev/ends-after": "never"}));
    let mut empty = whole.clone();
    empty["spec"]["template"]["spec"]["template"]["spec"]["containers"] = json!([]);
    seeds.world.cluster.create(empty).await;
    seeds.create("elm", json!({"jobTemplateRef": {"name": "empty"}})).await;
    let told = "StreamingJobTemplate empty: spec.template.spec.template.spec.containers: is empty";
    fails(seeds, "elm", "TemplateInvalid", told).await;
    seeds.world.cluster.patch(&templates(), "empty", json!({"spec": whole["spec"]})).await;
    runs(seeds, "elm").await;
}

async fn a_reference_of_another_type_is_no_reference(seeds: &Plugin<'_>) {
    seeds.create("ash", json!({"jobTemplateRef": 7})).await;
    fails(seeds, "ash", "InvalidSpec", "spec.jobTemplateRef: is a number").await;
    seeds.patch("ash", json!({"jobTemplateRef": "seeds"})).await;
    runs(seeds, "ash").await;
}

async fn a_schedule_that_is_none_is_told(seeds: &Plugin<'_>) {
    seeds.create("fir", json!({"schedule": "at noon"})).await;
    fails(seeds, "fir", "InvalidSpec", "spec.schedule: has 2 fields").await;
    seeds.patch("fir", json!({"schedule": null})).await;
    runs(seeds, "fir").await;
}

async fn a_running_stream_survives_a_mistake(seeds: &Plugin<'_>) {
    let job = seeds.run("yew", json!({})).await;
    seeds.patch("yew", json!({"jobTemplateRef": {"name": "nowhere"}})).await;
    let is_told = |stream: &Value| condition(stream, "ConfigurationValid").1 == "TemplateMissing";
    let stream = seeds.until("yew", "its mistake told", is_told).await;
    assert_eq!(stream["status"]["phase"], "Running");
    assert_eq!(seeds.job("yew").await["metadata"]["uid"], job["metadata"]["uid"]);
    seeds.patch("yew", json!({"jobTemplateRef": {"name": "seeds"}})).await;
    runs(seeds, "yew").await;
    assert_eq!(seeds.job("yew").await["metadata"]["uid"], job["metadata"]["uid"]);
}

fn pod_spec(fields: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"template": {"spec": fields}}}}})
}

async fn a_running_stream_survives_a_template_that_makes_no_job(seeds: &Plugin<'_>) {
    seeds.world.template("elastic", json!({"mainstay.dev/ends-after": "never"})).await;
    let job = seeds.run("willow", json!({"jobTemplateRef": {"name": "elastic"}})).await;
    let always = pod_spec(&json!({"restartPolicy": "Always"}));
    seeds.world.cluster.patch(&templates(), "elastic", always).await;
    let is_told = |stream: &Value| condition(stream, "ConfigurationValid").1 == "TemplateInvalid";
    let stream = seeds.until("willow", "its mistake told", is_told).await;
    assert_eq!(stream["status"]["phase"], "Running");
    assert_eq!(seeds.job("willow").await["metadata"]["uid"], job["metadata"]["uid"]);
}

/// Nothing is wrong with the template as far as the operator can tell.
async fn a_job_that_the_server_refuses_is_told_in_its_words(seeds: &Plugin<'_>) {
    let container = |name: &str| json!({"containers": [{"name": name, "image": "example.com/stream:1"}]});
    seeds.world.template("odd", json!({"mainstay.dev/ends-after": "never"})).await;
    seeds.world.cluster.patch(&templates(), "odd", pod_spec(&container("A_B"))).await;
    seeds.create("thorn", json!({"jobTemplateRef": {"name": "odd"}})).await;
    let words = "spec.template.spec.containers[0].name: Invalid value: \\\"A_B\\\"";
    let is_told = |stream: &Value| stream["status"]["conditions"].to_string().contains(words);
    let stream = seeds.until("thorn", "the refusal", is_told).await;
    assert_eq!(stream["status"]["phase"], "Pending");
    assert_eq!(condition(&stream, "Ready").0, "False");
    assert!(seeds.all_jobs("thorn").await.is_empty());
    seeds.world.cluster.patch(&templates(), "odd", pod_spec(&container("a-b"))).await;
    runs(seeds, "thorn").await;
}

async fn an_enormous_spec_is_in_a_file(seeds: &Plugin<'_>) {
    let long = "x".repeat(150 * 1024);
    seeds.create("sequoia", json!({"source": long})).await;
    let stream = seeds
        .until("sequoia", "its spec in a file", |stream| condition(stream, "SpecInFile").0 == "True")
        .await;
    assert_eq!(condition(&stream, "SpecInFile").1, "SpecTooLargeForEnvironment");
    let stream_uid = &stream["metadata"]["uid"];
    seeds.until_phase("sequoia", "Running").await;
    let job = seeds.job("sequoia").await;
    assert_eq!(env(&job, "STREAMCONTEXT__SPEC"), None);
    let file = env(&job, "STREAMCONTEXT__SPEC_FILE").unwrap();
    let pod = &job["spec"]["template"]["spec"];
    let mount = &pod["containers"][0]["volumeMounts"][0];
    assert_eq!(file, format!("{}/spec.json", mount["mountPath"].as_str().unwrap()));
    let volume = pod["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == mount["name"]);
    let map = volume.unwrap()["configMap"]["name"].as_str().unwrap();
    let map = seeds.world.cluster.find(&Kind::of::<ConfigMap>(), map).await.unwrap();
    assert!(map["data"]["spec.json"].as_str().unwrap().contains(&long));
    assert_eq!(map["metadata"]["ownerReferences"][0]["uid"], *stream_uid);
    eventually("an event that says so", async || {
        seeds.world.events("sequoia").await.contains(&"SpecInFile".to_owned()).then_some(())
    })
    .await;

    seeds.patch("sequoia", json!({"source": "short"})).await;
    let stream = seeds.until_run("sequoia", 2, "Running").await;
    assert_eq!(condition(&stream, "SpecInFile"), (String::new(), String::new()));
    seeds.world.until_gone(&Kind::of::<ConfigMap>(), map["metadata"]["name"].as_str().unwrap()).await;
}
