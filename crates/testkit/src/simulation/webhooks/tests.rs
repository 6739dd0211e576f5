use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::PostParams;
use mainstay::{Controller, Kind, SyncRequest, SyncResponse};

use super::super::check::{Check, check};
use super::super::family::Family;
use super::super::program::{Program, operator, program};
use super::super::report::{Part, Report};
use super::super::script::Script;
use super::super::violation::Violation;
use super::*;

const URL: &str = "https://hooks.example.com/secrets";
/// `[{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}]`
const PATCH: &str = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscyIsInZhbHVlIjp7InNlZW4iOiJ5ZXMifX1d";

/// Every `ConfigMap` gets a Secret of its name.
fn pairs() -> Program {
    operator("pairs", |operator| {
        operator.namespace("default").controller(Controller::of::<ConfigMap>().owns::<Secret>().sync(
            |request: &SyncRequest| {
                SyncResponse::new().with_child(json!({
                    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name()},
                }))
            },
        ))
    })
}

/// Makes a Secret when it starts, and does not try again.
fn hasty() -> Program {
    program("hasty", |seat| async move {
        let secrets: Api<Secret> = Api::default_namespaced(seat.client());
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "paint"}});
        let _ = secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await;
        std::future::pending::<()>().await;
    })
}

fn configuration(kind: &str, failure_policy: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "hooks"},
        "webhooks": [{
            "name": "secrets.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": URL}, "failurePolicy": failure_policy,
            "rules": [{
                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"],
            }],
        }],
    })
}

fn paint() -> Script {
    Script::new().create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "paint"}}))
}

fn labelled(program: Program, failure_policy: &str) -> Check {
    let label = |_: &Value| json!({"allowed": true, "patchType": "JSONPatch", "patch": PATCH});
    check(program)
        .given(configuration("MutatingWebhookConfiguration", failure_policy))
        .webhook(URL, label)
        .script(paint())
}

/// How many worlds were without webhooks, and how many of them went wrong.
fn outages(report: &Report) -> Option<(usize, usize)> {
    let row = report.rows.iter().find(|row| row.part == Part::Each(Family::WebhooksDown))?;
    Some((row.worlds, row.failed))
}

#[test]
fn a_webhook_of_a_world_has_its_say() {
    let is_labelled = |state: &super::super::State| {
        let mut secrets = state.of(&Kind::of::<Secret>());
        if secrets.all(|secret| secret["metadata"]["labels"]["seen"] == "yes") {
            Ok(())
        } else {
            Err("one has no label".to_owned())
        }
    };
    let report = labelled(pairs(), "Fail").always("secrets have labels", is_labelled).report();
    assert!(report.failures.is_empty(), "{report}");
    // Without it the same is not so: the property can fail.
    let report = check(pairs()).script(paint()).always("secrets have labels", is_labelled).report();
    assert_eq!(report.failures[0].violations[0].name(), "property");
}

#[test]
fn the_user_is_refused_in_the_words_of_a_webhook() {
    let script = Script::new()
        .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "forbidden"}}));
    let report = check(pairs())
        .given(configuration("ValidatingWebhookConfiguration", "Fail"))
        .webhook(
            URL,
            |request| json!({"allowed": request["name"] != "forbidden", "status": {"message": "not that"}}),
        )
        .script(script)
        .report();
    let [Violation::Refused { why, .. }] = &report.failures[0].violations[..] else { panic!("{report}") };
    assert!(why.ends_with("admission webhook \"secrets.example.com\" denied the request: not that"), "{why}");
}

#[test]
fn an_operator_that_tries_again_outlives_every_outage() {
    let check = labelled(pairs(), "Fail").every_webhook_outage();
    let report = check.report();
    assert_eq!(outages(&report), Some((report.writes, 0)), "{report}");
    let trace = check.replay(0, "webhooks down at write 1").trace().to_string();
    assert!(trace.contains("webhooks down at write 1") && trace.contains("500"), "{trace}");
}

#[test]
fn who_does_not_try_again_is_found_out() {
    let report = labelled(hasty(), "Fail").every_webhook_outage().report();
    // Of its two writes the second is that of the further pass, which finds the Secret made.
    assert_eq!(outages(&report), Some((2, 1)), "{report}");
    let names: Vec<&str> = report.failures[0].violations.iter().map(Violation::name).collect();
    // Started once more, when webhooks are up again, it makes what it should have.
    assert_eq!(names, ["second pass", "end state"]);
}

#[test]
fn what_is_not_asked_while_a_webhook_is_down_and_ignored_ends_differently() {
    let report = labelled(hasty(), "Ignore").every_webhook_outage().report();
    let [Violation::EndState { differences }] = &report.failures[0].violations[..] else {
        panic!("{report}")
    };
    assert!(differences[0].contains("labels"), "{differences:?}");
}

#[test]
fn a_world_without_webhooks_has_no_outages() {
    let report = check(pairs()).script(paint()).every_webhook_outage().report();
    assert_eq!(outages(&report), None);
    assert!(report.failures.is_empty(), "{report}");
}
