//! Whether a class fits the kind that it is about, by the schema of the kind's definition.

mod kept;
mod schema;
mod status;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use kept::kept;
pub use status::{STATUS_NOT_KEPT, keeps_nothing, status_problems};

use crate::config::PathsConfig;
use crate::wish::Problem;
use schema::{Found, find, is_open, kind_of};

/// A path of a class leads nowhere, or to something of another type.
pub const INVALID_PATH: &str = "InvalidPath";

/// What a field has to be.
#[derive(Clone, Copy)]
enum Expected {
    Reference,
    References,
    Flag,
    Text,
}

impl Expected {
    fn as_str(self) -> &'static str {
        match self {
            Self::Reference => "an object with a name, or a string",
            Self::References => "an object with a name, a string, or a list of these",
            Self::Flag => "a boolean",
            Self::Text => "a string",
        }
    }
}

/// Finds what is wrong with a class's paths, for the `openAPIV3Schema` of the version that it names.
///
/// A path that was given has to lead somewhere. One of the defaults need not: a kind without schedules has no field for them. But there
/// must be a field for a template, and whatever is there has to be of the right type. A path that equals the default counts as not given.
pub fn check(paths: &PathsConfig, secret_refs: &[String], schema: &Value) -> Vec<Problem> {
    let defaults = PathsConfig::default();
    let all = [
        ("jobTemplateRef", &paths.job_template_ref, &defaults.job_template_ref, Expected::Reference),
        (
            "scheduledJobTemplateRef",
            &paths.scheduled_job_template_ref,
            &defaults.scheduled_job_template_ref,
            Expected::Reference,
        ),
        (
            "backfillJobTemplateRef",
            &paths.backfill_job_template_ref,
            &defaults.backfill_job_template_ref,
            Expected::Reference,
        ),
        ("suspended", &paths.suspended, &defaults.suspended, Expected::Flag),
        ("schedule", &paths.schedule, &defaults.schedule, Expected::Text),
    ];
    let mut problems = Vec::new();
    for (field, path, default, expected) in all {
        // An empty one says that there is no such field.
        if !path.is_empty() {
            let found = one(&format!("spec.paths.{field}"), path, expected, path != default, schema);
            problems.extend(found);
        }
    }
    for (place, path) in secret_refs.iter().enumerate() {
        let field = format!("spec.secretRefs[{place}]");
        problems.extend(one(&field, &format!("spec.{path}"), Expected::References, true, schema));
    }
    problems.extend(no_template(paths, &problems, schema));
    problems
}

/// What is wrong with one path.
fn one(field: &str, path: &str, expected: Expected, is_given: bool, schema: &Value) -> Option<Problem> {
    let must_be = expected.as_str();
    let message = match find(schema, path) {
        Found::Nowhere { .. } if !is_given => return None,
        Found::Nowhere { at } => format!("leads to {path}, but the kind has no {at}"),
        Found::Anything => return None,
        Found::Field(node) if fits(node, expected) => return None,
        Found::Field(node) => {
            let advice = if is_given { "" } else { "; another path can be given" };
            format!("leads to {path}, which is {}, must be {must_be}{advice}", kind_of(node))
        }
    };
    Some(Problem { reason: INVALID_PATH, path: field.to_owned(), message })
}

/// A kind that has no field for a template, unless it was told already.
fn no_template(paths: &PathsConfig, told: &[Problem], schema: &Value) -> Option<Problem> {
    let is_there = |path: &str| !path.is_empty() && !matches!(find(schema, path), Found::Nowhere { .. });
    let scheduled = is_there(&paths.schedule) && is_there(&paths.scheduled_job_template_ref);
    let field = "spec.paths.jobTemplateRef";
    if is_there(&paths.job_template_ref) || scheduled || told.iter().any(|problem| problem.path == field) {
        return None;
    }
    let message = format!(
        "the kind has no {}, and no other field is given that refers to a template",
        paths.job_template_ref
    );
    Some(Problem { reason: INVALID_PATH, path: field.to_owned(), message })
}

fn fits(node: &Value, expected: Expected) -> bool {
    let is = |kind: &str| node["type"] == kind;
    let is_reference =
        || is("string") || (is("object") && !matches!(find(node, "name"), Found::Nowhere { .. }));
    match expected {
        Expected::Flag => is("boolean"),
        Expected::Text => is("string"),
        Expected::References if is("array") => {
            is_open(&node["items"]) || fits(&node["items"], Expected::Reference)
        }
        Expected::Reference | Expected::References => is_reference(),
    }
}
