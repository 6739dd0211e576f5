//! What streams ask for, told in a few lines each.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use k8s_openapi::ByteString;
use serde_json::json;

use super::*;
use crate::kinds::{GROUP, StreamingJobTemplateSpec};

/// Templates `fast` and `slow`, one without containers, and the Secrets of a test.
#[derive(Default)]
struct Stock {
    secrets: Vec<(&'static str, &'static str)>,
    is_cold: bool,
}

impl Materials for Stock {
    fn template(&self, name: &str) -> Result<Option<StreamingJobTemplate>, Error> {
        if self.is_cold {
            return Err(Error::new("the cache is still being filled"));
        }
        let template = match name {
            "fast" | "slow" => json!({"spec": {"template": {"spec": {"containers": [{"name": name}]}}}}),
            "bare" => json!({"spec": {"template": {"spec": {"containers": []}}}}),
            "odd" => json!({"spec": {"backoffLimit": "many"}}),
            "unnamed" => json!({"spec": {"template": {"spec": {"containers": [{"image": "work"}]}}}}),
            _ => return Ok(None),
        };
        let template = template.as_object().unwrap().clone();
        Ok(Some(StreamingJobTemplate::new(name, StreamingJobTemplateSpec { template })))
    }

    fn secret(&self, name: &str) -> Result<Option<Secret>, Error> {
        let found = self.secrets.iter().find(|(secret, _)| *secret == name);
        Ok(found.map(|(_, value)| {
            let data = [("password".to_owned(), ByteString(value.as_bytes().to_vec()))];
            Secret { data: Some(data.into()), ..Secret::default() }
        }))
    }
}

fn class() -> StreamClassConfig {
    StreamClassConfig {
        api_group_ref: "example.com".into(),
        kind_ref: "Orders".into(),
        secret_refs: vec!["login".into(), "sink.secretRef".into()],
        ..StreamClassConfig::default()
    }
}

fn stream(annotations: Value, spec: Value) -> Value {
    let mut stream = json!({"metadata": {"name": "eu", "namespace": "shop", "uid": "u1"}});
    stream["metadata"]["annotations"] = annotations;
    stream["spec"] = spec;
    stream
}

fn wish(class: &StreamClassConfig, stock: &Stock, stream: &Value, before: Option<&Hashes>) -> Wish {
    read(stream, class, stock, before).unwrap().unwrap()
}

/// A wish in a few lines; hashes as whether they are there.
fn told(wish: &Result<Wish, Problem>) -> String {
    let wish = match wish {
        Ok(wish) => wish,
        Err(problem) => return format!("{}: {problem}\n", problem.reason),
    };
    let mut text = format!("{:?}", wish.mode);
    for suspension in &wish.suspensions {
        write!(text, ", suspended {suspension}").unwrap();
    }
    if let Some(reload) = &wish.reload {
        write!(text, ", reload {reload}").unwrap();
    }
    let from = |result: &Result<Hashes, Problem>| match result {
        Ok(hashes) if hashes.secrets.is_empty() => "fine".to_owned(),
        Ok(hashes) => format!("fine, {} secrets", hashes.secrets.split('.').count()),
        Err(problem) => format!("{}: {problem}", problem.reason),
    };
    let own = if wish.has_backfill_template { "own template, " } else { "" };
    writeln!(text, "\nstream: {}\nbackfill: {own}{}", from(&wish.stream), from(&wish.backfill)).unwrap();
    text
}

#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check(annotations: Value, spec: Value, expected: Expect) {
    let wish = read(&stream(annotations, spec), &class(), &Stock::default(), None).unwrap();
    expected.assert_eq(&told(&wish));
}

#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check_spec(spec: Value, expected: Expect) {
    check(json!({}), spec, expected);
}

