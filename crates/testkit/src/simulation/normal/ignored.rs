//! What authors say does not count: fields by JSON pointer, in all resources or in one.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// A field that is not compared. As text, `/status/attempts` for all resources or `deployments.apps /spec/replicas` for
/// one; the step `*` is any key or index. Indices are those of the differences that are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Ignored {
    resource: Option<String>,
    steps: Vec<String>,
}

/// A text that is no JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no JSON pointer: it is written as /status/attempts, for one resource as deployments.apps /spec/replicas"
)]
pub(in super::super) struct BadPointer(String);

impl Ignored {
    /// In all resources.
    pub(in super::super) fn everywhere(pointer: &str) -> Result<Self, BadPointer> {
        Ok(Self { resource: None, steps: steps(pointer)? })
    }

    /// In one resource, named as in `deployments.apps`; what is outside of the clusters is `external`.
    pub(in super::super) fn of(resource: &str, pointer: &str) -> Result<Self, BadPointer> {
        Ok(Self { resource: Some(resource.to_owned()), steps: steps(pointer)? })
    }

    /// Takes the fields out of a tree.
    pub(super) fn remove(all: &[Ignored], resource: &str, tree: &mut Value) {
        let here = |ignored: &&Ignored| ignored.resource.as_deref().is_none_or(|only| only == resource);
        let paths: Vec<&[String]> = all.iter().filter(here).map(|ignored| ignored.steps.as_slice()).collect();
        descend(&paths, tree);
    }
}

fn steps(pointer: &str) -> Result<Vec<String>, BadPointer> {
    let rest = pointer.strip_prefix('/').filter(|rest| !rest.is_empty());
    let rest = rest.ok_or_else(|| BadPointer(pointer.to_owned()))?;
    Ok(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

/// All paths at once, so that an index means the same whatever else of a list is ignored. An object in which something
/// may be ignored and that has nothing else is ignored too: it may be there only for the sake of what is.
fn descend(paths: &[&[String]], tree: &mut Value) {
    if paths.is_empty() {
        return;
    }
    let stays = |step: &str, child: &mut Value| {
        let matching = paths
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(first, _)| *first == "*" || *first == step);
        let rest: Vec<&[String]> = matching.map(|(_, rest)| rest).collect();
        if rest.iter().any(|rest| rest.is_empty()) {
            return false;
        }
        descend(&rest, child);
        rest.is_empty() || child.as_object().is_none_or(|child| !child.is_empty())
    };
    match tree {
        Value::Object(fields) => fields.retain(|name, child| stays(name, child)),
        Value::Array(items) => {
            let mut index = 0_usize;
            items.retain_mut(|child| {
                index += 1;
                stays(&(index - 1).to_string(), child)
            });
        }
        _ => {}
    }
}

impl FromStr for Ignored {
    type Err = BadPointer;

    fn from_str(text: &str) -> Result<Self, BadPointer> {
        match text.split_once(' ') {
            Some((resource, pointer)) if !resource.contains('/') => Self::of(resource, pointer),
            _ => Self::everywhere(text),
        }
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(resource) = &self.resource {
            write!(f, "{resource} ")?;
        }
        self.steps.iter().try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(ignored: &[&str], mut tree: Value, left: &Value) {
        let ignored: Vec<Ignored> = ignored.iter().map(|text| text.parse().unwrap()).collect();
        Ignored::remove(&ignored, "pods", &mut tree);
        assert_eq!(&tree, left);
    }

    #[test]
    fn what_a_pointer_names_is_taken_out() {
        check(&["/a/b"], json!({"a": {"b": 1, "c": 2}}), &json!({"a": {"c": 2}}));
        check(&["/a/*/b"], json!({"a": [{"b": 1, "c": 2}, {"c": 3}]}), &json!({"a": [{"c": 2}, {"c": 3}]}));
        check(&["/a/x~1y~0z"], json!({"a": {"x/y~z": 1, "c": 2}}), &json!({"a": {"c": 2}}));
        check(&["/b"], json!({"a": {"b": 1}}), &json!({"a": {"b": 1}}));
    }

    #[test]
    fn indices_are_those_of_the_whole_list() {
        check(&["/a/0", "/a/1"], json!({"a": [1, 2, 3]}), &json!({"a": [3]}));
    }

    #[test]
    fn what_is_there_only_for_the_ignored_field_is_ignored_too() {
        check(&["/status/x"], json!({"status": {"x": 1}}), &json!({}));
        check(&["/status/x"], json!({"status": {}}), &json!({}));
        check(&["/status/x"], json!({"other": {}}), &json!({"other": {}}));
    }

    #[test]
    fn a_pointer_may_be_for_one_resource() {
        check(&["pods /a", "deployments.apps /b"], json!({"a": 1, "b": 2}), &json!({"b": 2}));
    }

    #[test]
    fn text_comes_back_as_it_was_and_what_is_no_pointer_is_refused() {
        for text in ["/status/x", "deployments.apps /spec/*/a~1b~0c", "/a b/c"] {
            assert_eq!(text.parse::<Ignored>().unwrap().to_string(), text);
        }
        for text in ["", "/", "status", "pods status", "pods /"] {
            assert_eq!(text.parse::<Ignored>().ok(), None, "{text:?}");
        }
    }
}
