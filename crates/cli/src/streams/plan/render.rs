//! A plan as text and as data. Pure.

use super::compare::Planned;
use crate::output::{Cell, Paint, Table, Tone, count};
use mainstay_streams::plan::Effect;
use serde_json::{Value, json};

/// What happens, in a word.
fn word(planned: &Planned) -> (&'static str, Tone) {
    match &planned.effect {
        Effect::Nothing => ("no", Tone::Quiet),
        Effect::Restarts(_) => ("yes", Tone::Note),
        Effect::Starts(_) => ("starts", Tone::Good),
        Effect::Stops(_) => ("stops", Tone::Bad),
        Effect::Breaks(_) => ("breaks", Tone::Bad),
        Effect::IsLeft => ("left", Tone::Note),
    }
}

/// Why.
fn why(planned: &Planned) -> String {
    let listed = |parts: Vec<String>| parts.join(", ");
    let runs_on = if planned.runs { "; its run goes on" } else { "" };
    let text = match &planned.effect {
        Effect::Nothing => return "it stays as it is".to_owned(),
        Effect::Restarts(causes) => listed(causes.iter().map(ToString::to_string).collect()),
        Effect::Starts(start) => start.to_string(),
        Effect::Stops(reasons) => {
            format!("suspended {}", listed(reasons.iter().map(ToString::to_string).collect()))
        }
        Effect::Breaks(problem) => format!("{problem}{runs_on}"),
        Effect::IsLeft => format!("nobody looks after it any more{runs_on}"),
    };
    if planned.because.is_empty() { text } else { format!("{text} ({})", planned.because.join("; ")) }
}

pub(super) fn table(planned: &[Planned], paint: Paint) -> String {
    if planned.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["NAMESPACE", "STREAM", "CLASS", "RESTARTS", "WHY"]);
    for one in planned {
        let (word, tone) = word(one);
        table.row([
            one.namespace.clone().into(),
            one.name.clone().into(),
            one.class.clone().into(),
            Cell::new(word, tone),
            why(one).into(),
        ]);
    }
    table.render(paint)
}

pub(super) fn data(planned: &[Planned]) -> Vec<Value> {
    let one = |one: &Planned| {
        json!({"namespace": one.namespace, "name": one.name, "class": one.class, "restarts": word(one).0,
            "changes": one.happens(), "why": why(one)})
    };
    planned.iter().map(one).collect()
}

pub(super) fn summary(planned: &[Planned]) -> String {
    if planned.is_empty() {
        return "no stream has to do with it\n".to_owned();
    }
    let happening = planned.iter().filter(|one| one.happens()).count();
    let all = count(planned.len(), "stream");
    if happening == 0 {
        return format!("nothing would happen to {all}\n");
    }
    format!(
        "something would happen to {happening} of {all}; kubectl apply has it happen, as fast as the class allows\n"
    )
}
