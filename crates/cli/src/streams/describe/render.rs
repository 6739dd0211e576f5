//! A stream as text. Pure.

use super::super::change::undo;
use super::super::find::Found;
use super::super::list::{outcome, tone};
use super::Described;
use crate::output::{Paint, Table, Tone, age, conditions, events};
use jiff::Timestamp;
use kube::ResourceExt as _;
use mainstay_streams::kinds::{ActiveRun, BackfillRequest, PastRun, Phase, Purpose, StreamStatus};
use std::fmt::Write as _;

/// Requests that are over and are shown.
const OVER: usize = 3;

/// All of it.
pub(super) fn text(described: &Described, now: Timestamp, paint: Paint) -> String {
    let (found, status) = (&described.stream, described.stream.status());
    let title = format!("{} {} (class {})", found.class.kind.kind(), found.key(), found.class.name);
    let mut text = format!("{}\n\n", paint.paint(Tone::Strong, &title));
    for (label, line) in facts(found, &status, now, paint) {
        let _ = writeln!(text, "{}{line}", paint.paint(Tone::Quiet, &format!("{label:<12}")));
    }
    for part in [
        history(&status.history, now, paint),
        requests(&described.requests, now, paint),
        conditions(&status.conditions, now, paint),
        events(&described.events, now, paint),
    ] {
        if !part.is_empty() {
            let _ = write!(text, "\n{part}");
        }
    }
    text
}

/// What can be said in a line each.
fn facts(found: &Found, status: &StreamStatus, now: Timestamp, paint: Paint) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let phase = status.phase.map_or("(new)", Phase::as_str);
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
    let why = ready.map_or("nobody has looked at it yet", |ready| &ready.message);
    facts.push(("phase", format!("{}: {why}", paint.paint(tone(status.phase), phase))));
    if let Some(run) = &status.run {
        facts.push(("run", run_line(run, now)));
    }
    let in_a_row = match status.failures {
        0 => String::new(),
        failures => format!(", {failures} failed in a row"),
    };
    facts.push(("restarts", format!("{}{in_a_row}", status.restarts)));
    if let Some(next) = status.next_attempt.filter(|next| *next > now) {
        facts.push(("next try", format!("in {}", age(now, next))));
    }
    match found.stream().suspensions() {
        Ok(reasons) if reasons.is_empty() => {}
        Ok(reasons) => {
            let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            facts.push(("suspended", reasons.join(", ")));
        }
        Err(problem) => facts.push(("suspended", format!("cannot be told: {problem}"))),
    }
    facts.extend(references(found));
    if let Ok(Some(schedule)) = found.stream().schedule() {
        facts.push(("schedule", schedule.to_owned()));
    }
    facts
}

fn run_line(run: &ActiveRun, now: Timestamp) -> String {
    let (what, made) = match &run.purpose {
        Purpose::Stream => (String::new(), "Job"),
        Purpose::Schedule => (String::new(), "CronJob"),
        Purpose::Backfill { id, .. } => (format!(", backfill {id}, attempt {}", run.attempt), "Job"),
    };
    format!("{}{what}, {made} {}, since {}", run.number, run.job, age(run.started_at, now))
}

/// What it refers to, and where it says so.
fn references(found: &Found) -> Vec<(&'static str, String)> {
    let stream = found.stream();
    let mut templates = Vec::new();
    match stream.template_name(&Purpose::Stream) {
        Ok((name, path)) => templates.push(format!("{name} ({path})")),
        Err(problem) => templates.push(problem.to_string()),
    }
    match stream.backfill_template_name() {
        Ok(Some((name, path))) => templates.push(format!("{name} ({path})")),
        Ok(None) => {}
        Err(problem) => templates.push(problem.to_string()),
    }
    let mut references = vec![("templates", templates.join(", "))];
    match stream.secrets() {
        Ok(secrets) if secrets.is_empty() => {}
        Ok(secrets) => references.push(("secrets", secrets.join(", "))),
        Err(problem) => references.push(("secrets", problem.to_string())),
    }
    references
}

