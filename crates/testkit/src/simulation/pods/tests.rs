use std::sync::Arc;

use expect_test::{Expect, expect};
use mainstay::Kind;
use serde_json::json;

use super::*;
use crate::simulation::world::{Course, Setup, play};
use crate::simulation::{MAIN, Script};

/// Plays a script, and tells pods and claims by name and phase.
fn check(script: Script, expected: &Expect) {
    let setup = Setup {
        subject: pods(),
        beside: Vec::new(),
        clusters: vec![MAIN.to_owned()],
        given: Vec::new(),
        properties: Arc::new([]),
        webhooks: Arc::default(),
        quiet: Duration::from_secs(30),
        limit: Duration::from_mins(10),
        silent: true,
        patient: false,
    };
    let run = play(&setup, &Course { seed: 7, faults: "nothing".parse().unwrap(), script });
    assert!(run.remains.violations.is_empty(), "{}\n{:#?}", run.remains.trace, run.remains.violations);
    let is_told = |resource: &str| matches!(resource, "pods" | "persistentvolumeclaims");
    let told = run.end.objects().filter(|(place, _)| is_told(&place.resource));
    let lines = told
        .map(|(place, object)| format!("{} {}: {}\n", place.resource, place.name, object["status"]["phase"]));
    expected.assert_eq(&lines.collect::<Vec<_>>().concat());
}

#[test]
fn pod_waits_for_its_claim_and_its_user_is_believed() {
    let kind = Kind::of::<Pod>();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lone"},
        "spec": {
            "containers": [{"name": "main", "image": "lone:1"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "late"}}],
        },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "late"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let script = Script::new().create(pod);
    check(
        script.clone(),
        &expect![[r#"
        pods lone: "Pending"
    "#]],
    );
    let script = script.create(claim);
    check(
        script.clone(),
        &expect![[r#"
        persistentvolumeclaims late: "Bound"
        pods lone: "Running"
    "#]],
    );
    check(
        script.patch_status(&kind, "lone", json!({"status": {"phase": "Failed"}})),
        &expect![[r#"
        persistentvolumeclaims late: "Bound"
        pods lone: "Failed"
    "#]],
    );
}
