//! Other values for a field that is no object and no list: the sensible ones first, then the extreme.
//!
//! Nothing here is checked against the schema; who asks does that, and takes the first few that pass.

use serde_json::{Value, json};

use super::formats;
use super::meaning;
use super::schema::{Bound, Schema, Type};

/// A text for fields of which nothing is known. It can be part of most names.
pub(super) const TEXT: &str = "walked";

/// Texts of many shapes, for patterns that no variant of a known text matches.
const SHAPES: [&str; 18] = [
    TEXT,
    "a",
    "A",
    "0",
    "1",
    "10",
    "1.0.0",
    "v1.0.0",
    "1h",
    "1s",
    "1Gi",
    "100m",
    "50%",
    "a.example.org",
    "https://a.example.org/",
    "a/b",
    "a=b",
    "WALKED_1",
];

/// The longest text that is worth writing.
const LENGTH_MAX: usize = 512;

/// A value that a field could have.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    /// None: the field is removed.
    pub(super) value: Option<Value>,
    pub(super) why: String,
}

impl Proposal {
    pub(super) fn new(value: impl Into<Value>, why: &str) -> Self {
        Self { value: Some(value.into()), why: why.to_owned() }
    }
}

/// Other values for a scalar, best first.
pub(super) fn proposals(schema: &Schema, name: &str, present: Option<&Value>) -> Vec<Proposal> {
    if !schema.choices.is_empty() {
        return schema.choices.iter().map(|choice| Proposal::new(choice.clone(), "another choice")).collect();
    }
    let mut found = match schema.kind {
        Type::Boolean => vec![Proposal::new(true, "switched on"), Proposal::new(false, "switched off")],
        Type::Integer => integers(schema, name, present.and_then(Value::as_i64)),
        Type::Number => numbers(schema, present.and_then(Value::as_f64)),
        Type::Text => texts(schema, name, present.and_then(Value::as_str)),
        Type::IntOrString => ints_or_strings(schema, name, present),
        Type::Any | Type::Object | Type::Array => Vec::new(),
    };
    for (value, why) in [(&schema.default, "default"), (&schema.example, "example")] {
        found.extend(value.iter().map(|value| Proposal::new(value.clone(), why)));
    }
    found
}

fn integers(schema: &Schema, name: &str, present: Option<i64>) -> Vec<Proposal> {
    let step = schema.multiple_of.map_or(1, |factor| whole(factor).max(1));
    let lowest = schema.minimum.map(|bound| whole(lowest(bound, step_of(schema))));
    let highest = schema.maximum.map(|bound| whole(highest(bound, step_of(schema))));
    let mut found = meaning::numbers(name, present);
    found.extend(lowest.map(|lowest| (lowest, "minimum")));
    found.extend(
        highest
            .filter(|most| *most <= meaning::COUNT_MAX || !meaning::is_count(name))
            .map(|most| (most, "maximum")),
    );
    found.push((0, "zero"));
    match present {
        Some(present) => {
            found.extend([
                (present.saturating_add(step), "one more"),
                (present.saturating_sub(step), "one less"),
            ]);
        }
        None => found.push((step, "one")),
    }
    found.into_iter().map(|(number, why)| Proposal::new(number, why)).collect()
}

fn numbers(schema: &Schema, present: Option<f64>) -> Vec<Proposal> {
    let step = step_of(schema).unwrap_or(1.0);
    let mut found = Vec::new();
    found.extend(schema.minimum.map(|bound| (lowest(bound, schema.multiple_of), "minimum")));
    found.extend(schema.maximum.map(|bound| (highest(bound, schema.multiple_of), "maximum")));
    found.push((0.0, "zero"));
    match present {
        Some(present) => found.extend([(present + step, "more"), (present - step, "less")]),
        None => found.push((step, "one")),
    }
    if let (Some(min), Some(max)) = (schema.minimum, schema.maximum) {
        found.push((f64::midpoint(min.value, max.value), "the middle"));
    }
    let as_json = |number: f64| {
        if number.fract() == 0.0 && number.abs() < 1e15 { json!(whole(number)) } else { json!(number) }
    };
    found.into_iter().map(|(number, why)| Proposal::new(as_json(number), why)).collect()
}

/// How far apart numbers must be to be allowed; None: any distance will do.
fn step_of(schema: &Schema) -> Option<f64> {
    if schema.kind == Type::Number { schema.multiple_of } else { Some(schema.multiple_of.unwrap_or(1.0)) }
}

fn lowest(bound: Bound, step: Option<f64>) -> f64 {
    let step_or_bit = step.unwrap_or(0.001);
    let first = step.map_or(bound.value, |step| (bound.value / step).ceil() * step);
    if bound.exclusive && first <= bound.value { first + step_or_bit } else { first }
}

fn highest(bound: Bound, step: Option<f64>) -> f64 {
    let step_or_bit = step.unwrap_or(0.001);
    let last = step.map_or(bound.value, |step| (bound.value / step).floor() * step);
    if bound.exclusive && last >= bound.value { last - step_or_bit } else { last }
}

