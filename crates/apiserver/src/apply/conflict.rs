//! Fields that an apply would take from their owners.

use super::managers::{Identity, Operation};
use super::path::Element;
use super::set::FieldSet;
use crate::field::go_quote;
use crate::gotext;
use crate::status::ApiError;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The fields of other managers that an apply without force would change, at least one.
#[derive(Debug)]
pub(crate) struct Conflicts {
    /// By manager, in the order in which they are told.
    by_manager: Vec<(Identity, Vec<Vec<Element>>)>,
}

impl Conflicts {
    pub(super) fn new(mut sets: Vec<(Identity, FieldSet)>) -> Self {
        sets.sort_by_cached_key(|(identity, _)| identity.order_key());
        Conflicts { by_manager: sets.into_iter().map(|(identity, set)| (identity, set.paths())).collect() }
    }

    /// The conflicts over other fields than these; none if there are no others.
    pub(super) fn outside(mut self, allowed: &FieldSet) -> Option<Self> {
        for (_, paths) in &mut self.by_manager {
            paths.retain(|path| !allowed.has(path));
        }
        self.by_manager.retain(|(_, paths)| !paths.is_empty());
        if self.by_manager.is_empty() { None } else { Some(self) }
    }

    fn iter(&self) -> impl Iterator<Item = (&Identity, &Vec<Element>)> {
        self.by_manager.iter().flat_map(|(identity, paths)| paths.iter().map(move |path| (identity, path)))
    }

    /// The 409 that tells a client what it would take from whom.
    pub(super) fn to_api_error(&self) -> ApiError {
        let causes: Vec<Value> = self
            .iter()
            .map(|(identity, path)| {
                let message = format!("conflict with {}", describe(identity));
                json!({"reason": "FieldManagerConflict", "message": message, "field": render(path)})
            })
            .collect();
        let mut details = Map::new();
        details.insert("causes".to_owned(), Value::Array(causes));
        let mut error = ApiError::plain(409, "Conflict", self.message());
        error.details = Some(Box::new(details));
        error
    }

    fn message(&self) -> String {
        let mut all = self.iter();
        if let (Some((identity, path)), None) = (all.next(), all.next()) {
            let (manager, path) = (describe(identity), render(path));
            return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        let mut lines = Vec::new();
        for (identity, paths) in &self.by_manager {
            lines.push(format!("conflicts with {}:", describe(identity)));
            lines.extend(paths.iter().map(|path| format!("- {}", render(path))));
        }
        format!("Apply failed with {} conflicts: {}", self.iter().count(), lines.join("\n"))
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

fn render(path: &[Element]) -> String {
    path.iter()
        .map(|element| element.render(|number| gotext::go_float(number.as_f64().unwrap_or_default())))
        .collect()
}
