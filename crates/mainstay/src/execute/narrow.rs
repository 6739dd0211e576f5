//! A status that only gains or loses the framework's condition. What others own in it stays theirs.

use serde_json::{Value, json};

use crate::diff::{Ownership, Rules};

/// The part of a desired status to apply: what `manager` applied before, which would go if it were not named, and the condition of this
/// type. `live` is the object with its `managedFields`. Null if nothing is left.
pub(super) fn narrow(desired: &Value, live: &Value, manager: &str, rules: &Rules, type_: &str) -> Value {
    let owned = Ownership::of(live, manager, "status");
    let mut status = owned.applied_part(&json!({"status": desired}), rules)["status"].take();
    let Some(conditions) = desired["conditions"].as_array() else { return status };
    let is_it = |condition: &&Value| condition["type"] == type_;
    let Some(condition) = conditions.iter().find(is_it) else { return status };
    if status.is_null() {
        status = json!({});
    }
    if rules.shares_conditions(conditions) {
        let listed = &mut status["conditions"];
        match listed.as_array_mut() {
            Some(listed) if listed.iter().any(|listed| is_it(&listed)) => {}
            Some(listed) => listed.push(condition.clone()),
            None => *listed = json!([condition]),
        }
    } else {
        // A list that has one owner is named as a whole.
        status["conditions"] = desired["conditions"].clone();
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(fields: &Value) -> Value {
        json!({"metadata": {"managedFields": [
            {"manager": "ours", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": fields}},
            {"manager": "other", "operation": "Update", "subresource": "status",
                "fieldsV1": {"f:status": {"f:phase": {}}}},
        ]}})
    }

    #[test]
    fn only_what_was_applied_and_the_condition_are_named() {
        let conditions =
            json!([{"type": "Ready", "status": "True"}, {"type": "Reconciled", "status": "False"}]);
        let desired = json!({"phase": "Open", "size": 3, "conditions": conditions});
        let narrowed =
            |fields: Value| narrow(&desired, &live(&fields), "ours", &Rules::unknown(), "Reconciled");
        let expected = json!({"size": 3, "conditions": conditions});
        assert_eq!(narrowed(json!({"f:size": {}, "f:conditions": {}})), expected);
        assert_eq!(narrowed(json!({})), json!({"conditions": conditions}));
        let gone = json!({"phase": "Open", "size": 3});
        let narrowed =
            narrow(&gone, &live(&json!({"f:conditions": {}})), "ours", &Rules::unknown(), "Reconciled");
        assert_eq!(narrowed, Value::Null, "nothing of it is ours");
    }
}
