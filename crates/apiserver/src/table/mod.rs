//! The Table and metadata-only forms of objects: what `kubectl get` shows.
//!
//! A [`Printer`] knows a kind's columns and makes one row of cells from one object. Cells of built-in
//! kinds are those of kube-apiserver; column descriptions are left empty. Custom kinds have the columns
//! their definition names. Ages are relative to a `now` that is passed in.

mod age;
mod cells;
mod custom;
mod metadata;
#[cfg(test)]
mod tests;

pub(crate) use metadata::partial_object_metadata;

use crate::field::{FieldError, Path};
use crate::status::ApiError;
use cells::{Builtin, Row};
use custom::CustomColumn;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Makes the Table form of one kind's objects.
#[derive(Clone, Debug)]
pub(crate) enum Printer {
    /// Of a built-in kind.
    Builtin(&'static Builtin),
    /// Of a custom kind, as its definition's `additionalPrinterColumns` say.
    Custom(Vec<CustomColumn>),
}

/// What a row carries beside its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

impl IncludeObject {
    /// Reads the `includeObject` of a query.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, ApiError> {
        match text {
            None | Some("" | "Metadata") => Ok(IncludeObject::Metadata),
            Some("None") => Ok(IncludeObject::None),
            Some("Object") => Ok(IncludeObject::Object),
            Some(other) => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid(&Path::of("includeObject"), &other.into(), detail);
                Err(ApiError::bad_request(format!("Unable to convert to Table as requested: {error}")))
            }
        }
    }
}

/// A column: name, type, format, priority. Priority 1 is shown by `-o wide` only.
#[derive(Clone, Copy, Debug)]
struct Column(&'static str, &'static str, &'static str, u8);

/// How many bytes the cells of one row may have before the rest stay empty: a definition can have thousands of columns, each
/// of which shows the whole object.
const ROW_BYTES_MAX: usize = 1 << 20;

impl Printer {
    /// Of a built-in kind served under `group`; kinds without columns of their own show name and
    /// creation time.
    pub(crate) fn builtin(group: &str, kind: &str) -> Self {
        Printer::Builtin(cells::builtin(group, kind))
    }

    /// Of a custom kind with these `additionalPrinterColumns`; without any, the age is shown.
    pub(crate) fn custom(columns: &[Value]) -> Self {
        Printer::Custom(custom::read(columns))
    }

    /// The `columnDefinitions` of a Table.
    pub(crate) fn columns(&self) -> Value {
        let definition = |Column(name, kind, format, priority): &Column| {
            json!({
                "name": name, "type": kind, "format": format, "description": "", "priority": priority,
            })
        };
        match self {
            Printer::Builtin(builtin) => builtin.columns.iter().map(definition).collect(),
            Printer::Custom(columns) => {
                let name = definition(&cells::NAME);
                std::iter::once(name).chain(columns.iter().map(CustomColumn::definition)).collect()
            }
        }
    }

    /// The row of one object. `version` is the version of the metadata form, `v1` or `v1beta1`.
    pub(crate) fn row(&self, object: &Value, now: Timestamp, include: IncludeObject, version: &str) -> Value {
        let row = Row { object, now };
        let cells = match self {
            Printer::Builtin(builtin) => (builtin.cells)(&row),
            Printer::Custom(columns) => {
                let name = Value::from(row.name());
                let mut left = ROW_BYTES_MAX;
                let cells = columns.iter().map(|column| {
                    if left == 0 {
                        return Value::Null;
                    }
                    let cell = column.cell(&row);
                    left = left.saturating_sub(cell.as_str().map_or(1, str::len));
                    cell
                });
                std::iter::once(name).chain(cells).collect()
            }
        };
        let included = match include {
            IncludeObject::Object => object.clone(),
            IncludeObject::None if !ends_initial_events(object) => Value::Null,
            _ => partial_object_metadata(object, version),
        };
        let mut out = json!({"cells": cells, "object": included});
        if let Printer::Builtin(builtin) = self
            && let Some(condition) = builtin.condition.and_then(|condition| condition(&row))
        {
            out["conditions"] = json!([condition]);
        }
        out
    }

    /// The Table of some objects. `list` is the list's metadata, or one object's whose
    /// `resourceVersion` is taken; `headers` is false for all but the first event of a watch.
    pub(crate) fn table<'a>(
        &self,
        list: &Value,
        objects: impl IntoIterator<Item = &'a Value>,
        now: Timestamp,
        request: TableRequest<'_>,
    ) -> Value {
        let mut metadata = serde_json::Map::new();
        for field in ["resourceVersion", "continue", "remainingItemCount"] {
            if let Some(value) = list.get(field) {
                metadata.insert(field.to_owned(), value.clone());
            }
        }
        let rows: Vec<Value> = objects
            .into_iter()
            .map(|object| self.row(object, now, request.include, request.version))
            .collect();
        json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{}", request.version),
            "metadata": metadata,
            "columnDefinitions": if request.headers { self.columns() } else { Value::Null },
            "rows": rows,
        })
    }
}

/// How a Table was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableRequest<'a> {
    /// What rows carry beside cells.
    pub(crate) include: IncludeObject,
    /// Whether column definitions are sent.
    pub(crate) headers: bool,
    /// `v1` or `v1beta1`.
    pub(crate) version: &'a str,
}

/// The bookmark that ends a streaming list must be recognisable in every form.
fn ends_initial_events(object: &Value) -> bool {
    object.pointer("/metadata/annotations/k8s.io~1initial-events-end").is_some_and(|flag| flag == "true")
}
