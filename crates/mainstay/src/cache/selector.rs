//! Label selectors, in the text form of URLs and command lines and in the form of fields in objects.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Selects objects by their labels. The default selects everything.
///
/// ```
/// # use mainstay::cache::Selector;
/// let selector: Selector = "app=web,tier in (front,back),!legacy".parse()?;
/// assert_eq!(selector.to_string(), "!legacy,app=web,tier in (back,front)");
/// # Ok::<(), mainstay::cache::SelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector(BTreeSet<Requirement>);

/// One thing that a selector asks of the labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Test {
    Absent,
    Present,
    In(BTreeSet<String>),
    /// Also true of objects without the label.
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

/// Why a selector cannot be read.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum SelectorError {
    /// The text is not in the form of a selector.
    #[error("label selector {text:?}: expected {expected} at {rest:?}")]
    Syntax {
        /// All of it.
        text: String,
        /// What should have come.
        expected: &'static str,
        /// What came.
        rest: String,
    },
    /// `matchExpressions` has an operator that does not exist, or values that do not fit it.
    #[error("label selector: {operator} on {key} with {values} values is not possible")]
    Expression {
        /// The label.
        key: String,
        /// The operator.
        operator: String,
        /// How many values it was given.
        values: usize,
    },
}

impl Selector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects what has all these labels.
    pub fn labels<K: Into<String>, V: Into<String>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        let equal = |(key, value): (K, V)| Requirement {
            key: key.into(),
            test: Test::In([value.into()].into_iter().collect()),
        };
        Self(labels.into_iter().map(equal).collect())
    }

    /// Whether it asks for nothing.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it selects an object with these labels.
    pub fn matches<K: Borrow<str> + Ord, V: AsRef<str>>(&self, labels: &BTreeMap<K, V>) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(requirement.key.as_str()).map(AsRef::as_ref);
            requirement.test.holds(value)
        })
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Absent => value.is_none(),
            Self::Present => value.is_some(),
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Self::Above(bound) => number().is_some_and(|number| number > *bound),
            Self::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl TryFrom<&LabelSelector> for Selector {
    type Error = SelectorError;

    fn try_from(fields: &LabelSelector) -> Result<Self, SelectorError> {
        let mut selector = Self::labels(fields.match_labels.clone().unwrap_or_default());
        for expression in fields.match_expressions.iter().flatten() {
            let values = expression.values.iter().flatten().cloned().collect::<BTreeSet<_>>();
            let test = match (expression.operator.as_str(), values.is_empty()) {
                ("In", false) => Test::In(values),
                ("NotIn", false) => Test::NotIn(values),
                ("Exists", true) => Test::Present,
                ("DoesNotExist", true) => Test::Absent,
                _ => {
                    return Err(SelectorError::Expression {
                        key: expression.key.clone(),
                        operator: expression.operator.clone(),
                        values: values.len(),
                    });
                }
            };
            selector.0.insert(Requirement { key: expression.key.clone(), test });
        }
        Ok(selector)
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut reader = Reader { text, rest: text.trim_start() };
        let mut requirements = BTreeSet::new();
        while !reader.rest.is_empty() {
            requirements.insert(reader.requirement()?);
            if !reader.rest.is_empty() {
                reader.expect(",", "a comma")?;
                if reader.rest.is_empty() {
                    return Err(reader.error("a label"));
                }
            }
        }
        Ok(Self(requirements))
    }
}

/// Reads the text form from left to right. `rest` never begins with blanks.
struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        if self.accept("!") {
            return Ok(Requirement { key: self.key()?, test: Test::Absent });
        }
        let key = self.key()?;
        let test = if self.rest.is_empty() || self.rest.starts_with(',') {
            Test::Present
        } else if self.accept("!=") {
            Test::NotIn([self.value()].into_iter().collect())
        } else if self.accept("==") || self.accept("=") {
            Test::In([self.value()].into_iter().collect())
        } else if self.accept(">") {
            Test::Above(self.number()?)
        } else if self.accept("<") {
            Test::Below(self.number()?)
        } else if self.accept_word("notin") {
            Test::NotIn(self.values()?)
        } else if self.accept_word("in") {
            Test::In(self.values()?)
        } else {
            return Err(self.error("an operator"));
        };
        Ok(Requirement { key, test })
    }

    fn key(&mut self) -> Result<String, SelectorError> {
        let key = self.word();
        if key.is_empty() { Err(self.error("a label")) } else { Ok(key.to_owned()) }
    }

    /// A value, which may be empty.
    fn value(&mut self) -> String {
        self.word().to_owned()
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        let before = self.rest;
        let number = self.word().parse();
        number.map_err(|_| Self { text: self.text, rest: before }.error("a whole number"))
    }

    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        self.expect("(", "a list in parentheses")?;
        let mut values = BTreeSet::from([self.value()]);
        while self.accept(",") {
            values.insert(self.value());
        }
        self.expect(")", "a closing parenthesis")?;
        Ok(values)
    }

    /// The longest run of characters that labels are made of.
    fn word(&mut self) -> &'a str {
        let part_of_label = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        let end = self.rest.find(|c| !part_of_label(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    fn accept(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        if let Some(rest) = rest {
            self.rest = rest.trim_start();
        }
        rest.is_some()
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let whole = |rest: &&str| rest.starts_with(|c: char| c.is_whitespace() || c == '(');
        let rest = self.rest.strip_prefix(word).filter(whole);
        if let Some(rest) = rest {
            self.rest = rest.trim_start();
        }
        rest.is_some()
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), SelectorError> {
        if self.accept(token) { Ok(()) } else { Err(self.error(expected)) }
    }

    fn error(&self, expected: &'static str) -> SelectorError {
        SelectorError::Syntax { text: self.text.to_owned(), expected, rest: self.rest.to_owned() }
    }
}

/// As URLs carry it, always the same for the same selector.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: BTreeSet<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.into_iter().collect::<Vec<_>>().join(","))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, test } = self;
        let list = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
        match test {
            Test::Absent => write!(f, "!{key}"),
            Test::Present => f.write_str(key),
            Test::In(values) if values.len() == 1 => write!(f, "{key}={}", list(values)),
            Test::In(values) => write!(f, "{key} in ({})", list(values)),
            Test::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", list(values)),
            Test::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
            Test::Above(bound) => write!(f, "{key}>{bound}"),
            Test::Below(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

#[cfg(test)]
mod tests;
