//! What every object can tell: its conditions, and the events about it.

use super::{Cell, Paint, Table, Tone, age};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

/// Events that are shown.
const EVENTS: usize = 5;

/// A row for each condition.
pub(crate) fn conditions(conditions: &[Condition], now: Timestamp, paint: Paint) -> String {
    if conditions.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"]);
    for condition in conditions {
        table.row([
            condition.type_.clone().into(),
            condition.status.clone().into(),
            age(condition.last_transition_time.0, now).into(),
            condition.reason.clone().into(),
            condition.message.clone().into(),
        ]);
    }
    table.render(paint)
}

/// When an event was seen last.
pub(crate) fn happened(event: &Value) -> Option<Timestamp> {
    let time = |pointer: &str| event.pointer(pointer)?.as_str()?.parse::<Timestamp>().ok();
    ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"]
        .into_iter()
        .find_map(time)
}

/// The first few events.
pub(crate) fn events(events: &[Value], now: Timestamp, paint: Paint) -> String {
    if events.is_empty() {
        return String::new();
    }
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let mut table = Table::new(["EVENT", "REASON", "SEEN", "MESSAGE"]);
    for event in events.iter().take(EVENTS) {
        let kind = text(event, "type");
        let tone = if kind == "Warning" { Tone::Bad } else { Tone::Plain };
        let seen = happened(event).map_or_else(String::new, |at| format!("{} ago", age(at, now)));
        table.row([
            Cell::new(kind, tone),
            text(event, "reason").into(),
            seen.into(),
            text(event, "message").into(),
        ]);
    }
    table.render(paint)
}
