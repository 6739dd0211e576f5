//! Columns of custom kinds.

use super::age::since;
use super::cells::Row;
use crate::jsonpath::{self, JsonPath};
use serde_json::{Value, json};

/// One of a definition's `additionalPrinterColumns`.
#[derive(Clone, Debug)]
pub(crate) struct CustomColumn {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i64,
    path: JsonPath,
}

/// Reads the columns up to the first whose path cannot be read; kube-apiserver stops there too.
pub(super) fn read(columns: &[Value]) -> Vec<CustomColumn> {
    let age = [json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})];
    let columns = if columns.is_empty() { &age } else { columns };
    columns.iter().map_while(CustomColumn::read).collect()
}

impl CustomColumn {
    fn read(column: &Value) -> Option<Self> {
        let text = |field: &str| column.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(CustomColumn {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description: text("description"),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            path: JsonPath::parse(&text("jsonPath")).ok()?,
        })
    }

    pub(super) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }

    /// The cell; `null` where the path leads nowhere or to a value of another type.
    pub(super) fn cell(&self, row: &Row<'_>) -> Value {
        let Some(value) = self.path.first(row.object) else {
            return Value::Null;
        };
        match (self.kind.as_str(), value) {
            ("string", _) => jsonpath::print(value).into(),
            ("integer", Value::Number(number)) => {
                number.as_i64().or_else(|| number.as_f64().map(whole)).into()
            }
            ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, whole_or_float),
            ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(text)) => match text.as_str() {
                "" | "null" => "<unknown>".into(),
                text => text
                    .parse()
                    .map_or_else(|_| "<invalid>".to_owned(), |time| since(Some(time), row.now))
                    .into(),
            },
            _ => Value::Null,
        }
    }
}

/// Integers up to here are exact as floats.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The whole part; what is too large becomes the smallest integer, as Go's conversion makes it.
fn whole(float: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "in range")]
    if float.abs() < 9.2e18 { float as i64 } else { i64::MIN }
}

/// Go writes a float without fraction as an integer.
fn whole_or_float(float: f64) -> Value {
    if float.abs() < EXACT_MAX && float.fract() == 0.0 { whole(float).into() } else { float.into() }
}
