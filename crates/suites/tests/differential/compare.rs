//! Field-level differences between two transcripts.

use serde_json::Value;

/// One place where two answers differ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    /// Which step's answer, counted from zero.
    pub(crate) step: usize,
    /// Where in `{status, headers, body}`.
    pub(crate) pointer: String,
    left: Option<Value>,
    right: Option<Value>,
}

impl Difference {
    pub(crate) fn render(&self, left: &str, right: &str) -> String {
        let width = left.len().max(right.len());
        let show = |value: &Option<Value>| match value {
            Some(value) => value.to_string(),
            None => "(absent)".into(),
        };
        format!(
            "  {}\n    {left:width$}: {}\n    {right:width$}: {}",
            self.pointer,
            show(&self.left),
            show(&self.right)
        )
    }
}

/// Every difference, in the order of the steps.
pub(crate) fn compare_transcripts(left: &[Value], right: &[Value]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (step, (left, right)) in left.iter().zip(right).enumerate() {
        compare(step, &mut String::new(), Some(left), Some(right), &mut differences);
    }
    differences
}

fn compare(
    step: usize,
    at: &mut String,
    left: Option<&Value>,
    right: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    let mut descend = |key: &str, left: Option<&Value>, right: Option<&Value>| {
        let length = at.len();
        at.push('/');
        at.push_str(&key.replace('~', "~0").replace('/', "~1"));
        compare(step, at, left, right, found);
        at.truncate(length);
    };
    match (left, right) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            for (key, value) in left {
                descend(key, Some(value), right.get(key));
            }
            for (key, value) in right.iter().filter(|(key, _)| !left.contains_key(*key)) {
                descend(key, None, Some(value));
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                descend(&index.to_string(), left.get(index), right.get(index));
            }
        }
        (left, right) if left == right => {}
        (left, right) => {
            found.push(Difference { step, pointer: at.clone(), left: left.cloned(), right: right.cloned() });
        }
    }
}

#[test]
fn a_difference_names_the_field_and_both_values() {
    let left = serde_json::json!({"body": {"a": [1, 2], "b/c": true}});
    let right = serde_json::json!({"body": {"a": [1, 3]}});
    let differences = compare_transcripts(&[left], &[right]);
    let text: String =
        differences.iter().map(|difference| difference.render("real", "embedded") + "\n").collect();
    assert_eq!(
        text,
        "  /body/a/1\n    real    : 2\n    embedded: 3\n  /body/b~1c\n    real    : true\n    embedded: (absent)\n"
    );
}
