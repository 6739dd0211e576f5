//! Whether a kind's definition lets the operator keep what it knows in the status of its objects.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::kept::kept;
use super::schema::{Found, is_open, step};
use crate::kinds::{
    ActiveRun, BackfillOutcome, BackfillPhase, BegunBackfill, Hashes, Outcome, PastRun, Phase, Purpose,
    Rollout, StreamStatus,
};
use crate::wish::Problem;

/// The definition of the kind drops or refuses some of what the operator writes.
pub const STATUS_NOT_KEPT: &str = "StatusNotKept";

/// Finds what the server would drop of a stream's status, or refuse, for the `openAPIV3Schema` of the kind's version. Of an object that is
/// dropped whole, only the object is named.
pub fn status_problems(schema: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    let whole = json!({"status": everything()});
    compare(&whole["status"], &schema["properties"]["status"], "status", &mut problems);
    problems.sort_by(|one, other| one.path.cmp(&other.path));
    problems.dedup_by(|one, other| one.path == other.path);
    problems
}

fn compare(value: &Value, schema: &Value, path: &str, problems: &mut Vec<Problem>) {
    let mut tell = |path: &str, message: String| {
        problems.push(Problem { reason: STATUS_NOT_KEPT, path: path.to_owned(), message });
    };
    if schema.is_null() {
        return tell(path, "is not in the kind's schema, so the server drops it".to_owned());
    }
    if is_open(schema) {
        return;
    }
    let kinds = match value {
        Value::Object(_) => ["object", ""],
        Value::Array(_) => ["array", ""],
        Value::Bool(_) => ["boolean", ""],
        Value::Number(_) => ["integer", "number"],
        Value::String(_) | Value::Null => ["string", ""],
    };
    if let Some(kind) = schema["type"].as_str().filter(|kind| !kinds.contains(kind)) {
        return tell(path, format!("has the type {kind} in the kind's schema, must have {}", kinds[0]));
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                match step(schema, name) {
                    Found::Field(schema) => compare(value, schema, &path, problems),
                    Found::Anything => {}
                    Found::Nowhere { .. } => compare(value, &Value::Null, &path, problems),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                compare(item, &schema["items"], &format!("{path}[]"), problems);
            }
        }
        _ if path == "status.phase" => {
            let allowed = schema["enum"].as_array();
            let refused = |phase: &&Phase| {
                allowed.is_some_and(|allowed| !allowed.iter().any(|one| one == phase.as_str()))
            };
            let refused: Vec<&str> = Phase::ALL.iter().filter(refused).map(|phase| phase.as_str()).collect();
            if !refused.is_empty() {
                tell(path, format!("may not be {} by the kind's schema", refused.join(", ")));
            }
        }
        _ => {}
    }
}

/// Whether the schema of a kind's status takes nothing of what the operator writes, whatever the phase.
pub fn keeps_nothing(schema: &Value) -> bool {
    Phase::ALL.iter().all(|phase| {
        let mut status = json!(StreamStatus { phase: Some(*phase), ..everything() });
        status["conditions"][0]["status"] = json!("True");
        let kept = kept(&status, schema);
        kept.is_none_or(|kept| kept.as_object().is_some_and(serde_json::Map::is_empty))
    })
}

/// A status in which nothing is left out.
fn everything() -> StreamStatus {
    let at = Timestamp::UNIX_EPOCH;
    let text = || "text".to_owned();
    let hashes = || Hashes { spec: text(), template: text(), secrets: text(), restart: Some(text()) };
    let purpose = Purpose::Backfill { request: Some(text()), id: text(), reload: Some(text()) };
    StreamStatus {
        phase: Some(Phase::Pending),
        configuration_hash: Some(text()),
        observed_generation: Some(1),
        runs_started: 1,
        run: Some(ActiveRun {
            number: 1,
            purpose,
            made_from: hashes(),
            attempt: 1,
            job: text(),
            started_at: at,
            layout: 1,
        }),
        begun: Some(BegunBackfill { request: text(), attempts: 1, failed: 1, started_at: at }),
        restarts: 1,
        failures: 1,
        next_attempt: Some(at),
        crashed: Some(hashes()),
        rollout: Some(Rollout { stopped: 1, ready_since: Some(at) }),
        initialised: true,
        reloaded: Some(text()),
        backfill_asked: true,
        backfills: vec![BackfillOutcome {
            request: text(),
            phase: BackfillPhase::Completed,
            attempts: 1,
            started_at: Some(at),
            ended_at: at,
            message: text(),
            reason: Some(text()),
        }],
        history: vec![PastRun {
            number: 1,
            kind: text(),
            job: text(),
            started_at: at,
            ended_at: at,
            outcome: Outcome::Completed,
            exit_code: Some(1),
            reason: text(),
        }],
        conditions: vec![Condition {
            last_transition_time: Time(at),
            message: text(),
            observed_generation: Some(1),
            reason: text(),
            status: text(),
            type_: text(),
        }],
    }
}
