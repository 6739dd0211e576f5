use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use super::*;
use crate::kinds::{ActiveRun, StreamingJobTemplate};

/// Templates by name, and no Secrets.
struct Templates(BTreeMap<String, StreamingJobTemplate>);

impl Materials for Templates {
    fn template(&self, name: &str) -> Result<Option<StreamingJobTemplate>, Error> {
        Ok(self.0.get(name).cloned())
    }

    fn secret(&self, _: &str) -> Result<Option<Secret>, Error> {
        Ok(None)
    }
}

fn templates(image: &str) -> Templates {
    let template = json!({
        "metadata": {"name": "feed"},
        "spec": {"template": {"spec": {"template": {"spec": {"containers": [{"name": "feed", "image": image}]}}}}},
    });
    Templates(BTreeMap::from([("feed".to_owned(), serde_json::from_value(template).unwrap())]))
}

fn class(secret_refs: &[&str], suspended: &str) -> StreamClassConfig {
    let mut class = StreamClassConfig { kind_ref: "Feed".into(), ..StreamClassConfig::default() };
    class.secret_refs = secret_refs.iter().map(|&path| path.to_owned()).collect();
    class.paths.suspended = suspended.to_owned();
    class
}

fn stream() -> Value {
    json!({
        "metadata": {"name": "orders", "namespace": "shop", "uid": "u1"},
        "spec": {"jobTemplateRef": {"name": "feed"}, "sinkSecretRef": {"name": "sink"}, "paused": true},
    })
}

/// What is there when a test begins: the image `feed:1`, no Secrets, and `spec.suspended`.
struct World {
    class: StreamClassConfig,
    templates: Templates,
}

fn now() -> World {
    World { class: class(&["sinkSecretRef"], "spec.suspended"), templates: templates("feed:1") }
}

impl World {
    fn side(&self) -> Side<'_> {
        Side { class: &self.class, materials: &self.templates }
    }

    fn hashes(&self) -> Hashes {
        wish::read(&stream(), &self.class, &self.templates, None).unwrap().unwrap().stream.unwrap()
    }
}

fn running() -> StreamStatus {
    let run = ActiveRun {
        number: 1,
        purpose: Purpose::Stream,
        made_from: now().hashes(),
        attempt: 0,
        job: "orders-1".into(),
        started_at: jiff::Timestamp::UNIX_EPOCH,
        layout: 0,
    };
    StreamStatus { run: Some(run), ..StreamStatus::default() }
}

fn check(status: &StreamStatus, then: &World, expected: &Expect) {
    let effect = compare(&stream(), status, Some(now().side()), then.side()).unwrap();
    expected.assert_eq(&format!("{effect:?}"));
}

#[test]
fn what_is_read_the_same_changes_nothing() {
    let mut then = now();
    then.class.restart.budget = 5;
    check(&running(), &then, &expect!["Nothing"]);
}

#[test]
fn another_template_restarts_a_run() {
    check(&running(), &World { templates: templates("feed:2"), ..now() }, &expect!["Restarts([Template])"]);
}

#[test]
fn other_secret_fields_restart_a_run() {
    check(&running(), &World { class: class(&[], "spec.suspended"), ..now() }, &expect!["Restarts([Spec])"]);
}

#[test]
fn a_path_that_says_suspended_stops_a_run() {
    check(
        &running(),
        &World { class: class(&["sinkSecretRef"], "spec.paused"), ..now() },
        &expect!["Stops([Spec])"],
    );
}

#[test]
fn a_template_that_goes_breaks_a_stream() {
    check(
        &running(),
        &World { templates: Templates(BTreeMap::new()), ..now() },
        &expect![[
            r#"Breaks(Problem { reason: "TemplateMissing", path: "spec.jobTemplateRef", message: "there is no StreamingJobTemplate feed in namespace shop" })"#
        ]],
    );
}

#[test]
fn a_class_that_stops_leaves_its_streams() {
    let mut then = now();
    then.class.stopped = true;
    check(&running(), &then, &expect!["IsLeft"]);
}

#[test]
fn another_template_ends_a_crash_loop() {
    let crashed = StreamStatus { crashed: Some(now().hashes()), ..StreamStatus::default() };
    check(&crashed, &World { templates: templates("feed:2"), ..now() }, &expect!["Starts(CrashLoopOver)"]);
}

#[test]
fn a_class_for_streams_that_nobody_looks_after_starts_them() {
    let effect = compare(&stream(), &StreamStatus::default(), None, now().side()).unwrap();
    assert_eq!(effect, Effect::Starts(Start::Adopted));
    let effect = compare(&stream(), &running(), None, now().side()).unwrap();
    assert_eq!(effect, Effect::Nothing);
}

#[test]
fn differences_are_told_by_their_paths() {
    let before = json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}], "args": ["x"], "same": 1}});
    let after = json!({"spec": {"containers": [{"name": "c"}, {"name": "a", "image": "2"}], "args": ["x", "y"], "same": 1}});
    let paths = changed_paths(&before, &after);
    assert_eq!(
        paths,
        [
            "spec.args[1]",
            "spec.containers[name=a].image",
            "spec.containers[name=b]",
            "spec.containers[name=c]"
        ]
    );
}
