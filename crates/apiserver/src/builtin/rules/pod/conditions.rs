//! A pod's conditions, with their transition times.

use super::super::json::{ensure_object, list, put, set, text};
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

/// A time as objects hold it: whole seconds, UTC.
pub(crate) fn time(now: Timestamp) -> Value {
    // Rounding to a second fails only at the far ends of the calendar.
    let mode = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor);
    now.round(mode).unwrap_or(now).to_string().into()
}

/// Whether the pod's condition of this type is true.
pub(crate) fn is_true(pod: &Value, kind: &str) -> bool {
    let status = pod.get("status").unwrap_or(&Value::Null);
    list(status, "conditions").iter().any(|c| text(c, "type") == kind && text(c, "status") == "True")
}

/// Sets a condition. Its transition time moves only when its status does.
pub(crate) fn set_condition(pod: &mut Value, mut condition: Value, now: Timestamp) {
    let Some(status) = ensure_object(pod, "status") else { return };
    if set(status, "conditions").is_none() {
        put(status, "conditions", json!([]));
    }
    let Some(Value::Array(conditions)) = status.get_mut("conditions") else { return };
    let kind = text(&condition, "type").to_owned();
    let present = conditions.iter_mut().find(|c| text(c, "type") == kind);
    let since = match &present {
        Some(before) if text(before, "status") == text(&condition, "status") => {
            before.get("lastTransitionTime").cloned()
        }
        _ => Some(time(now)),
    };
    if let Some(since) = since {
        put(&mut condition, "lastTransitionTime", since);
    }
    match present {
        Some(slot) => *slot = condition,
        None => conditions.push(condition),
    }
}