#[test]
fn a_template_is_named_by_an_object_or_a_string() {
    check_spec(
        json!({"jobTemplateRef": "fast"}),
        expect![[r#"
        ChangeCapture
        stream: fine
        backfill: fine
    "#]],
    );
    let whole =
        json!({"name": "fast", "namespace": "shop", "kind": "StreamingJobTemplate", "apiGroup": GROUP});
    check_spec(
        json!({"jobTemplateRef": whole, "backfillJobTemplateRef": {"name": "slow"}}),
        expect![[r#"
            ChangeCapture
            stream: fine
            backfill: own template, fine
        "#]],
    );
}

#[test]
fn a_reference_that_does_not_fit_is_told_with_its_field() {
    for (reference, expected) in [
        (json!(null), expect!["spec.jobTemplateRef: is not there, must name a StreamingJobTemplate"]),
        (
            json!(7),
            expect![
                "spec.jobTemplateRef: is a number, must be the name of a StreamingJobTemplate, or an object with it"
            ],
        ),
        (json!(""), expect!["spec.jobTemplateRef: is empty, must be the name of a StreamingJobTemplate"]),
        (
            json!({"names": "fast"}),
            expect!["spec.jobTemplateRef.name: is not there, must be the name of a StreamingJobTemplate"],
        ),
        (json!({"name": ["fast"]}), expect!["spec.jobTemplateRef.name: is a list, must be a string"]),
        (
            json!({"name": "fast", "namespace": "other"}),
            expect![[
                r#"spec.jobTemplateRef.namespace: is "other", must be "shop", the stream's own, or left out"#
            ]],
        ),
        (
            json!({"name": "fast", "kind": "ConfigMap"}),
            expect![[
                r#"spec.jobTemplateRef.kind: is "ConfigMap", must be "StreamingJobTemplate", or left out"#
            ]],
        ),
        (
            json!({"name": "fast", "apiGroup": "apps"}),
            expect![[
                r#"spec.jobTemplateRef.apiGroup: is "apps", must be "streams.mainstay.dev", or left out"#
            ]],
        ),
    ] {
        let stream = stream(json!({}), json!({"jobTemplateRef": reference}));
        let problem = wish(&class(), &Stock::default(), &stream, None).stream.unwrap_err();
        assert_eq!(problem.reason, INVALID_SPEC);
        expected.assert_eq(&problem.to_string());
    }
}

#[test]
fn a_template_that_is_missing_or_no_good_is_told() {
    check_spec(
        json!({"jobTemplateRef": "lost", "backfillJobTemplateRef": "fast"}),
        expect![[r#"
        ChangeCapture
        stream: TemplateMissing: spec.jobTemplateRef: there is no StreamingJobTemplate lost in namespace shop
        backfill: own template, fine
    "#]],
    );
    check_spec(
        json!({"jobTemplateRef": "fast", "backfillJobTemplateRef": "lost"}),
        expect![[r#"
        ChangeCapture
        stream: fine
        backfill: own template, TemplateMissing: spec.backfillJobTemplateRef: there is no StreamingJobTemplate lost in namespace shop
    "#]],
    );
    check_spec(
        json!({"jobTemplateRef": "bare", "backfillJobTemplateRef": "odd"}),
        expect![[r#"
        ChangeCapture
        stream: TemplateInvalid: StreamingJobTemplate bare: spec.template.spec.template.spec.containers: is empty, must have at least one
        backfill: own template, TemplateInvalid: StreamingJobTemplate odd: spec.template.spec.backoffLimit: invalid type: string "many", expected i32
    "#]],
    );
    check_spec(
        json!({"jobTemplateRef": "unnamed"}),
        expect![[r#"
        ChangeCapture
        stream: TemplateInvalid: StreamingJobTemplate unnamed: spec.template.spec.template.spec.containers[0].name: is not there, must be the container's name
        backfill: TemplateInvalid: StreamingJobTemplate unnamed: spec.template.spec.template.spec.containers[0].name: is not there, must be the container's name
    "#]],
    );
}

#[test]
fn everybody_who_wants_a_stream_suspended_is_told() {
    let annotations = json!({
        "mainstay.dev/suspend": "true", "mainstay.dev/reload": "4",
        "downtime.mainstay.dev/weekend": "2026-01-01T00:00:00Z", "downtime.mainstay.dev/move": "",
    });
    check(
        annotations,
        json!({"jobTemplateRef": "fast", "suspended": true}),
        expect![[r#"
        ChangeCapture, suspended by its spec, suspended by its annotation, suspended by the downtime move, suspended by the downtime weekend, reload 4
        stream: fine
        backfill: fine
    "#]],
    );
    check(
        json!({"mainstay.dev/suspend": "false"}),
        json!({"suspended": false}),
        expect![[r#"
        ChangeCapture
        stream: InvalidSpec: spec.jobTemplateRef: is not there, must name a StreamingJobTemplate
        backfill: InvalidSpec: spec.jobTemplateRef: is not there, must name a StreamingJobTemplate
    "#]],
    );
}

#[test]
fn whether_a_stream_is_suspended_has_to_be_clear() {
    check_spec(
        json!({"suspended": "yes"}),
        expect![[r#"
        InvalidSpec: spec.suspended: is a string, must be true or false
    "#]],
    );
    check(
        json!({"mainstay.dev/suspend": "yes"}),
        json!({}),
        expect![[r#"
        InvalidSpec: metadata.annotations[mainstay.dev/suspend]: is "yes", must be "true" or "false"
    "#]],
    );
    let mut class = class();
    class.paths.suspended = "spec.execution.suspended".into();
    let stream = stream(json!({}), json!({"execution": "v1"}));
    let wish = read(&stream, &class, &Stock::default(), None).unwrap();
    expect![[r#"
        InvalidSpec: spec.execution: is a string, must be an object
    "#]]
    .assert_eq(&told(&wish));
}

#[test]
fn a_stream_with_a_schedule_has_a_template_of_its_own_if_the_class_says_so() {
    let mut class = class();
    class.paths.scheduled_job_template_ref = "spec.batch.jobTemplateRef".into();
    class.paths.schedule = "spec.batch.schedule".into();
    let spec = json!({"batch": {"schedule": "@daily", "jobTemplateRef": "lost"}, "jobTemplateRef": "fast"});
    let wish = read(&stream(json!({}), spec), &class, &Stock::default(), None).unwrap();
    expect![[r#"
        Scheduled
        stream: TemplateMissing: spec.batch.jobTemplateRef: there is no StreamingJobTemplate lost in namespace shop
        backfill: TemplateMissing: spec.batch.jobTemplateRef: there is no StreamingJobTemplate lost in namespace shop
    "#]].assert_eq(&told(&wish));
}

#[test]
fn a_schedule_that_cannot_be_one_stops_the_stream_but_not_its_backfills() {
    check_spec(
        json!({"jobTemplateRef": "fast", "schedule": "0 25 * * *"}),
        expect![[r#"
            Scheduled
            stream: InvalidSpec: spec.schedule: "25" is no hour, which is from 0 to 23
            backfill: fine
        "#]],
    );
    check_spec(
        json!({"jobTemplateRef": "fast", "schedule": 5}),
        expect![[r#"
        Scheduled
        stream: InvalidSpec: spec.schedule: is a number, must be a string: a cron schedule
        backfill: fine
    "#]],
    );
    check_spec(
        json!({"jobTemplateRef": "fast", "schedule": ""}),
        expect![[r#"
        ChangeCapture
        stream: fine
        backfill: fine
    "#]],
    );
}

#[test]
fn schedules_are_told_from_other_texts() {
    for good in ["* * * * *", "*/5 0-6,12 ? JAN-mar mon", " 0  4 1 1 0 ", "@hourly", "@every 1h30m"] {
        assert_eq!(cron::check(good), Ok(()), "{good}");
    }
    for (bad, expected) in [
        ("* * * *", expect!["has 4 fields, must have 5: minute, hour, day of month, month, day of week"]),
        ("60 * * * *", expect![[r#""60" is no minute, which is from 0 to 59"#]]),
        ("* * 0 * *", expect![[r#""0" is no day of month, which is from 1 to 31"#]]),
        ("* * * 5-2 *", expect![[r#""5-2" is no month, which is from 1 to 12"#]]),
        ("* * * * 7", expect![[r#""7" is no day of week, which is from 0 to 6"#]]),
        ("*/0 * * * *", expect![[r#""*/0" is no minute, which is from 0 to 59"#]]),
        ("+5 * * * *", expect![[r#""+5" is no minute, which is from 0 to 59"#]]),
        ("@reboot", expect![[r#""@reboot" is not known"#]]),
        ("@every day", expect![[r#""day" is no period, such as 1h30m"#]]),
        ("TZ=UTC * * * * *", expect!["names a time zone, which a CronJob refuses there"]),
    ] {
        expected.assert_eq(&cron::check(bad).unwrap_err());
    }
}

#[test]
fn secrets_are_named_once_each_and_their_fields_are_not_for_the_program() {
    let spec =
        json!({"login": ["a", {"name": "b"}], "sink": {"secretRef": {"name": "a"}, "url": "x"}, "rows": 5});
    let (stream, class) = (stream(json!({}), spec), class());
    let stream = Stream::new(&stream, &class);
    assert_eq!(stream.secrets().unwrap(), ["a", "b"]);
    assert_eq!(stream.program_spec(), json!({"sink": {"url": "x"}, "rows": 5}));
}

#[test]
fn a_secret_reference_that_does_not_fit_stops_runs_and_backfills() {
    check_spec(
        json!({"jobTemplateRef": "fast", "login": ["a", 7]}),
        expect![[r#"
        ChangeCapture
        stream: InvalidSpec: spec.login[1]: is a number, must be the name of a Secret, or an object with it
        backfill: InvalidSpec: spec.login[1]: is a number, must be the name of a Secret, or an object with it
    "#]],
    );
    check_spec(
        json!({"jobTemplateRef": "fast", "sink": {"secretRef": {"key": "x"}}}),
        expect![[r#"
        ChangeCapture
        stream: InvalidSpec: spec.sink.secretRef.name: is not there, must be the name of a Secret
        backfill: InvalidSpec: spec.sink.secretRef.name: is not there, must be the name of a Secret
    "#]],
    );
    check_spec(
        json!({"jobTemplateRef": "fast", "sink": "nowhere"}),
        expect![[r#"
        ChangeCapture
        stream: InvalidSpec: spec.sink: is a string, must be an object
        backfill: InvalidSpec: spec.sink: is a string, must be an object
    "#]],
    );
}

#[test]
fn a_secret_that_changes_or_arrives_replaces_the_run_and_one_that_goes_does_not() {
    let stream =
        stream(json!({}), json!({"jobTemplateRef": "fast", "login": "a", "sink": {"secretRef": "b"}}));
    let with = |secrets: &[(&'static str, &'static str)], before: Option<&Hashes>| {
        let stock = Stock { secrets: secrets.to_vec(), ..Stock::default() };
        wish(&class(), &stock, &stream, before).stream.unwrap()
    };
    let run = with(&[("a", "1"), ("b", "2")], None);
    assert_eq!(with(&[("a", "1"), ("b", "2")], Some(&run)), run);
    assert_ne!(with(&[("a", "1"), ("b", "3")], Some(&run)), run, "b has changed");
    assert_eq!(with(&[("a", "1")], Some(&run)), run, "b is gone");
    assert_eq!(with(&[], Some(&run)), run, "both are gone");
    assert_ne!(with(&[("b", "3")], Some(&run)), run, "a is gone, b has changed");
    let waiting = with(&[("a", "1")], None);
    assert_ne!(with(&[("a", "1"), ("b", "2")], Some(&waiting)), waiting, "b has arrived");
    assert_eq!(with(&[("a", "1")], Some(&waiting)), waiting);
}

#[test]
fn what_cannot_be_told_yet_is_an_error_and_no_problem() {
    let stock = Stock { is_cold: true, ..Stock::default() };
    let stream = stream(json!({}), json!({"jobTemplateRef": "fast"}));
    assert!(read(&stream, &class(), &stock, None).is_err());
}
