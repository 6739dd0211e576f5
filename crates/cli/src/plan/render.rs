//! Plans, as text and as data. Pure.

use crate::output::{Paint, Tone, count};
use mainstay::plan::{Action, Plan, Step};
use mainstay::{Key, Kind, PlanError};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::ExitCode;

/// The plan for one parent, or why there is none.
pub(super) struct Planned {
    pub(super) kind: Kind,
    pub(super) key: Key,
    pub(super) plan: Result<Plan, PlanError>,
}

/// For a person.
pub(super) fn text(planned: &[Planned], paint: Paint) -> String {
    let mut text = String::new();
    for Planned { kind, key, plan } in planned {
        let parent = paint.paint(Tone::Strong, &format!("{} {key}", kind.kind()));
        match plan {
            Ok(plan) if plan.is_settled() => {
                let _ = writeln!(text, "{parent}: nothing to do");
            }
            Ok(plan) => {
                let _ = writeln!(text, "{parent}, generation {}", plan.generation);
                plan.steps.iter().for_each(|step| write_step(&mut text, step, paint));
                for effect in &plan.effects {
                    let _ = writeln!(text, "  {} {effect}", paint.paint(Tone::Note, "outside:"));
                }
                for waiting in &plan.waiting {
                    let _ = writeln!(text, "  {}", paint.paint(Tone::Note, &format!("waiting: {waiting}")));
                }
            }
            Err(error) => {
                let _ = writeln!(text, "{parent}: {}", paint.paint(Tone::Bad, &error.to_string()));
            }
        }
    }
    text
}

fn write_step(text: &mut String, step: &Step, paint: Paint) {
    let (kind, key) = (step.object.kind.kind(), &step.object.key);
    let action = paint.paint(tone(step.action), step.action.as_str());
    let _ = writeln!(text, "  {action} {kind} {key}: {}", step.reason.as_str());
    for change in &step.changes {
        let _ = writeln!(text, "      {change}");
    }
}

pub(crate) fn tone(action: Action) -> Tone {
    match action {
        Action::Create => Tone::Good,
        Action::Delete | Action::End => Tone::Bad,
        _ => Tone::Note,
    }
}

/// For a program.
pub(super) fn data(planned: &[Planned]) -> Value {
    let one = |Planned { kind, key, plan }: &Planned| match plan {
        Ok(plan) => json!(plan),
        Err(error) => json!({"parent": format!("{kind} {key}"), "error": error.to_string()}),
    };
    planned.iter().map(one).collect()
}

/// Those for whom something would be written.
pub(super) fn names(planned: &[Planned]) -> String {
    let changed =
        planned.iter().filter(|planned| matches!(&planned.plan, Ok(plan) if !plan.writes_nothing()));
    changed
        .map(|Planned { kind, key, .. }| match kind.group() {
            "" => format!("{}/{}\n", kind.kind().to_lowercase(), key.name()),
            group => format!("{}.{group}/{}\n", kind.kind().to_lowercase(), key.name()),
        })
        .collect()
}

/// What it comes to, and what is useful next.
pub(super) fn summary(planned: &[Planned], system: &str, is_within_namespace: bool) -> String {
    if planned.is_empty() {
        let next = if is_within_namespace { "next: -A looks in all namespaces\n" } else { "" };
        return format!("there is nothing to plan for: {system} has no objects here\n{next}");
    }
    let plans = || planned.iter().filter_map(|planned| planned.plan.as_ref().ok());
    let writes: usize = plans().map(|plan| plan.steps.len()).sum();
    let effects: usize = plans().map(|plan| plan.effects.len()).sum();
    let failed = planned.len() - plans().count();
    let mut text = count(writes, "write");
    if effects > 0 {
        let _ = write!(text, " and {} outside the cluster", count(effects, "effect"));
    }
    let _ = write!(text, " for {}", count(planned.len(), "object"));
    if failed > 0 {
        let _ = write!(text, ", {failed} could not be planned");
    }
    text.push_str("; nothing was written\n");
    if writes + effects > 0 {
        let _ = writeln!(text, "next: mainstay run {system} carries it out");
    }
    text
}

/// 0 if all is as it should be, 1 if not, 2 if that could not be told of one.
pub(super) fn code(planned: &[Planned]) -> ExitCode {
    let code = |planned: &Planned| match &planned.plan {
        Ok(plan) => u8::from(!plan.is_settled()),
        Err(_) => 2,
    };
    planned.iter().map(code).max().unwrap_or_default().into()
}
