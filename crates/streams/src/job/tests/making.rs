use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{backfill, bare_template, class, run, stream, template};
use crate::job::{Made, check_request, job};
use crate::kinds::{ActiveRun, BackfillRange, BackfillRequestSpec, Purpose, StreamingJobTemplate};
use crate::wish::{Problem, Stream};

fn made(stream: &Value, template: &StreamingJobTemplate, purpose: Purpose) -> Result<Made, Problem> {
    job(&Stream::new(stream, &class()), template, &run(purpose), None)
}

#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check(value: &Value, expected: Expect) {
    expected.assert_eq(&serde_saphyr::to_string(value).unwrap());
}

/// The environment of a container.
fn env<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    let containers = object["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    let env = containers[0]["env"].as_array().unwrap();
    env.iter().find(|env| env["name"] == name)?["value"].as_str()
}

/// A template that says something about all that the operator adds to.
fn full_template() -> StreamingJobTemplate {
    template(json!({
        "metadata": {"name": "ignored", "labels": {"team": "data"}, "annotations": {"note": "of the template"}},
        "spec": {
            "backoffLimit": 3,
            "ttlSecondsAfterFinished": 1,
            "template": {
                "metadata": {"labels": {"team": "data"}},
                "spec": {
                    "initContainers": [{"name": "prepare", "image": "work"}],
                    "containers": [{
                        "name": "main",
                        "image": "work",
                        "env": [{"name": "MODE", "value": "fast"}, {"name": "STREAMCONTEXT__BACKFILL", "value": "mine"}],
                        "envFrom": [{"configMapRef": {"name": "common"}}],
                    }],
                },
            },
        },
    }))
}

