//! Two trees compared, as people read it. Pure.

use serde_json::Value;

/// The longest text of a value in a difference.
const VALUE_CHARS_MAX: usize = 60;

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// `spec.containers[0].image`; empty if the trees have nothing in common.
    pub(super) path: String,
    /// None: not there.
    pub(super) before: Option<Value>,
    /// None: not there.
    pub(super) after: Option<Value>,
}

/// The smallest fields in which two trees differ, in the order of the fields.
pub(super) fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    descend(&mut String::new(), Some(before), Some(after), &mut found);
    found
}

fn descend(path: &mut String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    let length = path.len();
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                if name.contains(['.', '/', '[']) {
                    path.push_str(&format!("[{name:?}]"));
                } else {
                    path.push_str(if path.is_empty() { "" } else { "." });
                    path.push_str(name);
                }
                descend(path, before.get(name), after.get(name), found);
                path.truncate(length);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for index in 0..before.len().max(after.len()) {
                path.push_str(&format!("[{index}]"));
                descend(path, before.get(index), after.get(index), found);
                path.truncate(length);
            }
        }
        (before, after) => {
            found.push(Difference { path: path.clone(), before: before.cloned(), after: after.cloned() });
        }
    }
}

impl Difference {
    /// `spec.replicas: 1 -> 2`, or without the values if nobody may see them.
    pub(super) fn render(&self, values: bool) -> String {
        if !values {
            return self.path.clone();
        }
        let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), shorten);
        format!("{}: {} -> {}", self.path, text(&self.before), text(&self.after))
    }
}

/// A value's JSON, cut if it is long.
pub(super) fn shorten(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= VALUE_CHARS_MAX {
        return text;
    }
    text.chars().take(VALUE_CHARS_MAX).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(before: &Value, after: &Value, expect: &Expect) {
        let lines: Vec<String> = differences(before, after).iter().map(|found| found.render(true)).collect();
        expect.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn only_what_differs_is_told() {
        check(
            &json!({"a": 1, "b": {"c": [1, 2, 3], "x.y/z": true}, "gone": {}}),
            &json!({"a": 1, "b": {"c": [1, 4], "x.y/z": false}, "new": "text"}),
            &expect![[r#"
                b.c[1]: 2 -> 4
                b.c[2]: 3 -> nothing
                b["x.y/z"]: true -> false
                gone: {} -> nothing
                new: nothing -> "text""#]],
        );
        check(&json!({"a": [1]}), &json!({"a": [1]}), &expect![""]);
    }
}
