//! What an operator told, as text and as data. Pure.

use crate::output::{Cell, Paint, Table, Tone, age, count};
use jiff::Timestamp;
use mainstay::config::{Origin, Origins};
use mainstay::diff::Change;
use mainstay::plan::{Action, Reason};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// All that is known of an object.
#[derive(Debug, Serialize)]
pub(super) struct Explained {
    pub(super) object: String,
    /// Which values were given and which are defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) values: Option<Origins>,
    #[serde(flatten)]
    pub(super) report: Option<Report>,
}

/// What `/debug/parents` tells of one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    queue: String,
    #[serde(default)]
    failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<String>,
    #[serde(default)]
    pub(super) history: Vec<Sync>,
}

impl Report {
    /// Whether nothing is known to have happened.
    pub(super) fn is_silent(&self) -> bool {
        self.history.is_empty()
    }
}

/// A sync that had something to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sync {
    at: Timestamp,
    #[serde(default)]
    triggers: Vec<String>,
    plan: Plan,
    #[serde(default)]
    outcomes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    generation: i64,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    effects: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<Waiting>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Step {
    action: Action,
    object: String,
    reason: Reason,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Change>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Waiting {
    reason: String,
    message: String,
}

/// For a person.
pub(super) fn text(told: &Explained, now: Timestamp, paint: Paint) -> String {
    let mut text = format!("{}\n", paint.paint(Tone::Strong, &told.object));
    if let Some(values) = &told.values {
        let _ = write!(text, "\n{}", values_table(values, paint));
    }
    let Some(report) = &told.report else { return text };
    let _ = write!(text, "\nnow: {}", report.queue);
    if !report.triggers.is_empty() {
        let _ = write!(text, ", because {}", report.triggers.join("; "));
    }
    text.push('\n');
    if let Some(error) = &report.error {
        let _ = writeln!(text, "{}", paint.paint(Tone::Bad, &format!("failing: {error}")));
    }
    for sync in &report.history {
        write_sync(&mut text, sync, now, paint);
    }
    text
}

fn values_table(values: &Origins, paint: Paint) -> String {
    let mut table = Table::new(["VALUE", "IS", "FROM"]);
    for setting in values.iter() {
        let value = setting.value.as_ref().map_or_else(|| "(not shown)".to_owned(), ToString::to_string);
        let origin = match setting.origin {
            Origin::Given => Cell::from("given"),
            Origin::Default => Cell::new("default", Tone::Quiet),
        };
        table.row([setting.path.clone().into(), value.into(), origin]);
    }
    table.render(paint)
}

fn write_sync(text: &mut String, sync: &Sync, now: Timestamp, paint: Paint) {
    let when = format!("{:.0} ({} ago)", sync.at, age(sync.at, now));
    let _ = write!(text, "\n{} generation {}", paint.paint(Tone::Strong, &when), sync.plan.generation);
    if !sync.triggers.is_empty() {
        let _ = write!(text, ", because {}", sync.triggers.join("; "));
    }
    text.push('\n');
    for (place, step) in sync.plan.steps.iter().enumerate() {
        let outcome = sync.outcomes.get(place).map_or("", String::as_str);
        let tone = if outcome == "done" { Tone::Good } else { Tone::Note };
        let action = paint.paint(crate::plan::tone(step.action), step.action.as_str());
        let outcome = paint.paint(tone, outcome);
        let _ = writeln!(text, "  {action} {}: {} [{outcome}]", short(&step.object), step.reason.as_str());
        for change in &step.changes {
            let _ = writeln!(text, "      {change}");
        }
    }
    for (place, effect) in sync.plan.effects.iter().enumerate() {
        // They come after what is written, in a sync of their own.
        let outcome = sync.outcomes.get(sync.plan.steps.len() + place).map_or("not yet", String::as_str);
        let tone = if outcome == "done" { Tone::Good } else { Tone::Note };
        let _ = writeln!(text, "  outside: {effect} [{}]", paint.paint(tone, outcome));
    }
    for waiting in &sync.plan.waiting {
        let _ = writeln!(text, "  {}", paint.paint(Tone::Note, &format!("waiting: {}", waiting.message)));
    }
    if let Some(error) = &sync.error {
        let _ = writeln!(text, "  {}", paint.paint(Tone::Bad, &format!("failed: {error}")));
    }
    let is_silent = sync.plan.effects.is_empty() && sync.plan.waiting.is_empty();
    if sync.plan.steps.is_empty() && is_silent && sync.error.is_none() {
        let _ = writeln!(text, "  {}", count(0, "write"));
    }
}

/// An object without its kind's group and version: `ConfigMap.v1 default/shop`.
fn short(object: &str) -> String {
    match object.split_once(' ') {
        Some((kind, key)) => format!("{} {key}", kind.split('.').next().unwrap_or(kind)),
        None => object.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    fn report() -> Report {
        serde_json::from_value(json!({
            "parent": "WebApp.examples.mainstay.dev/v1 default/shop", "queue": "due in 2.0 s", "failures": 1, "errors": 1,
            "error": "Deployment.apps/v1 default/shop was refused: no",
            "history": [{
                "at": "2026-01-01T00:00:00.123Z", "triggers": ["it was created"],
                "plan": {"parent": "…", "generation": 1,
                    "steps": [
                        {"action": "Create", "object": "ConfigMap.v1 default/shop", "reason": "Missing"},
                        {"action": "Apply", "object": "Service.v1 default/shop", "reason": "Drifted",
                            "changes": [{"path": "spec.replicas", "from": 1, "to": 2}]}],
                    "waiting": [{"reason": "ChildRejected", "message": "Deployment.apps/v1 default/shop was refused: no"}]},
                "outcomes": ["done", "failed: no"], "error": "no",
            }],
        }))
        .unwrap()
    }

    #[test]
    fn a_history_is_told_in_words() {
        let told = Explained { object: "WebApp default/shop".into(), values: None, report: Some(report()) };
        let now = "2026-01-01T00:05:00Z".parse().unwrap();
        expect![[r#"
            WebApp default/shop

            now: due in 2.0 s
            failing: Deployment.apps/v1 default/shop was refused: no

            2026-01-01T00:00:00Z (5m ago) generation 1, because it was created
              create ConfigMap default/shop: it is desired and missing [done]
              apply Service default/shop: it was changed by somebody else [failed: no]
                  spec.replicas: 1 → 2
              waiting: Deployment.apps/v1 default/shop was refused: no
              failed: no
        "#]]
        .assert_eq(&text(&told, now, Paint::NONE));
    }

    #[test]
    fn values_tell_where_they_are_from() {
        let app = json!({"spec": {"image": "shop:1"}});
        let values = crate::systems::find("webapp", "test").unwrap().origins(&app);
        let told = Explained { object: "WebApp default/shop".into(), values, report: None };
        expect![[r#"
            WebApp default/shop

            VALUE                 IS         FROM
            image                 "shop:1"   given
            replicas              2          default
            port                  8080       default
            settings              {}         default
            probe.path            "/"        default
            probe.periodSeconds   10         default
        "#]]
        .assert_eq(&text(&told, Timestamp::UNIX_EPOCH, Paint::NONE));
    }
}