fn history(runs: &[PastRun], now: Timestamp, paint: Paint) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["RUN", "KIND", "OUTCOME", "REASON", "TOOK", "ENDED", "JOB"]);
    for run in runs {
        table.row([
            run.number.to_string().into(),
            run.kind.clone().into(),
            outcome(run),
            run.reason.clone().into(),
            age(run.started_at, run.ended_at).into(),
            format!("{} ago", age(run.ended_at, now)).into(),
            run.job.clone().into(),
        ]);
    }
    table.render(paint)
}

fn requests(requests: &[BackfillRequest], now: Timestamp, paint: Paint) -> String {
    let phase =
        |request: &BackfillRequest| request.status.as_ref().map(|status| status.phase).unwrap_or_default();
    let (over, open): (Vec<_>, Vec<_>) = requests.iter().partition(|request| phase(request).is_over());
    // Of equals, the older one comes first.
    let mut open: Vec<_> = open.into_iter().rev().collect();
    open.sort_by_key(|request| std::cmp::Reverse(request.spec.priority.unwrap_or_default()));
    let shown: Vec<_> = open.into_iter().chain(over.into_iter().take(OVER)).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["BACKFILL", "PHASE", "PLACE", "PRIORITY", "ATTEMPTS", "RANGE", "AGE"]);
    for request in shown {
        let status = request.status.clone().unwrap_or_default();
        let end = |end: &Option<String>| end.clone().unwrap_or_else(|| "…".to_owned());
        let range = request.spec.range.as_ref();
        let range =
            range.map_or_else(String::new, |range| format!("{} – {}", end(&range.from), end(&range.to)));
        table.row([
            request.name_any().into(),
            format!("{:?}", status.phase).into(),
            status.position.map_or_else(String::new, |place| place.to_string()).into(),
            request.spec.priority.map_or_else(String::new, |priority| priority.to_string()).into(),
            status.attempts.to_string().into(),
            range.into(),
            request.creation_timestamp().map_or_else(String::new, |created| age(created.0, now)).into(),
        ]);
    }
    table.render(paint)
}

