//! What label keys and values may look like.

use std::fmt::Write as _;

const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";

const NAME_BYTES_MAX: usize = 63;
const SUBDOMAIN_BYTES_MAX: usize = 253;

/// What is wrong with a label key, one sentence each; nothing if it is fine.
pub(crate) fn label_key_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let examples = ["MyName", "my.name", "123-abc"];
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                let inner = subdomain_problems(prefix);
                problems.extend(inner.into_iter().map(|problem| format!("prefix part {problem}")));
            }
            *name
        }
        _ => {
            let rule = with_pattern(NAME_RULE, NAME, &examples);
            let prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {prefix}")];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_BYTES_MAX {
        problems.push(format!("name part {}", too_long(NAME_BYTES_MAX)));
    }
    if !is_name(name) {
        problems.push(format!("name part {}", with_pattern(NAME_RULE, NAME, &examples)));
    }
    problems
}

/// What is wrong with a label value, one sentence each; nothing if it is fine.
pub(crate) fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > NAME_BYTES_MAX {
        problems.push(too_long(NAME_BYTES_MAX));
    }
    if !value.is_empty() && !is_name(value) {
        problems.push(with_pattern(VALUE_RULE, VALUE, &["MyValue", "my_value", "12345"]));
    }
    problems
}

fn subdomain_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        problems.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let part = |part: &str| {
        let edges = [part.as_bytes().first(), part.as_bytes().last()];
        edges.iter().all(|edge| edge.is_some_and(|b| inner(*b) && *b != b'-')) && part.bytes().all(inner)
    };
    if !text.split('.').all(part) {
        problems.push(with_pattern(SUBDOMAIN_RULE, SUBDOMAIN, &["example.com"]));
    }
    problems
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edges = [bytes.first(), bytes.last()];
    edges.iter().all(|edge| edge.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn with_pattern(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let mut out = format!("{rule} (e.g. ");
    for (index, example) in examples.iter().enumerate() {
        let or = if index > 0 { " or " } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(out, "{or}'{example}', ");
    }
    let _ = write!(out, "regex used for validation is '{pattern}')");
    out
}
