//! Label selectors: `a=b,c in (d,e),!f,g>1`.

use super::parse::parse;
use crate::builtin::rules::names::{label_key, label_value};
use crate::field::{FieldError, Path};
use crate::status::ApiError;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// A conjunction of requirements on labels; the default selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    /// Sorted by key.
    requirements: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) key: String,
    pub(crate) operator: Operator,
    /// Sorted, without repetition, when read from text.
    pub(crate) values: Vec<String>,
}

/// How a label's value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl LabelSelector {
    /// Reads the `labelSelector` of a query. The error is the 400 that kube-apiserver gives.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        Self::read(text).map_err(ApiError::bad_request)
    }

    /// As [`Self::parse`], with the bare sentence as error.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let requirements = parse(text)?;
        Ok(Self::of(requirements))
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        LabelSelector { requirements }
    }

    /// Reads a `metav1.LabelSelector`. `null` selects nothing, which is `None`; `{}` selects everything.
    pub(crate) fn from_object(selector: &Value) -> Result<Option<Self>, String> {
        let Value::Object(selector) = selector else {
            return Ok(None);
        };
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let values = vec![value.as_str().unwrap_or_default().to_owned()];
            requirements.push(Requirement::new(key, Operator::Equals, values)?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
            let operator = match text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(format!("{other:?} is not a valid label selector operator")),
            };
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(ToOwned::to_owned).collect();
            requirements.push(Requirement::new(text("key"), operator, values)?);
        }
        Ok(Some(Self::of(requirements)))
    }

    /// Whether every object is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected; none is the same as no labels.
    pub(crate) fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.and_then(|labels| labels.get(&requirement.key)).and_then(Value::as_str);
            requirement.matches(value)
        })
    }

    /// Whether this object is selected.
    pub(crate) fn selects(&self, object: &Value) -> bool {
        self.is_everything() || self.matches(object.pointer("/metadata/labels").and_then(Value::as_object))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            write!(f, "{}{requirement}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl Requirement {
    /// Checks key, operator and values against each other; the error names every problem.
    pub(crate) fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut errors = Vec::new();
        check_key(key, &Path::of("key")).err().into_iter().for_each(|error| errors.push(error));
        let path = Path::of("values");
        let wrong_count = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
                Some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan if values.len() != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        if let Some(detail) = wrong_count {
            let list = values.iter().map(|value| Value::from(value.as_str())).collect();
            errors.push(FieldError::invalid(&path, &Value::Array(list), detail));
        }
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in values.iter().enumerate().filter(|(_, value)| integer(value).is_none()) {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(FieldError::invalid(&path.index(index), &value.as_str().into(), detail));
            }
        }
        for (index, value) in values.iter().enumerate() {
            let problems = label_value(value);
            if !problems.is_empty() {
                let at = path.index(index);
                errors.push(FieldError::invalid(&at.key(key), &value.as_str().into(), problems.join("; ")));
            }
        }
        match errors.as_slice() {
            [] => Ok(Requirement { key: key.to_owned(), operator, values }),
            [one] => Err(one.to_string()),
            many => {
                let sentences: Vec<String> = many.iter().map(ToString::to_string).collect();
                Err(format!("[{}]", sentences.join(", ")))
            }
        }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let has = |value: &str| self.values.iter().any(|wanted| wanted == value);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => value.is_some_and(has),
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(has),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let wanted = self.values.first().and_then(|wanted| integer(wanted));
                match (value.and_then(integer), wanted) {
                    (Some(value), Some(wanted)) if self.operator == Operator::GreaterThan => value > wanted,
                    (Some(value), Some(wanted)) => value < wanted,
                    _ => false,
                }
            }
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let mut values: Cow<'_, [String]> = Cow::Borrowed(&self.values);
        if !values.is_sorted() {
            values.to_mut().sort();
        }
        let values = values.join(",");
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

pub(super) fn check_key(key: &str, path: &Path<'_>) -> Result<(), FieldError> {
    let problems = label_key(key);
    if problems.is_empty() {
        return Ok(());
    }
    Err(FieldError::invalid(path, &key.into(), problems.join("; ")))
}
