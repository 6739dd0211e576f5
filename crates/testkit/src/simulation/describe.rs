//! A change of an object, as people read it. Pure.

use serde_json::Value;

use super::account::is_marked;
use super::compare::differences;
use super::trace::Change;

/// How many fields of a change are told.
const FIELDS_MAX: usize = 6;

/// What has become of an object. `values` says whether its values may be seen, `aside` that nobody wants to know its fields.
pub(super) fn describe(before: Option<&Value>, after: Option<&Value>, values: bool, aside: bool) -> Change {
    let (before, after) = match (before, after) {
        (None, _) => return Change::Created,
        (Some(_), None) => return Change::Removed,
        (Some(before), Some(after)) => (before, after),
    };
    if is_marked(after) && !is_marked(before) {
        return Change::Marked;
    }
    if aside {
        return Change::Updated(Vec::new());
    }
    let noise = [
        "metadata.resourceVersion",
        "metadata.generation",
        r#"metadata.annotations["mainstay.dev/applied"]"#,
    ];
    let found = differences(before, after).into_iter().filter(|found| !noise.contains(&found.path.as_str()));
    let mut fields: Vec<String> = found.map(|found| found.render(values)).collect();
    if fields.len() > FIELDS_MAX {
        let rest = fields.split_off(FIELDS_MAX).len();
        fields.push(format!("and {rest} more"));
    }
    Change::Updated(fields)
}
