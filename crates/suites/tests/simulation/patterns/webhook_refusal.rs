//! A webhook that does not answer is taken for one that refuses.
//!
//! A server that cannot reach a webhook refuses the write, as the webhook itself may do. An operator that gives up on the
//! one as on the other has to be told by a person that the webhook is back.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Client, ResourceExt as _};
use mainstay_testkit::simulation::{Check, Family, Part, Program, Script, check};
use serde_json::json;

use super::by_hand::{create, end_state, found_in, list, object, on_changes, paint, patch};

const GATE: &str = "https://gate.example.com/check";

/// Each ConfigMap gets a Secret, unless that is refused.
fn operator(fix: bool) -> Program {
    on_changes::<ConfigMap, Secret, _>("pairs", move |client| pass(client, fix))
}

async fn pass(client: Client, fix: bool) -> kube::Result<()> {
    let client = &client;
    let secrets = list::<Secret>(client).await?;
    for parent in list::<ConfigMap>(client).await? {
        let name = parent.name_any();
        let exists = secrets.iter().any(|secret| secret.name_any() == name);
        if exists || parent.annotations().contains_key("refused") {
            continue;
        }
        match create(client, &object::<Secret>(json!({"metadata": {"name": name}}))).await {
            // What the server calls its own failure passes.
            Err(kube::Error::Api(status)) if !fix || status.code == 403 => {
                patch(client, &parent, json!({"metadata": {"annotations": {"refused": "yes"}}})).await?;
            }
            other => other?,
        }
    }
    Ok(())
}

fn checked(fix: bool) -> Check {
    let gate = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "gate"},
        "webhooks": [{
            "name": "gate.example.com",
            "clientConfig": {"url": GATE},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    let banned = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lead"}});
    check(operator(fix))
        .given(gate)
        .webhook(GATE, |request| {
            let allowed = request["name"] != "lead";
            json!({"allowed": allowed, "status": {"code": 403, "reason": "Forbidden", "message": "no lead"}})
        })
        .script(Script::new().create(paint(&json!({}))).create(banned))
}

#[test]
fn giving_up_is_caught() {
    let report = checked(false).every_webhook_outage().report();
    let failure = found_in(&report, Part::Each(Family::WebhooksDown));
    assert_eq!(failure.faults.to_string(), "webhooks down at write 1");
    let differences = end_state(failure);
    assert!(differences.contains("secrets default/paint"), "{differences}");
    assert!(failure.story.contains("create secrets default (write 1) -> 500"), "{}", failure.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    checked(true).every_fault().seeds(10).run();
}
