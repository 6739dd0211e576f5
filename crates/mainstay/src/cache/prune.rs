//! Which fields of objects are not kept.

use std::collections::{BTreeMap, BTreeSet};

/// Fields that a cache drops from every object of a kind, to save memory.
///
/// A field is written as a JSON pointer (RFC 6901: `/` between names, `~1` for a slash in a name, `~0` for a
/// tilde). The name `*` stands for every item of a list, or every entry of a map.
/// `metadata.managedFields` is always dropped and need not be named.
///
/// ```
/// # use mainstay::cache::Prune;
/// let prune = Prune::new([
///     "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
///     "/spec/containers/*/env",
/// ])?;
/// # Ok::<(), mainstay::cache::PruneError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prune {
    paths: BTreeSet<String>,
    root: Node,
}

/// Why a field cannot be dropped.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PruneError {
    /// A pointer that is not one.
    #[error("{path:?} is no JSON pointer to a field: it must begin with a slash and name a field")]
    NotAPointer {
        /// What was given.
        path: String,
    },
    /// The cache itself needs the field.
    #[error("{path} cannot be dropped: objects are found by it")]
    Needed {
        /// What was given.
        path: String,
    },
}

/// Fields of `metadata` by which objects are found, ordered and owned.
const NEEDED: [&str; 7] =
    ["name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp", "ownerReferences"];

impl Prune {
    /// Drops these fields.
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Result<Self, PruneError> {
        let mut prune = Self::default();
        for path in paths {
            let path = path.into();
            let names = names(&path)?;
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let needed = match *names.as_slice() {
                ["*" | "apiVersion" | "kind" | "metadata"] | ["metadata" | "*", "*"] => true,
                ["metadata" | "*", field, ..] => NEEDED.contains(&field),
                _ => false,
            };
            if needed {
                return Err(PruneError::Needed { path });
            }
            let mut node = &mut prune.root;
            for name in names {
                node = node.below.entry(name.to_owned()).or_default();
            }
            node.dropped = true;
            prune.paths.insert(path);
        }
        Ok(prune)
    }

    /// What both drop: the most that two users of one cache can do without.
    pub(crate) fn both(&self, other: &Self) -> Self {
        // Paths of two values that were accepted are acceptable.
        Self::new(self.paths.intersection(&other.paths).cloned()).unwrap_or_default()
    }

    /// Where the walk through an object begins.
    pub(crate) fn start(&self) -> Places<'_> {
        Places(if self.root.below.is_empty() { Vec::new() } else { vec![&self.root] })
    }
}

fn names(path: &str) -> Result<Vec<String>, PruneError> {
    let not_a_pointer = || PruneError::NotAPointer { path: path.to_owned() };
    let rest = path.strip_prefix('/').ok_or_else(not_a_pointer)?;
    let names: Vec<String> = rest.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    if names.iter().any(String::is_empty) {
        return Err(not_a_pointer());
    }
    Ok(names)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    dropped: bool,
    below: BTreeMap<String, Node>,
}

/// Where in the dropped paths a walk through an object is. More than one place because of `*`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places<'a>(Vec<&'a Node>);

/// What becomes of a value.
pub(crate) enum Fate<'a> {
    Kept,
    Dropped,
    /// Something below it is dropped.
    Walked(Places<'a>),
}

impl<'a> Places<'a> {
    /// What becomes of an entry of the map at this place.
    pub(crate) fn entry(&self, name: &str) -> Fate<'a> {
        self.step(|node| [node.below.get(name), node.below.get("*").filter(|_| name != "*")])
    }

    /// What becomes of the items of the list at this place.
    pub(crate) fn item(&self) -> Fate<'a> {
        self.step(|node| [node.below.get("*"), None])
    }

    fn step(&self, next: impl Fn(&'a Node) -> [Option<&'a Node>; 2]) -> Fate<'a> {
        if self.0.is_empty() {
            return Fate::Kept;
        }
        let places: Vec<&Node> = self.0.iter().flat_map(|node| next(node)).flatten().collect();
        if places.iter().any(|node| node.dropped) {
            Fate::Dropped
        } else if places.is_empty() {
            Fate::Kept
        } else {
            Fate::Walked(Places(places))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_objects_are_found_by_cannot_be_dropped() {
        for path in ["/metadata", "/kind", "/apiVersion", "/metadata/uid", "/*", "/metadata/*", "/*/name"] {
            assert_eq!(Prune::new([path]), Err(PruneError::Needed { path: path.into() }));
        }
        for path in ["", "spec", "/", "/spec//x", "/spec/"] {
            assert_eq!(Prune::new([path]), Err(PruneError::NotAPointer { path: path.into() }));
        }
    }

    #[test]
    fn two_users_drop_what_both_can_do_without() {
        let first = Prune::new(["/data", "/spec/a"]).unwrap();
        let second = Prune::new(["/spec/a", "/status"]).unwrap();
        assert_eq!(first.both(&second), Prune::new(["/spec/a"]).unwrap());
    }
}
