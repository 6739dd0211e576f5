//! Which objects of a kind are watched, and what is kept of them.

use super::{Object, Prune, Selector};

/// Which objects of a kind a watch shows. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchScope {
    /// Only those of one namespace.
    pub namespace: Option<String>,
    /// Only those with labels that this selects.
    pub labels: Option<Selector>,
    /// Only those of one name.
    pub name: Option<String>,
}

impl WatchScope {
    /// All objects of the kind.
    pub fn all() -> Self {
        Self::default()
    }

    /// The objects of one namespace.
    pub fn namespace(namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::default() }
    }

    /// Of these, only those with labels that `selector` selects.
    #[must_use]
    pub fn labelled(mut self, selector: Selector) -> Self {
        self.labels = Some(selector);
        self
    }

    /// Of these, only those of this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Whether an object is in it.
    pub fn contains(&self, object: &Object) -> bool {
        let key = object.key();
        self.namespace.as_deref().is_none_or(|namespace| key.namespace() == Some(namespace))
            && self.name.as_deref().is_none_or(|name| key.name() == name)
            && self.labels.as_ref().is_none_or(|labels| object.is_selected_by(labels))
    }

    /// The narrowest scope that has everything of both and can be watched at once.
    fn both(&self, other: &Self) -> Self {
        fn common<T: Clone + PartialEq>(one: Option<&T>, other: Option<&T>) -> Option<T> {
            one.filter(|one| Some(*one) == other).cloned()
        }
        Self {
            namespace: common(self.namespace.as_ref(), other.namespace.as_ref()),
            labels: common(self.labels.as_ref(), other.labels.as_ref()),
            name: common(self.name.as_ref(), other.name.as_ref()),
        }
    }
}

/// What is kept of the objects of a kind. The default is everything but `managedFields`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Fields that are dropped.
    pub prune: Prune,
    /// Keeps `metadata` only, and asks the server for no more.
    pub metadata_only: bool,
}

/// What one watch shows and keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) scope: WatchScope,
    pub(crate) options: Options,
}

impl Selection {
    /// What satisfies two users at once.
    pub(crate) fn both(&self, other: &Self) -> Self {
        let options = Options {
            prune: self.options.prune.both(&other.options.prune),
            metadata_only: self.options.metadata_only && other.options.metadata_only,
        };
        Self { scope: self.scope.both(&other.scope), options }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(scope: WatchScope, prune: &[&str], metadata_only: bool) -> Selection {
        let prune = Prune::new(prune.iter().copied()).unwrap();
        Selection { scope, options: Options { prune, metadata_only } }
    }

    #[test]
    fn two_users_get_what_satisfies_both() {
        let labels: Selector = "app=web".parse().unwrap();
        let first = selection(WatchScope::namespace("a").labelled(labels.clone()), &["/data"], true);
        let second =
            selection(WatchScope::namespace("b").labelled(labels.clone()), &["/data", "/status"], false);
        let both = selection(WatchScope::all().labelled(labels), &["/data"], false);
        assert_eq!(first.both(&second), both);
        assert_eq!(second.both(&first), both);
        assert_eq!(both.both(&first), both);
        assert_eq!(first.both(&first), first);
    }
}
