use std::sync::Arc;

use expect_test::{Expect, expect};

use super::*;
use crate::simulation::property::Property;
use crate::simulation::world::{Course, Run, Setup, play};
use crate::simulation::{Change, Fault, MAIN, Mishap, Point, Script, State, What};

fn run(script: Script, faults: &str) -> Run {
    run_with(7, script, faults, Arc::new([]))
}

fn run_with(seed: u64, script: Script, faults: &str, properties: Arc<[Property]>) -> Run {
    let setup = Setup {
        subject: workloads(),
        beside: Vec::new(),
        clusters: vec![MAIN.to_owned()],
        given: Vec::new(),
        properties,
        webhooks: Arc::default(),
        quiet: Duration::from_secs(30),
        limit: Duration::from_mins(10),
        silent: true,
        patient: false,
    };
    let run = play(&setup, &Course { seed, faults: faults.parse().unwrap(), script });
    assert!(run.remains.violations.is_empty(), "{}\n{:#?}", run.remains.trace, run.remains.violations);
    run
}

/// The end of a script: pods and claims by name and phase, workloads by name and status without times.
fn summary(end: &State) -> String {
    let mut lines = Vec::new();
    for (place, object) in end.objects() {
        let mut status = object["status"].clone();
        match &*place.resource {
            "pods" | "persistentvolumeclaims" => status = status["phase"].clone(),
            "deployments.apps" | "replicasets.apps" | "statefulsets.apps" | "jobs.batch" => {}
            _ => continue,
        }
        for condition in status.pointer_mut("/conditions").and_then(Value::as_array_mut).into_iter().flatten()
        {
            *condition = format!("{}={}", text(&condition["type"]), text(&condition["status"])).into();
        }
        if let Some(fields) = status.as_object_mut() {
            fields.retain(|name, _| !name.ends_with("Time"));
        }
        lines.push(format!("{} {}: {status}\n", place.resource, place.name));
    }
    lines.concat()
}

fn check(script: Script, expected: &Expect) {
    expected.assert_eq(&summary(&run(script, "nothing").end));
}

fn template(image: &str, restart: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": image}]},
    })
}

fn deployment(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template(image, "Always")},
    })
}

fn stateful_set(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {
            "replicas": 3, "serviceName": "db",
            "selector": {"matchLabels": {"app": "web"}}, "template": template(image, "Always"),
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    })
}

fn job(image: &str, more: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "task"},
        "spec": {"template": template(image, "Never")},
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        job["spec"][name] = value.clone();
    }
    job
}

/// A merge patch that gives a workload another image.
fn image(image: &str) -> Value {
    json!({"spec": {"template": template(image, "Always")}})
}

/// The names of the pods that were created and removed, in order.
fn pods_that_came_and_went(run: &Run) -> Vec<String> {
    let entries = run.remains.trace.0.iter().filter_map(|entry| match &entry.what {
        What::Changed { place, change } if &*place.resource == "pods" => match change {
            Change::Created => Some(format!("+{}", place.name)),
            Change::Removed => Some(format!("-{}", place.name)),
            _ => None,
        },
        _ => None,
    });
    entries.collect()
}

