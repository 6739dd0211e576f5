//! Two trees compared, as people read it. Pure.

use std::fmt::Write as _;

use serde_json::Value;

/// The longest text of a value in a difference.
const VALUE_CHARS_MAX: usize = 60;

/// How much is shown of what two long values have in common, before that in which they differ.
const SAME_CHARS_SHOWN: usize = 15;

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
                if name.is_empty() || name.contains(|c: char| !c.is_alphanumeric() && c != '_' && c != '-') {
                    let _ = write!(path, "[{name:?}]");
                } else {
                    path.push_str(if path.is_empty() { "" } else { "." });
                    path.push_str(name);
                }
                descend(path, before.get(name), after.get(name), found);
                path.truncate(length);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            // What both lists end with is no difference: one item less at the front is told as just that.
            let head = before.iter().zip(after).take_while(|(one, other)| one == other).count();
            let tail = before[head..].iter().rev().zip(after[head..].iter().rev());
            let tail = tail.take_while(|(one, other)| one == other).count();
            let (before, after) = (&before[..before.len() - tail], &after[..after.len() - tail]);
            for index in head..before.len().max(after.len()) {
                let _ = write!(path, "[{index}]");
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
        let (before, after) = match (&self.before, &self.after) {
            (Some(before), Some(after)) => shorten_both(before, after),
            (before, after) => {
                let text =
                    |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), shorten);
                (text(before), text(after))
            }
        };
        let colon = if self.path.is_empty() { "" } else { ": " };
        format!("{}{colon}{before} -> {after}", self.path)
    }
}

/// Two different values, cut so that the first thing in which they differ can be seen.
fn shorten_both(before: &Value, after: &Value) -> (String, String) {
    let (one, other) = (before.to_string(), after.to_string());
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    if same < VALUE_CHARS_MAX / 2 {
        return (shorten(before), shorten(after));
    }
    let skipped = same - SAME_CHARS_SHOWN;
    let cut = |text: &str| {
        if text.chars().count() <= VALUE_CHARS_MAX {
            return text.to_owned();
        }
        let rest: String = text.chars().skip(skipped).collect();
        format!("…{}", shorten_text(&rest))
    };
    (cut(&one), cut(&other))
}

/// A value's JSON, cut if it is long.
pub(super) fn shorten(value: &Value) -> String {
    shorten_text(&value.to_string())
}

fn shorten_text(text: &str) -> String {
    if text.chars().count() <= VALUE_CHARS_MAX {
        return text.to_owned();
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

    #[test]
    fn an_item_less_at_the_front_is_told_as_just_that() {
        check(&json!(["a", "b", "c"]), &json!(["b", "c"]), &expect![[r#"[0]: "a" -> nothing"#]]);
        check(&json!(["b", "b"]), &json!(["b"]), &expect![[r#"[1]: "b" -> nothing"#]]);
        check(
            &json!(["c"]),
            &json!(["a", "b", "c"]),
            &expect![[r#"
            [0]: nothing -> "a"
            [1]: nothing -> "b""#]],
        );
    }

    #[test]
    fn of_long_values_the_part_that_differs_is_shown() {
        let long = |end: &str| json!(format!("{}{end}", "0123456789".repeat(10)));
        check(&long("one"), &long("other"), &expect![[r#"…67890123456789one" -> …67890123456789other""#]]);
        check(
            &long("one"),
            &json!("short"),
            &expect![[r#""01234567890123456789012345678901234567890123456789012345678… -> "short""#]],
        );
        check(
            &long("one"),
            &json!("0123456789012345678901234567890123456789"),
            &expect![[
                r#"…567890123456789012345678901234567890123456789012345678901234… -> "0123456789012345678901234567890123456789""#
            ]],
        );
    }

    #[test]
    fn keys_that_are_no_names_are_quoted() {
        check(
            &json!({"": 1, "a b": 1, "x\"y": 1}),
            &json!({}),
            &expect![[r#"
            [""]: 1 -> nothing
            ["a b"]: 1 -> nothing
            ["x\"y"]: 1 -> nothing"#]],
        );
    }
}
