//! Streams whose pods do not start, and roll-outs that end by themselves.

use serde_json::{Value, json};

use crate::suite::fixtures::{Plugin, World, classes, condition, in_each_world, templates};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[tokio::test]
async fn a_rollout_that_harms_streams_ends_by_itself() {
    in_each_world(async |world| {
        a_stream_whose_image_cannot_be_pulled_is_not_ready(&world.plugin("Pike", json!({})).await).await;
        let rollout = json!({"maxUnavailable": 2, "minReadySeconds": 3});
        let never = json!({"cannotPull": "true"});
        halts(world, "Trout", &json!({"rollout": rollout}), &never, "ImagePull").await;
        let fails = json!({"endsAfter": "1s", "exitCode": "1"});
        halts(world, "Carp", &json!({"rollout": rollout}), &fails, "CrashLoop").await;
    })
    .await;
}

/// The conditions of a stream, as text.
fn told(stream: &Value) -> String {
    stream["status"]["conditions"].to_string()
}

async fn a_stream_whose_image_cannot_be_pulled_is_not_ready(pikes: &Plugin<'_>) {
    pikes.world.template("unpullable", json!({"mainstay.dev/cannot-pull": "true"})).await;
    pikes.create("old", json!({"jobTemplateRef": {"name": "unpullable"}})).await;
    let stream = pikes.until("old", "the reason", |stream| told(stream).contains("ImagePull")).await;
    assert_eq!(stream["status"]["phase"], "Running");
    assert_eq!(condition(&stream, "Ready"), ("False".into(), "PodNotReady".into()));
    pikes.create("young", json!({})).await;
    let stream = pikes.until("young", "a pod", |stream| condition(stream, "Ready").0 == "True").await;
    assert_eq!(stream["status"]["phase"], "Running");
}

/// What the pods of the plugin's template do.
async fn change_program(plugin: &Plugin<'_>, edition: &str, simulation: &Value) {
    let mut annotations = json!({
        "mainstay.dev/ends-after": "never", "mainstay.dev/cannot-pull": null, "mainstay.dev/exit-code": null,
    });
    for (field, annotation) in
        [("endsAfter", "ends-after"), ("exitCode", "exit-code"), ("cannotPull", "cannot-pull")]
    {
        if let Some(value) = simulation.get(field) {
            annotations[format!("mainstay.dev/{annotation}")] = value.clone();
        }
    }
    let pods = json!({"template": {"metadata": {"annotations": annotations}}});
    let template = json!({"metadata": {"labels": {"edition": edition}}, "spec": pods});
    let patch = json!({"spec": {"template": template}});
    plugin.world.cluster.patch(&templates(), plugin.plural(), patch).await;
}

/// The streams whose Job is of an edition.
async fn of_edition(plugin: &Plugin<'_>, edition: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for name in NAMES {
        let jobs = plugin.all_jobs(name).await;
        if jobs.iter().any(|job| job["metadata"]["labels"]["edition"] == edition) {
            found.push(name);
        }
    }
    found
}

/// Waits until a class says that so many of its streams fail.
async fn until_halted(world: &World, class: &str, by: usize) {
    let is_halted = |class: &Value| {
        let all = class["status"]["conditions"].as_array().into_iter().flatten();
        let halted = all.into_iter().find(|known| known["type"] == "RolloutHalted").cloned();
        let message = halted.unwrap_or_default()["message"].as_str().unwrap_or_default().to_owned();
        message.split("; ").next().is_some_and(|names| names.matches('/').count() == by)
    };
    world.until(&classes(), class, &format!("a roll-out that {by} streams halt"), is_halted).await;
}

/// Streams that run get another template, with which they do not: so many as may be harmed are, also by an operator that was started since.
async fn halts(world: &mut World, kind: &str, class: &Value, broken: &Value, why: &str) {
    world.plugin(kind, class.clone()).await;
    let plural = {
        let plugin = world.uninstalled(kind);
        change_program(&plugin, "first", &json!({})).await;
        for name in NAMES {
            plugin.run(name, json!({})).await;
        }
        change_program(&plugin, "broken", broken).await;
        until_halted(world, plugin.plural(), 2).await;
        assert_eq!(of_edition(&plugin, "first").await.len(), 4);
        plugin.plural().to_owned()
    };
    world.kill().await;
    world.start();
    let plugin = world.uninstalled(kind);
    plugin.patch_class(json!({"rollout": {"maxUnavailable": 3}})).await;
    until_halted(world, &plural, 3).await;
    let untouched = of_edition(&plugin, "first").await;
    assert_eq!(untouched.len(), 3);
    for name in NAMES {
        let is_told = |stream: &Value| {
            let is_waiting = condition(stream, "Ready").1 == "RolloutWaits";
            if untouched.contains(&name) { is_waiting } else { told(stream).contains(why) }
        };
        plugin.until(name, "its part in it told", is_told).await;
    }

    change_program(&plugin, "repaired", &json!({})).await;
    for name in NAMES {
        let is_repaired = |stream: &Value| condition(stream, "Ready") == ("True".into(), "Running".into());
        plugin.until(name, "a run that is ready", is_repaired).await;
    }
    assert_eq!(of_edition(&plugin, "repaired").await, NAMES);
}
