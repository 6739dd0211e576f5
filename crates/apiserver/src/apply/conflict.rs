//! Fields that an apply would take from their owners.

use super::managers::{Identity, Operation};
use super::path::Element;
use super::set::FieldSet;
use crate::field::{ERRORS_MAX, go_quote};
use crate::gotext;
use crate::status::ApiError;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The fields of other managers that an apply without force would change, at least one.
#[derive(Debug)]
pub(crate) struct Conflicts {
    /// By manager, in the order in which they are told.
    by_manager: Vec<(Identity, FieldSet)>,
}

impl Conflicts {
    pub(super) fn new(mut by_manager: Vec<(Identity, FieldSet)>) -> Self {
        by_manager.sort_by_cached_key(|(identity, _)| identity.order_key());
        Conflicts { by_manager }
    }

    /// The conflicts over other fields than these; none if there are no others.
    pub(super) fn outside(mut self, allowed: &FieldSet) -> Option<Self> {
        for (_, fields) in &mut self.by_manager {
            *fields = std::mem::take(fields).difference(allowed);
        }
        self.by_manager.retain(|(_, fields)| !fields.is_empty());
        if self.by_manager.is_empty() { None } else { Some(self) }
    }

    /// The 409 that tells a client what it would take from whom.
    pub(super) fn to_api_error(&self) -> ApiError {
        let mut left = ERRORS_MAX;
        let named: Vec<(String, Vec<String>)> = self
            .by_manager
            .iter()
            .map(|(identity, fields)| {
                let paths = fields.paths(left, render);
                left -= paths.len();
                (describe(identity), paths)
            })
            .collect();
        let causes: Vec<Value> = named
            .iter()
            .flat_map(|(manager, paths)| paths.iter().map(move |path| (manager, path)))
            .map(|(manager, path)| {
                let message = format!("conflict with {manager}");
                json!({"reason": "FieldManagerConflict", "message": message, "field": path})
            })
            .collect();
        let mut details = Map::new();
        details.insert("causes".to_owned(), Value::Array(causes));
        let mut error = ApiError::plain(409, "Conflict", self.message(&named));
        error.details = Some(Box::new(details));
        error
    }

    fn message(&self, named: &[(String, Vec<String>)]) -> String {
        if let [(manager, paths)] = named
            && let [path] = paths.as_slice()
        {
            return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        let mut lines = Vec::new();
        for (manager, paths) in named {
            lines.push(format!("conflicts with {manager}:"));
            lines.extend(paths.iter().map(|path| format!("- {path}")));
        }
        let count: usize = self.by_manager.iter().map(|(_, fields)| fields.len()).sum();
        format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
    }
}

fn describe(identity: &Identity) -> String {
    let mut out = go_quote(&identity.manager);
    // Writing to a String cannot fail.
    if !identity.subresource.is_empty() {
        let _ = write!(out, " with subresource {}", go_quote(&identity.subresource));
    }
    if let (Operation::Update, Some(version)) = (identity.operation, &identity.api_version) {
        let _ = write!(out, " using {version}");
    }
    out
}

fn render(element: &Element) -> String {
    element.render(|number| gotext::go_float(number.as_f64().unwrap_or_default()))
}
