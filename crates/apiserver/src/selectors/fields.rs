//! Field selectors: `metadata.name=a,status.phase!=Running`.

use super::kinds::{FieldSupport, Source};
use crate::jsonpath::{self, JsonPath};
use crate::status::ApiError;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// A selector as written, not yet checked against a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: String,
    equal: bool,
    value: String,
}

/// A selector that a kind supports, ready to match; the default selects everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldFilter {
    checks: Vec<Check>,
    name: Option<String>,
}

#[derive(Clone, Debug)]
struct Check {
    from: From,
    equal: bool,
    value: String,
}

#[derive(Clone, Debug)]
enum From {
    Builtin(Source),
    Custom(JsonPath),
}

impl FieldSelector {
    /// Reads the `fieldSelector` of a query. The error is the 400 that kube-apiserver gives.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, equal, value)) = split_term(part) else {
                let message = format!("invalid selector: '{text}'; can't understand '{part}'");
                return Err(ApiError::bad_request(message));
            };
            let value = unescape(value).map_err(ApiError::bad_request)?;
            // A term of nothing restricts nothing.
            if !(field.is_empty() && value.is_empty()) {
                terms.push(Term { field: field.to_owned(), equal, value });
            }
        }
        Ok(FieldSelector { terms })
    }

    /// Checks that a kind supports every field named.
    pub(crate) fn for_kind(self, support: &FieldSupport) -> Result<FieldFilter, ApiError> {
        let mut filter = FieldFilter::default();
        for Term { field, equal, value } in self.terms {
            let from = match support {
                FieldSupport::Builtin(kind) => From::Builtin(kind.source(&field)?),
                FieldSupport::Custom { namespaced, fields } => match field.as_str() {
                    "metadata.name" => From::Builtin(Source::NAME),
                    "metadata.namespace" if *namespaced => From::Builtin(Source::NAMESPACE),
                    _ => {
                        let (_, path) =
                            fields.iter().find(|(label, _)| *label == field).ok_or_else(|| {
                                ApiError::bad_request(format!("field label not supported: {field}"))
                            })?;
                        From::Custom(path.clone())
                    }
                },
            };
            if equal && field == "metadata.name" && filter.name.is_none() {
                filter.name = Some(value.clone());
            }
            filter.checks.push(Check { from, equal, value });
        }
        Ok(filter)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Term { field, equal, value }) in self.terms.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if *equal { "=" } else { "!=" };
            write!(f, "{comma}{field}{operator}{}", escape(value))?;
        }
        Ok(())
    }
}

impl FieldFilter {
    /// Whether every object is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.checks.is_empty()
    }

    /// The only `metadata.name` that can match, if the selector says so.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether this object is selected.
    pub(crate) fn selects(&self, object: &Value) -> bool {
        self.checks.iter().all(|check| {
            let found = match &check.from {
                From::Builtin(source) => source.read(object),
                From::Custom(path) => match path.first(object) {
                    None | Some(Value::Null) => Cow::Borrowed(""),
                    Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
                    Some(other) => Cow::Owned(jsonpath::print(other)),
                },
            };
            (found == check.value.as_str()) == check.equal
        })
    }
}

/// Splits at commas that no backslash precedes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits at the first operator: field, whether it is equality, raw value.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    for (at, _) in term.match_indices(['!', '=']) {
        let rest = &term[at..];
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&term[..at], equal, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => {
                let code = u32::from(c);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}
