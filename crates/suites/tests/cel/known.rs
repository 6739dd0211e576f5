//! What is known to differ from Kubernetes: DIFFERENCES.md has it as D13.

use serde_json::Value;

use super::oracle::Answer;

/// Why two answers may differ.
type Reason = (&'static str, fn(&Answer, &Answer) -> bool);

const REASONS: [Reason; 10] = [
    ("messages about syntax are those of the parser that Kubernetes uses", |ours, theirs| {
        ours.compile_error.is_some() && has(theirs.compile_error.as_ref(), "Syntax error")
    }),
    ("of several constants that are wrong, another one may be reported", |ours, theirs| {
        let unprepared = "program instantiation failed";
        has(ours.compile_error.as_ref(), unprepared) && has(theirs.compile_error.as_ref(), unprepared)
    }),
    ("the libraries of Kubernetes panic", |_, theirs| {
        let panic = "internal error:";
        has(theirs.error.as_ref(), panic) || has(theirs.compile_error.as_ref(), panic)
    }),
    ("an address, a URL, a version or a quantity is refused in fewer words", |ours, theirs| {
        let kinds = [
            "IP Address",
            "network address parse error",
            "URL parse error",
            "in major number",
            "in minor number",
            "quantities must match",
        ];
        theirs.error.is_some() && kinds.iter().any(|kind| has(ours.error.as_ref(), kind))
    }),
    ("an error about overloads has no list of types", |ours, theirs| {
        let begins = ["no such", "got '", "unsupported comprehension range type"];
        let unknown = |text: &String| begins.iter().any(|begin| text.starts_with(begin));
        ours.error.as_ref().is_some_and(unknown) && theirs.error.as_ref().is_some_and(unknown)
    }),
    ("keys of maps are booleans, integers and strings", |ours, theirs| {
        has(ours.error.as_ref(), "unsupported key type") || theirs.value.as_ref().is_some_and(has_odd_key)
    }),
    ("something that is no key is not found, instead of being refused", |_, theirs| {
        let refused = "invalid qualifier type";
        has(theirs.error.as_ref(), refused) || has(theirs.compile_error.as_ref(), refused)
    }),
    (
        "an object or a quantity that was computed is not equal to a value of another type, instead of an error",
        |ours, theirs| ours.value.is_some() && theirs.error.as_deref() == Some("no such overload"),
    ),
    ("a list of an object can be added to whatever the schema says of its items", |_, theirs| {
        let within = theirs.value.as_ref().is_some_and(|value| value.to_string().contains("*types.Err"));
        within || has(theirs.error.as_ref(), "invalid data, expected")
    }),
    ("the approximate number of a quantity differs in its last digit", |ours, theirs| {
        let double = |answer: &Answer| answer.value.as_ref()?["double"].as_str()?.parse::<f64>().ok();
        double(ours).zip(double(theirs)).is_some_and(|(ours, theirs)| {
            ours.is_finite() && (ours - theirs).abs() <= ours.abs() * 2.0 * f64::EPSILON
        })
    }),
];

/// Whether there is a reason for a difference.
pub(super) fn is_different(ours: &Answer, theirs: &Answer) -> bool {
    REASONS.iter().any(|(_, applies)| applies(ours, theirs))
}

fn has(text: Option<&String>, part: &str) -> bool {
    text.is_some_and(|text| text.contains(part))
}

/// Whether a map in the value has a key that is no boolean, integer or string.
fn has_odd_key(value: &Value) -> bool {
    const KEYS: [&str; 4] = ["bool", "int", "string", "uint"];
    match value {
        Value::Object(typed) => typed.iter().any(|(kind, inner)| {
            let pairs = inner.as_array().filter(|_| kind == "map").into_iter().flatten();
            let odd = |pair: &Value| !KEYS.iter().any(|key| pair[0].get(*key).is_some());
            pairs.into_iter().any(odd) || has_odd_key(inner)
        }),
        Value::Array(values) => values.iter().any(has_odd_key),
        _ => false,
    }
}