/// The next useful command.
pub(super) fn next(described: &Described) -> String {
    let (found, status) = (&described.stream, described.stream.status());
    let (name, namespace) = (found.stream().name(), found.stream().namespace());
    let next = match status.phase {
        None => "mainstay check streams tells whether anybody could look at it".to_owned(),
        Some(Phase::Running | Phase::Backfilling) => match &status.run {
            Some(run) => format!("kubectl logs -n {namespace} job/{} -f", run.job),
            None => return String::new(),
        },
        Some(Phase::Scheduled) => match &status.run {
            Some(run) => {
                format!("kubectl create job -n {namespace} --from=cronjob/{} NAME runs it now", run.job)
            }
            None => return String::new(),
        },
        Some(Phase::CrashLoopDetected) => {
            format!("mainstay streams restart {name} -n {namespace}, when it is mended")
        }
        Some(Phase::Suspended) => match found.stream().suspensions().unwrap_or_default().first() {
            Some(reason) => undo(reason, found),
            None => return String::new(),
        },
        Some(Phase::Failed) => "correct what the conditions name; it goes on by itself".to_owned(),
        Some(Phase::Pending) => {
            format!("mainstay explain {} {name} -n {namespace}", found.class.kind.kind().to_lowercase())
        }
    };
    format!("next: {next}\n")
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::found;
    use super::*;
    use expect_test::expect;
    use serde_json::{Value, json};

    fn described(fields: Value) -> Described {
        let request = |name: &str, second: &str, status: Value| {
            serde_json::from_value(json!({
                "apiVersion": "streams.mainstay.dev/v1alpha1", "kind": "BackfillRequest",
                "metadata": {"name": name, "creationTimestamp": format!("2026-01-01T00:00:{second}Z")},
                "spec": {"streamClass": "feeds", "streamId": "orders", "range": {"from": "1"}}, "status": status,
            }))
            .unwrap()
        };
        let requests = vec![
            request("third", "03", json!({"phase": "Queued", "position": 2, "attempts": 0})),
            request("second", "02", json!({"phase": "Queued", "position": 1, "attempts": 0})),
            request("first", "01", json!({"phase": "Completed", "attempts": 1})),
        ];
        let events =
            vec![json!({"type": "Warning", "reason": "CrashLoop", "message": "run 4 has failed for good",
            "lastTimestamp": "2026-01-01T00:05:00Z"})];
        Described { stream: found("feeds", fields), requests, events }
    }

    #[test]
    fn all_is_on_one_screen() {
        let fields = json!({
            "metadata": {"annotations": {"mainstay.dev/suspend": "true", "downtime.mainstay.dev/move": "2026-01-01T00:00:00Z"}},
            "spec": {"sinkSecretRef": {"name": "sink"}, "backfillJobTemplateRef": {"name": "slow"}, "suspended": true},
            "status": {"phase": "Backfilling", "restarts": 3, "failures": 2, "nextAttempt": "2026-01-01T00:10:30Z",
                "run": {"number": 5, "kind": "backfill", "id": "march", "madeFrom": {}, "attempt": 2, "job": "orders-5",
                    "startedAt": "2026-01-01T00:06:00Z"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "Backfilling", "message": "backfill march runs",
                    "lastTransitionTime": "2026-01-01T00:06:00Z"}],
                "history": [{"number": 4, "kind": "Stream", "job": "orders-4", "startedAt": "2026-01-01T00:00:00Z",
                    "endedAt": "2026-01-01T00:05:00Z", "outcome": "Failed", "exitCode": 1, "reason": "BackoffLimitExceeded"}]},
        });
        let described = described(fields);
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let shown = text(&described, now, Paint::NONE) + &next(&described);
        expect![[r#"
            Feed shop/orders (class feeds)

            phase       Backfilling: backfill march runs
            run         5, backfill march, attempt 2, Job orders-5, since 4m
            restarts    3, 2 failed in a row
            next try    in 30s
            suspended   by its spec, by its annotation, by the downtime move
            templates   feed (spec.jobTemplateRef), slow (spec.backfillJobTemplateRef)
            secrets     sink

            RUN   KIND     OUTCOME      REASON                 TOOK   ENDED    JOB
            4     Stream   Failed (1)   BackoffLimitExceeded   5m     5m ago   orders-4

            BACKFILL   PHASE       PLACE   ATTEMPTS   RANGE   AGE
            second     Queued      1       0          1 – …   9m58s
            third      Queued      2       0          1 – …   9m57s
            first      Completed           1          1 – …   9m59s

            CONDITION   STATUS   SINCE   REASON        MESSAGE
            Ready       True     4m      Backfilling   backfill march runs

            EVENT     REASON      SEEN     MESSAGE
            Warning   CrashLoop   5m ago   run 4 has failed for good
            next: kubectl logs -n shop job/orders-5 -f
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn a_new_stream_says_that_nobody_has_looked() {
        let mut new = described(json!({}));
        (new.requests, new.events) = (vec![], vec![]);
        let shown = text(&new, Timestamp::UNIX_EPOCH, Paint::NONE) + &next(&new);
        expect![[r#"
            Feed shop/orders (class feeds)

            phase       (new): nobody has looked at it yet
            restarts    0
            templates   feed (spec.jobTemplateRef)
            next: mainstay check streams tells whether anybody could look at it
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn each_phase_has_a_next_step() {
        for phase in Phase::ALL {
            let run = json!({"number": 1, "kind": "stream", "madeFrom": {}, "job": "j", "startedAt": "2026-01-01T00:00:00Z"});
            let status = json!({"phase": phase, "restarts": 0, "run": run});
            let next = next(&described(json!({"spec": {"suspended": true}, "status": status})));
            assert!(next.starts_with("next: "), "{phase}: {next}");
        }
    }
}
