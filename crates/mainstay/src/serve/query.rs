//! The part of an address after its question mark.

use http::Uri;
use percent_encoding::percent_decode_str;

/// Pairs as they were given, decoded.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(uri: &Uri) -> Self {
        let decoded =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let split = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(split.map(|(name, value)| (decoded(name), decoded(value))).collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// The last value that is not empty.
    fn value(&self, name: &str) -> Option<&str> {
        self.all(name).filter(|value| !value.is_empty()).last()
    }
}

/// Which parents `/debug/parents` is to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentFilter {
    /// Only this kind, as the one who asks wrote it: `WebApp`, `WebApp.example.com/v1`.
    pub kind: Option<String>,
    /// Only this namespace.
    pub namespace: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl Default for ParentFilter {
    fn default() -> Self {
        Self { kind: None, namespace: None, limit: 500 }
    }
}

impl ParentFilter {
    pub(super) fn from_query(query: &Query) -> Result<Self, String> {
        let default = Self::default();
        let limit = match query.value("limit") {
            Some(limit) => limit.parse().map_err(|_| format!("limit is not a number: {limit:?}"))?,
            None => default.limit,
        };
        let text = |name| query.value(name).map(str::to_owned);
        Ok(Self { kind: text("kind"), namespace: text("namespace"), limit })
    }
}