#[test]
fn a_job_is_the_template_with_labels_environment_and_secrets() {
    let made = made(&stream(), &full_template(), Purpose::Stream).unwrap();
    assert!(!made.spec_in_file);
    check(
        &json!(made.children),
        expect![[r#"
            - apiVersion: batch/v1
              kind: Job
              metadata:
                annotations:
                  mainstay.dev/run: "{\"attempt\":0,\"job\":\"eu-0123456789-3\",\"kind\":\"stream\",\"madeFrom\":{\"spec\":\"a1\",\"template\":\"b2\"},\"number\":3,\"startedAt\":\"2026-01-01T00:00:00Z\"}"
                  note: of the template
                finalizers:
                - mainstay.dev/outcome
                labels:
                  mainstay.dev/stream: eu
                  mainstay.dev/stream-kind: Orders
                  mainstay.dev/stream-uid: u1
                  team: data
                name: eu-0123456789-3
                namespace: shop
              spec:
                backoffLimit: 3
                completions: 1
                parallelism: 1
                suspend: false
                template:
                  metadata:
                    labels:
                      mainstay.dev/stream: eu
                      mainstay.dev/stream-kind: Orders
                      mainstay.dev/stream-uid: u1
                      team: data
                  spec:
                    containers:
                    - env:
                      - name: STREAMCONTEXT__STREAM_ID
                        value: eu
                      - name: STREAMCONTEXT__STREAM_KIND
                        value: Orders
                      - name: STREAMCONTEXT__BACKFILL
                        value: "false"
                      - name: STREAMCONTEXT__SPEC
                        value: "{\"jobTemplateRef\":{\"name\":\"fast\"},\"price\":\"5 $$(EUR)\"}"
                      - name: MODE
                        value: fast
                      envFrom:
                      - configMapRef:
                          name: common
                      - secretRef:
                          name: eu-login
                      image: work
                      name: main
                    initContainers:
                    - env:
                      - name: STREAMCONTEXT__STREAM_ID
                        value: eu
                      - name: STREAMCONTEXT__STREAM_KIND
                        value: Orders
                      - name: STREAMCONTEXT__BACKFILL
                        value: "false"
                      - name: STREAMCONTEXT__SPEC
                        value: "{\"jobTemplateRef\":{\"name\":\"fast\"},\"price\":\"5 $$(EUR)\"}"
                      envFrom:
                      - secretRef:
                          name: eu-login
                      image: work
                      name: prepare
                    restartPolicy: Never
                ttlSecondsAfterFinished: 1
        "#]],
    );
}

#[test]
fn a_schedule_is_a_cron_job_whose_jobs_stay_until_they_are_seen() {
    let mut stream = stream();
    stream["spec"]["schedule"] = json!("0 4 * * *");
    let template = template(json!({
        "metadata": {"labels": {"team": "data"}},
        "spec": {
            "ttlSecondsAfterFinished": 1,
            "template": {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main", "image": "work"}]}},
        },
    }));
    let made = made(&stream, &template, Purpose::Schedule).unwrap();
    check(
        &json!(made.children),
        expect![[r#"
            - apiVersion: batch/v1
              kind: CronJob
              metadata:
                annotations:
                  mainstay.dev/run: "{\"attempt\":0,\"job\":\"eu-0123456789-3\",\"kind\":\"schedule\",\"madeFrom\":{\"spec\":\"a1\",\"template\":\"b2\"},\"number\":3,\"startedAt\":\"2026-01-01T00:00:00Z\"}"
                labels:
                  mainstay.dev/stream: eu
                  mainstay.dev/stream-kind: Orders
                  mainstay.dev/stream-uid: u1
                  team: data
                name: eu-0123456789-3
                namespace: shop
              spec:
                concurrencyPolicy: Forbid
                jobTemplate:
                  metadata:
                    labels:
                      mainstay.dev/stream: eu
                      mainstay.dev/stream-kind: Orders
                      mainstay.dev/stream-uid: u1
                      team: data
                  spec:
                    completions: 1
                    parallelism: 1
                    suspend: false
                    template:
                      metadata:
                        labels:
                          mainstay.dev/stream: eu
                          mainstay.dev/stream-kind: Orders
                          mainstay.dev/stream-uid: u1
                      spec:
                        containers:
                        - env:
                          - name: STREAMCONTEXT__STREAM_ID
                            value: eu
                          - name: STREAMCONTEXT__STREAM_KIND
                            value: Orders
                          - name: STREAMCONTEXT__BACKFILL
                            value: "false"
                          - name: STREAMCONTEXT__SPEC
                            value: "{\"jobTemplateRef\":{\"name\":\"fast\"},\"price\":\"5 $$(EUR)\",\"schedule\":\"0 4 * * *\"}"
                          envFrom:
                          - secretRef:
                              name: eu-login
                          image: work
                          name: main
                        restartPolicy: OnFailure
                schedule: 0 4 * * *
                suspend: false
        "#]],
    );
}

#[test]
fn a_backfill_says_so_and_passes_on_what_its_request_has() {
    let range = BackfillRange { from: Some("5".into()), to: None };
    for (range, payload, expected) in [
        (None, None, None),
        (None, Some(json!("all")), Some(r#""all""#)),
        (Some(range.clone()), None, Some(r#"{"range":{"from":"5"}}"#)),
        (
            Some(range.clone()),
            Some(json!({"tables": ["a"]})),
            Some(r#"{"range":{"from":"5"},"tables":["a"]}"#),
        ),
        (Some(range), Some(json!(["a"])), Some(r#"{"payload":["a"],"range":{"from":"5"}}"#)),
    ] {
        let request = BackfillRequestSpec {
            stream_class: "orders".into(),
            stream_id: "eu".into(),
            range,
            payload,
            retries: None,
            priority: None,
            cancelled: None,
            ttl_seconds_after_finished: None,
        };
        let (stream, class) = (stream(), class());
        let stream = Stream::new(&stream, &class);
        let made = job(&stream, &bare_template(), &run(backfill()), Some(&request)).unwrap();
        let job = &made.children[0];
        assert_eq!(job["metadata"]["labels"]["mainstay.dev/backfill"], "true");
        assert_eq!(env(job, "STREAMCONTEXT__BACKFILL"), Some("true"));
        assert_eq!(env(job, "STREAMCONTEXT__BACKFILL_ID"), Some("again"));
        assert_eq!(env(job, "STREAMCONTEXT__OVERRIDE"), expected);
    }
}

#[test]
fn dollars_in_a_spec_reach_the_program_as_they_are() {
    let made = made(&stream(), &bare_template(), Purpose::Stream).unwrap();
    let spec = env(&made.children[0], "STREAMCONTEXT__SPEC").unwrap();
    assert!(spec.contains("5 $$(EUR)"), "{spec}");
}

#[test]
fn an_enormous_spec_is_a_file() {
    let mut stream = stream();
    stream["spec"]["query"] = json!("x".repeat(120 * 1024));
    let template = template(json!({"spec": {"template": {"spec": {
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "containers": [{"name": "main", "image": "work"}],
    }}}}));
    let made = made(&stream, &template, Purpose::Stream).unwrap();
    assert!(made.spec_in_file);
    let [config_map, job] = made.children.as_slice() else { panic!("{} children", made.children.len()) };
    let text = config_map["data"]["spec.json"].as_str().unwrap();
    let spec: Value = serde_json::from_str(text).unwrap();
    assert_eq!(spec["query"], stream["spec"]["query"]);
    assert_eq!(spec["login"], Value::Null);
    check(
        &config_map["metadata"],
        expect![[r#"
            labels:
              mainstay.dev/stream: eu
              mainstay.dev/stream-kind: Orders
              mainstay.dev/stream-uid: u1
            name: eu-0123456789-3-spec
            namespace: shop
        "#]],
    );
    check(
        &job["spec"]["template"]["spec"],
        expect![[r#"
            containers:
            - env:
              - name: STREAMCONTEXT__STREAM_ID
                value: eu
              - name: STREAMCONTEXT__STREAM_KIND
                value: Orders
              - name: STREAMCONTEXT__BACKFILL
                value: "false"
              - name: STREAMCONTEXT__SPEC_FILE
                value: /var/run/mainstay/stream/spec.json
              envFrom:
              - secretRef:
                  name: eu-login
              image: work
              name: main
              volumeMounts:
              - mountPath: /var/run/mainstay/stream
                name: mainstay-stream-spec
                readOnly: true
            restartPolicy: Never
            volumes:
            - emptyDir: {}
              name: scratch
            - configMap:
                name: eu-0123456789-3-spec
              name: mainstay-stream-spec
        "#]],
    );
}

#[test]
fn what_is_too_long_for_a_file_is_a_problem() {
    let mut stream = stream();
    stream["spec"]["query"] = json!("x".repeat(1024 * 1024));
    let problem = made(&stream, &bare_template(), Purpose::Stream).unwrap_err();
    expect!["SpecTooLarge: spec: is 1048640 bytes long as JSON, must not be longer than 1048576"]
        .assert_eq(&format!("{}: {problem}", problem.reason));
}

#[test]
fn the_same_stream_template_and_run_make_the_same_job() {
    let one = made(&stream(), &bare_template(), Purpose::Stream).unwrap();
    assert_eq!(made(&stream(), &bare_template(), Purpose::Stream).unwrap(), one);
}

#[test]
fn a_template_without_containers_makes_no_job() {
    let problem = made(&stream(), &template(json!({})), Purpose::Stream).unwrap_err();
    expect!["TemplateInvalid: StreamingJobTemplate fast: spec.template.spec.template.spec.containers: is empty, must have at least one"].assert_eq(&format!("{}: {problem}", problem.reason));
}

#[test]
fn a_restart_policy_that_no_job_can_have_makes_no_job() {
    for policy in ["Always", "Sometimes", ""] {
        let containers = json!([{"name": "main", "image": "work"}]);
        let pod = json!({"restartPolicy": policy, "containers": containers});
        let problem =
            made(&stream(), &template(json!({"spec": {"template": {"spec": pod}}})), Purpose::Stream);
        let told = format!(
            "StreamingJobTemplate fast: spec.template.spec.template.spec.restartPolicy: is {policy:?}, must be Never or OnFailure"
        );
        assert_eq!(problem.unwrap_err().to_string(), told);
    }
}

fn payload(bytes: usize) -> BackfillRequestSpec {
    serde_json::from_value(json!({
        "streamClass": "orders", "streamId": "eu", "payload": "x".repeat(bytes),
    }))
    .unwrap()
}

#[test]
fn a_request_is_checked_without_a_job() {
    let (stream, class) = (stream(), class());
    let stream = Stream::new(&stream, &class);
    assert_eq!(check_request(&stream, &bare_template(), "again", &payload(100 * 1024)), Ok(()));
    let problem = check_request(&stream, &bare_template(), "again", &payload(130 * 1024)).unwrap_err();
    expect!["PayloadTooLarge: BackfillRequest again: spec.payload: is 133122 bytes long as JSON, must not be longer than 122880"]
        .assert_eq(&format!("{}: {problem}", problem.reason));
}

#[test]
fn a_job_is_no_larger_than_a_server_stores() {
    let containers: Vec<Value> =
        (0..20).map(|number| json!({"name": format!("c{number}"), "image": "work"})).collect();
    let many = template(json!({"spec": {"template": {"spec": {"containers": containers}}}}));
    let (plain, class) = (stream(), class());
    let checked = |stream: &Value, bytes| {
        check_request(&Stream::new(stream, &class), &many, "again", &payload(bytes))
            .map_err(|problem| problem.reason)
    };
    assert_eq!(checked(&plain, 10 * 1024), Ok(()));
    assert_eq!(checked(&plain, 100 * 1024), Err("JobTooLarge"));
    // What is wrong with the stream is no fault of the request.
    let mut large = plain.clone();
    large["spec"]["query"] = json!("x".repeat(100 * 1024));
    assert_eq!(checked(&large, 100 * 1024), Ok(()));
    let problem = made(&large, &many, Purpose::Stream).unwrap_err();
    assert_eq!(problem.reason, "JobTooLarge");
}

#[test]
fn pods_that_are_disrupted_do_not_count_unless_the_template_says_otherwise() {
    let policy = |run: ActiveRun, job: Value| {
        let class = class();
        let stream = stream();
        let made =
            crate::job::job(&Stream::new(&stream, &class), &template(json!({"spec": job})), &run, None);
        made.unwrap().children[0]["spec"]["podFailurePolicy"].clone()
    };
    let new = || ActiveRun { layout: 1, ..run(Purpose::Stream) };
    let pods = |policy: &str| json!({"spec": {"restartPolicy": policy, "containers": [{"name": "main"}]}});
    assert_eq!(policy(new(), json!({"template": pods("Never")}))["rules"][0]["action"], "Ignore");
    assert_eq!(policy(new(), json!({"template": pods("OnFailure")})), Value::Null);
    let own = json!({"rules": []});
    assert_eq!(policy(new(), json!({"template": pods("Never"), "podFailurePolicy": own})), own);
    // A Job that an older operator made stays as it is.
    assert_eq!(policy(run(Purpose::Stream), json!({"template": pods("Never")})), Value::Null);
}

#[test]
fn a_schedule_keeps_its_jobs_until_their_outcomes_are_recorded() {
    let (class, mut stream) = (class(), stream());
    stream["spec"]["schedule"] = json!("* * * * *");
    let limits = |layout: u32| {
        let run = ActiveRun { layout, ..run(Purpose::Schedule) };
        let made = job(&Stream::new(&stream, &class), &bare_template(), &run, None).unwrap();
        let spec = &made.children[0]["spec"];
        (spec["successfulJobsHistoryLimit"].clone(), spec["failedJobsHistoryLimit"].clone())
    };
    assert_eq!(limits(1), (json!(10), json!(10)));
    assert_eq!(limits(0), (Value::Null, Value::Null));
}
