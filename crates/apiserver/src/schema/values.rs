//! Checks values against the `OpenAPI` keywords of a schema.
//!
//! Wording, causes and the choice of which branch of an `anyOf` to complain about follow Kubernetes.
//! Errors of sibling fields come sorted by name (Kubernetes gives them in random order).

use super::correlate::Old;
use super::findings::Findings;
use super::formats::Format;
use super::{Additional, Checks, Schema, Type};
use crate::field::{FieldError, Path, Problem, go_quote};
use crate::gotext::GoNumber;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Reports what is wrong with `value`.
///
/// `prefix` stands before the paths of errors but not in their sentences (`status`, when a status is
/// checked alone). With `old`, errors of unchanged parts are left out.
pub(super) fn check_values(
    value: &Value,
    old: Option<Old<'_>>,
    schema: &Schema,
    prefix: &str,
) -> Vec<FieldError> {
    let run = |old| {
        let mut found = Findings::default();
        Check { prefix }.node_or_unchanged(value, old, schema, &Path::ROOT, &mut found);
        found
    };
    let mut found = run(None);
    // Looking for unchanged parts costs time that the usual, valid object need not pay.
    if !found.errors.is_empty() && old.is_some() {
        found = run(old);
    }
    let mut said = HashSet::new();
    found.errors.into_iter().filter(|(_, text)| said.insert(text.clone())).map(|(error, _)| error).collect()
}

struct Check<'p> {
    prefix: &'p str,
}

