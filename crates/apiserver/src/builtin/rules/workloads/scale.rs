//! Label selectors in the form that a `Scale` shows.

use super::super::json::{list, text};
use serde_json::Value;

/// A selector as a query: `a=b,a,z notin (p,q)`.
pub(crate) fn selector_string(selector: &Value) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        parts.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for requirement in list(selector, "matchExpressions") {
        let key = text(requirement, "key");
        let mut values: Vec<&str> = list(requirement, "values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        parts.push((
            key,
            match text(requirement, "operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                _ => format!("!{key}"),
            },
        ));
    }
    parts.sort_by_key(|(key, _)| *key);
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requirements_stand_in_the_order_of_their_keys() {
        let selector = json!({
            "matchLabels": {"a": "b"},
            "matchExpressions": [
                {"key": "z", "operator": "NotIn", "values": ["q", "p"]},
                {"key": "a", "operator": "Exists"},
            ],
        });
        assert_eq!(selector_string(&selector), "a=b,a,z notin (p,q)");
    }
}