/// The number without its fraction, or the nearest that there is.
#[expect(
    clippy::cast_possible_truncation,
    reason = "such a cast ends at the largest and the smallest integer"
)]
fn whole(number: f64) -> i64 {
    number as i64
}

fn ints_or_strings(schema: &Schema, name: &str, present: Option<&Value>) -> Vec<Proposal> {
    let (text, number) = (present.and_then(Value::as_str), present.and_then(Value::as_i64));
    let mut found: Vec<(Value, &'static str)> = Vec::new();
    // A quantity that is now a number says nothing of its unit.
    if number.is_none() {
        found.extend(meaning::texts(name, text).into_iter().map(|(text, why)| (json!(text), why)));
    }
    if is_quantity(schema) {
        found.extend(meaning::quantities(text, "1Gi").into_iter().map(|(text, why)| (json!(text), why)));
    }
    found.extend(meaning::numbers(name, number).into_iter().map(|(number, why)| (json!(number), why)));
    if found.is_empty() {
        found.extend(number.map(|number| (json!(number.saturating_add(1)), "one more")));
        found.extend([(json!(1), "a number"), (json!("50%"), "a share")]);
    }
    found.push((json!(0), "zero"));
    found.into_iter().map(|(value, why)| Proposal::new(value, why)).collect()
}

fn texts(schema: &Schema, name: &str, present: Option<&str>) -> Vec<Proposal> {
    let mut found: Vec<(String, &'static str)> = Vec::new();
    if is_quantity(schema) {
        found.extend(meaning::quantities(present, "1Gi"));
    }
    let samples = schema.format.as_deref().map_or(&[][..], formats::samples);
    found.extend(samples.iter().map(|sample| ((*sample).to_owned(), "another of its format")));
    found.extend(meaning::texts(name, present));
    let known = present
        .or_else(|| schema.default.as_ref().and_then(Value::as_str))
        .or_else(|| schema.example.as_ref().and_then(Value::as_str))
        .filter(|text| !text.is_empty());
    if schema.pattern.is_some() {
        found.extend(known.into_iter().flat_map(variants).map(|text| (text, "another that matches")));
        // Variants of a known text are better than texts that merely happen to match.
        if let Some(shape) = SHAPES.iter().find(|shape| super::judge::validates(schema, &json!(shape))) {
            found.push(((*shape).to_owned(), "another that matches"));
        }
    } else if found.is_empty() {
        found.push((other_text(schema, known), "another text"));
    }
    found.push((String::new(), "empty"));
    let base = known.unwrap_or(TEXT);
    if let Some(max) = schema.length.max.filter(|max| *max <= LENGTH_MAX) {
        found.push((fitted(base, max), "longest"));
    }
    if schema.length.min > 0 {
        found.push((fitted(base, schema.length.min), "shortest"));
    }
    found.into_iter().map(|(text, why)| Proposal::new(text, why)).collect()
}

fn is_quantity(schema: &Schema) -> bool {
    let by_pattern = |pattern: &str| pattern.starts_with(r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))");
    schema.format.as_deref() == Some("quantity")
        || schema.pattern.as_ref().is_some_and(|it| by_pattern(&it.text))
}

/// A text that is not the known one and is neither too short nor too long.
fn other_text(schema: &Schema, known: Option<&str>) -> String {
    let text = known.map_or_else(|| TEXT.to_owned(), |known| format!("{known}-{TEXT}"));
    let length = text.chars().count();
    if length < schema.length.min {
        return fitted(&text, schema.length.min);
    }
    match schema.length.max {
        Some(max) if length > max => {
            let cut = fitted(&text, max);
            if Some(cut.as_str()) == known {
                variants(&cut).into_iter().next().unwrap_or_default()
            } else {
                cut
            }
        }
        _ => text,
    }
}

/// The text cut or prolonged to a length.
fn fitted(text: &str, length: usize) -> String {
    text.chars().chain(std::iter::repeat('x')).take(length).collect()
}

/// Texts that differ little from this one: a character after its kind at the end or the start, one more, one less.
fn variants(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let positions = (0..chars.len()).rev().filter(|at| chars[*at].is_ascii_alphanumeric());
    for at in positions {
        let mut other = chars.clone();
        other[at] = next_of_its_kind(other[at]);
        found.push(other.into_iter().collect());
    }
    if let Some(last) = chars.last() {
        found.push(chars.iter().chain([last]).collect());
        found.push(chars[..chars.len() - 1].iter().collect());
    }
    found.push(format!("{text}-{TEXT}"));
    found
}

fn next_of_its_kind(c: char) -> char {
    match c {
        '9' => '1',
        'z' => 'a',
        'Z' => 'A',
        '0'..='8' | 'a'..='y' | 'A'..='Y' => char::from_u32(u32::from(c) + 1).unwrap_or(c),
        other => other,
    }
}