impl Check<'_> {
    /// Checks a field or item; if it is what it was before, nothing about it is wrong.
    fn node_or_unchanged(
        &self,
        value: &Value,
        old: Option<Old<'_>>,
        schema: &Schema,
        at: &Path<'_>,
        found: &mut Findings,
    ) {
        let before = found.errors.len();
        self.node(value, old, schema, at, found);
        if found.errors.len() > before
            && let Some(old) = old
            && old.equals(value)
        {
            found.truncate(before);
        }
    }

    fn node(
        &self,
        value: &Value,
        old: Option<Old<'_>>,
        schema: &Schema,
        at: &Path<'_>,
        found: &mut Findings,
    ) {
        if found.is_full() {
            return;
        }
        let types = types_of(schema);
        if value.is_null() {
            if types.is_empty() || schema.nullable {
                found.matches += 1;
            } else {
                self.type_error(at, &type_names(types), "null", found);
            }
            if let Some(checks) = &schema.checks {
                self.enumeration(value, checks, at, found);
            }
            return;
        }
        let checks = schema.checks.as_deref();
        let format = checks.and_then(|checks| checks.format.as_deref());
        if !types.is_empty() || format.is_some() {
            self.kind(value, types, format, at, found);
            found.matches += 1;
        }
        if let Some(checks) = checks {
            self.branches(value, old, checks, at, found);
        }
        found.matches += 2;
        match (value, checks) {
            (Value::String(text), Some(checks)) => {
                self.text(text, checks, at, found);
                found.matches += 1 + u64::from(format.is_some_and(|name| Format::from_name(name).is_some()));
            }
            (Value::String(_), None) => found.matches += 1,
            (Value::Number(number), checks) => {
                super::numbers::check(GoNumber::of(number), schema.kind, checks, &mut |complaint| {
                    self.number_error(&complaint, at, found);
                });
                found.matches += 2;
            }
            (Value::Array(items), checks) => {
                self.items(items, old, schema, checks, at, found);
                found.matches += 2;
            }
            _ => {}
        }
        if let Some(checks) = checks {
            self.enumeration(value, checks, at, found);
        }
        found.matches += 1;
        if let Value::Object(map) = value {
            self.fields(map, old, schema, at, found);
            found.matches += 1;
        }
        found.matches += 1;
    }

    fn kind(&self, value: &Value, types: &[Type], format: Option<&str>, at: &Path<'_>, found: &mut Findings) {
        let (actual, actual_format) = match value {
            Value::Bool(_) => (Type::Boolean, ""),
            Value::String(_) => (Type::String, ""),
            Value::Array(_) => (Type::Array, ""),
            Value::Object(_) | Value::Null => (Type::Object, ""),
            Value::Number(number) => match GoNumber::of(number) {
                GoNumber::Int(_) => (Type::Integer, "int64"),
                GoNumber::Float(_) => (Type::Number, "float64"),
            },
        };
        let whole = value.as_f64().is_some_and(super::numbers::is_json_integer);
        let fits = types.contains(&actual)
            || (actual == Type::Number && whole && types.contains(&Type::Integer))
            || (actual == Type::Integer && types.contains(&Type::Number));
        let textual = matches!(actual, Type::String | Type::Array);
        if let Some(format) = format {
            if !textual && !fits && actual_format != format {
                self.type_error(at, format, actual_format, found);
                return;
            }
            // A format on a string is judged by its own check, which passes over lists.
            if textual && !types.contains(&Type::Number) && !types.contains(&Type::Integer) {
                found.matches += 1;
                return;
            }
        }
        if fits {
            found.matches += 1;
        } else {
            self.type_error(at, &type_names(types), actual.name(), found);
        }
    }

    fn branches(
        &self,
        value: &Value,
        old: Option<Old<'_>>,
        checks: &Checks,
        at: &Path<'_>,
        found: &mut Findings,
    ) {
        let run = |schema: &Schema| {
            let mut result = Findings::default();
            self.node(value, old, schema, at, &mut result);
            result
        };
        if !checks.any_of.is_empty() {
            let mut best: Option<Findings> = None;
            let mut valid = None;
            for schema in &checks.any_of {
                let result = run(schema);
                if result.errors.is_empty() {
                    valid = Some(result);
                    break;
                }
                if best.as_ref().is_none_or(|best| result.matches > best.matches) {
                    best = Some(result);
                }
            }
            if valid.is_none() {
                self.whole_error("must validate at least one schema (anyOf)", at, found);
            }
            if let Some(result) = valid.or(best) {
                found.merge(result);
            }
        }
        if !checks.one_of.is_empty() {
            self.one_of(checks.one_of.iter().map(|schema| run(schema)), at, found);
        }
        if !checks.all_of.is_empty() {
            let mut valid = 0;
            for schema in &checks.all_of {
                let result = run(schema);
                valid += usize::from(result.errors.is_empty());
                found.merge(result);
            }
            if valid == 0 {
                self.whole_error("must validate all the schemas (allOf). None validated", at, found);
            } else if valid < checks.all_of.len() {
                self.whole_error("must validate all the schemas (allOf)", at, found);
            }
        }
        if let Some(not) = &checks.not
            && run(not).errors.is_empty()
        {
            self.whole_error("must not validate the schema (not)", at, found);
        }
    }

    fn one_of(&self, results: impl Iterator<Item = Findings>, at: &Path<'_>, found: &mut Findings) {
        let mut best: Option<Findings> = None;
        let mut first_valid = None;
        let mut valid = 0;
        for result in results {
            if result.errors.is_empty() {
                valid += 1;
                first_valid.get_or_insert(result);
            } else if best.as_ref().is_none_or(|best| result.matches > best.matches) {
                best = Some(result);
            }
        }
        match valid {
            0 => {
                let text = "must validate one and only one schema (oneOf). Found none valid";
                self.whole_error(text, at, found);
                found.merge(best.unwrap_or_default());
            }
            1 => found.merge(first_valid.unwrap_or_default()),
            _ => {
                let text = format!(
                    "must validate one and only one schema (oneOf). Found {valid} valid alternatives"
                );
                self.whole_error(&text, at, found);
            }
        }
    }

    fn text(&self, text: &str, checks: &Checks, at: &Path<'_>, found: &mut Findings) {
        let length = || text.chars().count() as u64;
        let value = || Value::String(text.to_owned());
        if let Some(max) = checks.max_length.filter(|max| length() > *max) {
            let said = format!("{} should be at most {max} chars long", place(at));
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            self.push(FieldError::too_long(at, max), said, found);
        } else if let Some(min) = checks.min_length.filter(|min| length() < *min) {
            let said = format!("{} should be at least {min} chars long", place(at));
            self.invalid(at, &value(), said, found);
        } else if let Some(pattern) = &checks.pattern
            && !checks.compiled.is_match(pattern, text)
        {
            self.invalid(at, &value(), format!("{} should match '{pattern}'", place(at)), found);
        }
        if let Some(name) = &checks.format
            && Format::from_name(name).is_some_and(|format| !format.accepts(text))
        {
            let said = format!("{} must be of type {name}: {}", place(at), go_quote(text));
            self.push(FieldError::type_invalid(at, &value(), said.clone()), said, found);
        }
    }

    fn items(
        &self,
        items: &[Value],
        old: Option<Old<'_>>,
        schema: &Schema,
        checks: Option<&Checks>,
        at: &Path<'_>,
        found: &mut Findings,
    ) {
        if let Some(item_schema) = &schema.items {
            let known = old.and_then(Old::items);
            for (index, item) in items.iter().enumerate() {
                let old = known.as_ref().and_then(|known| known.get(item));
                self.node_or_unchanged(item, old, item_schema, &at.index(index), found);
            }
        }
        let Some(checks) = checks else { return };
        let count = items.len() as u64;
        if let Some(min) = checks.min_items.filter(|min| count < *min) {
            let said = format!("{} should have at least {min} items", place(at));
            self.invalid(at, &count.into(), said, found);
        }
        if let Some(max) = checks.max_items.filter(|max| count > *max) {
            let said = format!("{} should have at most {max} items", place(at));
            self.too_many(at, items.len(), max, said, found);
        }
        if checks.unique_items {
            let mut seen = HashSet::with_capacity(items.len());
            if !items.iter().all(|item| seen.insert(item)) {
                let said = format!("{} shouldn't contain duplicates", place(at));
                self.invalid(at, &Value::String(String::new()), said, found);
            }
        }
    }

    fn fields(
        &self,
        map: &Map<String, Value>,
        old: Option<Old<'_>>,
        schema: &Schema,
        at: &Path<'_>,
        found: &mut Findings,
    ) {
        let checks = schema.checks.as_deref();
        let count = map.len() as u64;
        if let Some(min) = checks.and_then(|c| c.min_properties).filter(|min| count < *min) {
            let said = format!("{} should have at least {min} properties", place(at));
            self.invalid(at, &count.into(), said, found);
        }
        if let Some(max) = checks.and_then(|c| c.max_properties).filter(|max| count > *max) {
            let said = format!("{} should have at most {max} properties", place(at));
            self.too_many(at, map.len(), max, said, found);
        }
        for (name, value) in map {
            let field_schema = match (schema.properties.get(name), &schema.additional) {
                (Some(property), _) => property,
                (None, Additional::Values(values)) => values,
                (None, _) => continue,
            };
            // apiVersion and kind are never seen to change, so they are checked always.
            let is_root_type = at.is_root() && matches!(name.as_str(), "apiVersion" | "kind");
            let old = old.filter(|_| !is_root_type).and_then(|old| old.field(name));
            self.node_or_unchanged(value, old, field_schema, &at.field(name), found);
        }
        for name in checks.map_or(&[][..], |checks| &checks.required) {
            if !map.contains_key(name) {
                let at = at.field(name);
                let said = format!("{} is required", place(&at));
                self.push(FieldError::required(&at, ""), said, found);
            }
        }
    }

    fn enumeration(&self, value: &Value, checks: &Checks, at: &Path<'_>, found: &mut Findings) {
        if checks.enumeration.is_empty() || checks.enumeration.iter().any(|allowed| same(value, allowed)) {
            return;
        }
        let allowed: Vec<String> = checks
            .enumeration
            .iter()
            .map(|allowed| match allowed {
                Value::String(text) => text.clone(),
                other => crate::gotext::go_json(other),
            })
            .collect();
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        let said = format!("{} should be one of {allowed:?}", place(at));
        self.push(FieldError::not_supported(at, value, &allowed), said, found);
    }

    fn type_error(&self, at: &Path<'_>, wanted: &str, actual: &str, found: &mut Findings) {
        let said = format!("{} must be of type {wanted}: {}", place(at), go_quote(actual));
        self.push(FieldError::type_invalid(at, &actual.into(), said.clone()), said, found);
    }

    fn too_many(&self, at: &Path<'_>, actual: usize, max: u64, said: String, found: &mut Findings) {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        self.push(FieldError::too_many(at, actual, max), said, found);
    }

    fn number_error(&self, complaint: &super::numbers::Complaint, at: &Path<'_>, found: &mut Findings) {
        if let Some(value) = complaint.value {
            let mut error = FieldError::invalid(at, &Value::Null, String::new());
            error.detail = format!("{} {}", place(at), complaint.text);
            error.value = Some(value.to_string());
            let said = error.detail.clone();
            self.push(error, said, found);
        } else {
            self.whole(format!("{} in {}", complaint.text, rendered(at)), found);
        }
    }

    fn invalid(&self, at: &Path<'_>, value: &Value, said: String, found: &mut Findings) {
        self.push(FieldError::invalid(at, value, said.clone()), said, found);
    }

    /// An error that Kubernetes reports for the whole object, naming the place in its text only.
    fn whole_error(&self, text: &str, at: &Path<'_>, found: &mut Findings) {
        self.whole(format!("{} {text}", go_quote(&rendered(at))), found);
    }

    fn whole(&self, said: String, found: &mut Findings) {
        let error = FieldError::invalid(&Path::ROOT, &Value::String(String::new()), said.clone());
        self.push(error, said, found);
    }

    fn push(&self, mut error: FieldError, said: String, found: &mut Findings) {
        if !self.prefix.is_empty() {
            error.field = match error.field.as_str() {
                "<nil>" => self.prefix.to_owned(),
                field => format!("{}.{field}", self.prefix),
            };
        }
        debug_assert!(error.problem != Problem::Internal);
        found.push(error, said);
    }
}

fn rendered(at: &Path<'_>) -> String {
    if at.is_root() { String::new() } else { at.to_string() }
}

fn place(at: &Path<'_>) -> String {
    format!("{} in body", rendered(at))
}

fn types_of(schema: &Schema) -> &[Type] {
    if schema.int_or_string { &[Type::Integer, Type::String] } else { schema.kind.as_slice() }
}

fn type_names(types: &[Type]) -> String {
    let names: Vec<&str> = types.iter().map(|kind| kind.name()).collect();
    names.join(",")
}

/// Equality as an enumeration has it: numbers are converted to the listed value's type.
#[expect(clippy::cast_possible_truncation, reason = "as Go converts")]
fn same(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(allowed)) => {
            match (GoNumber::of(value), GoNumber::of(allowed)) {
                (GoNumber::Float(value), GoNumber::Int(allowed)) => value as i64 == allowed,
                (value, GoNumber::Float(allowed)) => value.as_f64().to_bits() == allowed.to_bits(),
                (value, allowed) => value == allowed,
            }
        }
        (value, allowed) => value == allowed,
    }
}