#[test]
fn deployment_becomes_available() {
    check(
        Script::new().create(deployment("web:1")),
        &expect![[r#"
        deployments.apps web: {"availableReplicas":2,"conditions":["Available=True","Progressing=True"],"observedGeneration":1,"readyReplicas":2,"replicas":2,"updatedReplicas":2}
        pods web-ac7717e272-010e5: "Running"
        pods web-ac7717e272-8dca3: "Running"
        replicasets.apps web-ac7717e272: {"availableReplicas":2,"fullyLabeledReplicas":2,"observedGeneration":1,"readyReplicas":2,"replicas":2}
    "#]],
    );
}

#[test]
fn rollout_replaces_pods_once_the_new_ones_are_ready() {
    let script =
        Script::new().create(deployment("web:1")).patch(&Kind::of::<Deployment>(), "web", image("web:2"));
    let run = run(script, "nothing");
    expect![[r#"
        deployments.apps web: {"availableReplicas":2,"conditions":["Available=True","Progressing=True"],"observedGeneration":2,"readyReplicas":2,"replicas":2,"updatedReplicas":2}
        pods web-d3f7437673-2d009: "Running"
        pods web-d3f7437673-e2902: "Running"
        replicasets.apps web-ac7717e272: {"observedGeneration":2,"replicas":0}
        replicasets.apps web-d3f7437673: {"availableReplicas":2,"fullyLabeledReplicas":2,"observedGeneration":1,"readyReplicas":2,"replicas":2}
    "#]].assert_eq(&summary(&run.end));
    expect!["+web-ac7717e272-8dca3 +web-ac7717e272-010e5 +web-d3f7437673-2d009 +web-d3f7437673-e2902 -web-ac7717e272-010e5 -web-ac7717e272-8dca3"].assert_eq(&pods_that_came_and_went(&run).join(" "));
}

#[test]
fn recreated_deployment_wants_no_new_pods_while_there_are_old_ones() {
    let mut first = deployment("web:1");
    first["spec"]["strategy"] = json!({"type": "Recreate"});
    let script = Script::new().create(first).patch(&Kind::of::<Deployment>(), "web", image("web:2"));
    let hash = |object: &Value| text(&object["metadata"]["labels"]["pod-template-hash"]).to_owned();
    let one_template = move |state: &State| {
        let pods: Vec<_> = state.of(&Kind::of::<Pod>()).map(hash).collect();
        let sets = Kind::of::<ReplicaSet>();
        let wanting = state.of(&sets).filter(|set| replicas(set) > 0).map(hash).collect::<Vec<_>>();
        let others = wanting.iter().any(|wanting| pods.iter().any(|pod| pod != wanting));
        if others { Err(format!("{wanting:?} beside pods of {pods:?}")) } else { Ok(()) }
    };
    let property = Property { name: "one template at a time".into(), holds: Arc::new(one_template) };
    // Whether the old pods go before the new set could come is up to the seed.
    for seed in 0..4 {
        let end = run_with(seed, script.clone(), "nothing", Arc::new([property.clone()])).end;
        assert!(end.of(&Kind::of::<Pod>()).all(|pod| pod["spec"]["containers"][0]["image"] == "web:2"));
    }
}

#[test]
fn broken_rollout_leaves_the_old_pods_and_is_mended_by_going_back() {
    let kind = Kind::of::<Deployment>();
    let broken = Script::new().create(deployment("web:1")).patch(&kind, "web", image("web:broken"));
    check(
        broken.clone(),
        &expect![[r#"
        deployments.apps web: {"availableReplicas":2,"conditions":["Available=True","Progressing=True"],"observedGeneration":2,"readyReplicas":2,"replicas":4,"updatedReplicas":2}
        pods web-ac7717e272-010e5: "Running"
        pods web-ac7717e272-8dca3: "Running"
        pods web-c067ca3f5f-5ecf7: "Pending"
        pods web-c067ca3f5f-d547f: "Pending"
        replicasets.apps web-ac7717e272: {"availableReplicas":2,"fullyLabeledReplicas":2,"observedGeneration":1,"readyReplicas":2,"replicas":2}
        replicasets.apps web-c067ca3f5f: {"fullyLabeledReplicas":2,"observedGeneration":1,"replicas":2}
    "#]],
    );
    check(
        broken.patch(&kind, "web", image("web:1")),
        &expect![[r#"
        deployments.apps web: {"availableReplicas":2,"conditions":["Available=True","Progressing=True"],"observedGeneration":3,"readyReplicas":2,"replicas":2,"updatedReplicas":2}
        pods web-ac7717e272-010e5: "Running"
        pods web-ac7717e272-8dca3: "Running"
        replicasets.apps web-ac7717e272: {"availableReplicas":2,"fullyLabeledReplicas":2,"observedGeneration":1,"readyReplicas":2,"replicas":2}
        replicasets.apps web-c067ca3f5f: {"observedGeneration":2,"replicas":0}
    "#]],
    );
}

#[test]
fn deployment_is_scaled_and_goes_with_its_pods() {
    let kind = Kind::of::<Deployment>();
    let script =
        Script::new().create(deployment("web:1")).patch(&kind, "web", json!({"spec": {"replicas": 1}}));
    check(
        script.clone(),
        &expect![[r#"
        deployments.apps web: {"availableReplicas":1,"conditions":["Available=True","Progressing=True"],"observedGeneration":2,"readyReplicas":1,"replicas":1,"updatedReplicas":1}
        pods web-ac7717e272-8dca3: "Running"
        replicasets.apps web-ac7717e272: {"availableReplicas":1,"fullyLabeledReplicas":1,"observedGeneration":2,"readyReplicas":1,"replicas":1}
    "#]],
    );
    check(script.delete(&kind, "web"), &expect![[""]]);
}

#[test]
fn only_as_many_former_replica_sets_are_kept_as_the_limit_says() {
    let kind = Kind::of::<Deployment>();
    let mut script = Script::new().create(deployment("web:1"));
    for tag in 2..5 {
        script = script.patch(&kind, "web", image(&format!("web:{tag}")));
    }
    let script = script.patch(&kind, "web", json!({"spec": {"revisionHistoryLimit": 1}}));
    let end = run(script, "nothing").end;
    let images: Vec<_> = end
        .of(&Kind::of::<ReplicaSet>())
        .map(|set| text(&set["spec"]["template"]["spec"]["containers"][0]["image"]))
        .collect();
    assert_eq!(images.len(), 2);
    assert!(images.contains(&"web:3") && images.contains(&"web:4"), "{images:?}");
}

#[test]
fn pod_that_failed_or_was_deleted_is_replaced() {
    let kind = Kind::of::<Pod>();
    let script = Script::new()
        .create(stateful_set("db:1"))
        .patch_status(&kind, "db-1", json!({"status": {"phase": "Failed"}}))
        .delete(&kind, "db-2");
    let run = run(script, "nothing");
    expect!["+db-0 +db-1 +db-2 -db-1 +db-1 -db-2 +db-2"].assert_eq(&pods_that_came_and_went(&run).join(" "));
    assert!(run.end.of(&kind).all(|pod| pod["status"]["phase"] == "Running"));
}

#[test]
fn stateful_set_starts_in_order_and_is_replaced_from_its_end() {
    let kind = Kind::of::<StatefulSet>();
    let script = Script::new().create(stateful_set("db:1")).patch(&kind, "db", image("db:2")).patch(
        &kind,
        "db",
        json!({"spec": {"replicas": 1}}),
    );
    let run = run(script, "nothing");
    expect!["+db-0 +db-1 +db-2 -db-2 +db-2 -db-1 +db-1 -db-0 +db-0 -db-2 -db-1"]
        .assert_eq(&pods_that_came_and_went(&run).join(" "));
    expect![[r#"
        persistentvolumeclaims data-db-0: "Bound"
        persistentvolumeclaims data-db-1: "Bound"
        persistentvolumeclaims data-db-2: "Bound"
        pods db-0: "Running"
        statefulsets.apps db: {"availableReplicas":1,"currentReplicas":1,"currentRevision":"db-138dd68f68","observedGeneration":3,"readyReplicas":1,"replicas":1,"updateRevision":"db-138dd68f68","updatedReplicas":1}
    "#]].assert_eq(&summary(&run.end));
    let claim = run.end.get(&Kind::of::<PersistentVolumeClaim>(), "default", "data-db-0").unwrap();
    assert_eq!(claim["metadata"]["ownerReferences"], Value::Null);
    assert_eq!(claim["metadata"]["labels"], json!({"app": "web"}));
}

#[test]
fn unready_pod_holds_an_ordered_set_back_even_from_being_mended() {
    let kind = Kind::of::<StatefulSet>();
    let broken = Script::new().create(stateful_set("db:broken")).patch(&kind, "db", image("db:2"));
    check(
        broken.clone(),
        &expect![[r#"
        persistentvolumeclaims data-db-0: "Bound"
        pods db-0: "Pending"
        statefulsets.apps db: {"availableReplicas":0,"currentReplicas":1,"currentRevision":"db-9f83ca358f","observedGeneration":2,"replicas":1,"updateRevision":"db-138dd68f68"}
    "#]],
    );
    check(
        broken.delete(&Kind::of::<Pod>(), "db-0"),
        &expect![[r#"
        persistentvolumeclaims data-db-0: "Bound"
        persistentvolumeclaims data-db-1: "Bound"
        persistentvolumeclaims data-db-2: "Bound"
        pods db-0: "Running"
        pods db-1: "Running"
        pods db-2: "Running"
        statefulsets.apps db: {"availableReplicas":3,"currentReplicas":3,"currentRevision":"db-138dd68f68","observedGeneration":2,"readyReplicas":3,"replicas":3,"updateRevision":"db-138dd68f68","updatedReplicas":3}
    "#]],
    );
}

#[test]
fn claims_outlive_their_set_and_are_taken_up_again() {
    let script = Script::new().create(stateful_set("db:1")).delete(&Kind::of::<StatefulSet>(), "db");
    check(
        script.clone(),
        &expect![[r#"
        persistentvolumeclaims data-db-0: "Bound"
        persistentvolumeclaims data-db-1: "Bound"
        persistentvolumeclaims data-db-2: "Bound"
    "#]],
    );
    let claims = |end: &State| {
        let claims = end.of(&Kind::of::<PersistentVolumeClaim>());
        claims.map(|claim| claim["metadata"]["uid"].clone()).collect::<Vec<_>>()
    };
    let before = claims(&run(script.clone(), "nothing").end);
    assert_eq!(claims(&run(script.create(stateful_set("db:1")), "nothing").end), before);
}

#[test]
fn job_completes_with_so_many_at_once() {
    let script = Script::new().create(job("task:1", &json!({"completions": 3, "parallelism": 2})));
    let at_most_two = |state: &State| {
        let active = state.of(&Kind::of::<Pod>()).filter(|pod| pod["status"]["phase"] != "Succeeded").count();
        if active <= 2 { Ok(()) } else { Err(format!("{active} pods are active")) }
    };
    let property = Property { name: "at most two pods at once".into(), holds: Arc::new(at_most_two) };
    let run = run_with(7, script, "nothing", Arc::new([property]));
    expect![[r#"
        jobs.batch task: {"conditions":["SuccessCriteriaMet=True","Complete=True"],"succeeded":3}
        pods task-0: "Succeeded"
        pods task-1: "Succeeded"
        pods task-2: "Succeeded"
    "#]]
    .assert_eq(&summary(&run.end));
}

#[test]
fn job_fails_when_too_many_pods_have() {
    check(
        Script::new().create(job("task:failing", &json!({"backoffLimit": 1}))),
        &expect![[r#"
        jobs.batch task: {"conditions":["FailureTarget=True","Failed=True"],"failed":2}
        pods task-0: "Failed"
        pods task-1: "Failed"
    "#]],
    );
}

#[test]
fn suspended_job_has_no_pods_until_it_is_resumed() {
    let kind = Kind::of::<Job>();
    let script = Script::new()
        .create(job("task:1", &json!({})))
        .at_once()
        .wait(Duration::from_secs(3))
        .at_once()
        .patch(&kind, "task", json!({"spec": {"suspend": true}}));
    check(
        script.clone(),
        &expect![[r#"
        jobs.batch task: {"conditions":["Suspended=True"]}
    "#]],
    );
    check(
        script.patch(&kind, "task", json!({"spec": {"suspend": false}})),
        &expect![[r#"
        jobs.batch task: {"conditions":["Suspended=False","SuccessCriteriaMet=True","Complete=True"],"succeeded":1}
        pods task-0: "Succeeded"
    "#]],
    );
}

#[test]
fn indexed_job_is_left_alone() {
    let job = job("task:1", &json!({"completionMode": "Indexed", "completions": 1}));
    check(
        Script::new().create(job),
        &expect![[r#"
        jobs.batch task: {}
    "#]],
    );
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

/// Everything at once, so that every write of every controller is among those that a crash follows.
fn everything() -> Script {
    Script::new()
        .create(deployment("web:1"))
        .create(stateful_set("db:1"))
        .create(job("task:1", &json!({"completions": 2, "parallelism": 1})))
        .patch(&Kind::of::<Deployment>(), "web", image("web:2"))
        .patch(&Kind::of::<StatefulSet>(), "db", image("db:2"))
}

#[test]
fn crash_at_a_write_leads_to_the_same_end() {
    let calm = run(everything(), "nothing");
    let points = calm.remains.passed.iter().map(|passed| passed.point);
    let writes: Vec<Point> = points.filter(|point| matches!(point, Point::Write(_))).collect();
    assert!(writes.len() > 60, "{}", writes.len());
    // A world takes its time in a debug build, so the writes take turns: every seventh, before it and after it by turns.
    for (index, point) in writes.into_iter().enumerate().skip(3).step_by(7) {
        let mishap = if index % 2 == 0 { Mishap::CrashBefore } else { Mishap::CrashAfter };
        let fault = Fault { mishap, point }.to_string();
        assert_eq!(summary(&run(everything(), &fault).end), summary(&calm.end), "{fault}");
    }
}

#[test]
fn same_script_gives_the_same_trace() {
    let trace = |run: Run| run.remains.trace.to_string();
    assert_eq!(trace(run(everything(), "nothing")), trace(run(everything(), "nothing")));
}

#[test]
fn addresses_follow_from_names() {
    let end = run(Script::new().create(deployment("web:1")), "nothing").end;
    let again = run(Script::new().create(deployment("web:1")), "crash after write 3").end;
    let addresses = |end: &State| {
        end.of(&Kind::of::<Pod>()).map(|pod| text(&pod["status"]["podIP"]).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(addresses(&end), addresses(&again));
    assert_ne!(addresses(&end)[0], addresses(&end)[1]);
}
