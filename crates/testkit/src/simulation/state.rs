//! Everything that exists in a world at one moment.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use mainstay::Kind;
use serde_json::Value;

/// The cluster that is meant if none is named.
pub const MAIN: &str = "main";

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The cluster's name; [`MAIN`] unless a world has several.
    pub cluster: Arc<str>,
    /// Plural and group as in `deployments.apps`, only the plural for the core group.
    pub resource: Arc<str>,
    /// Empty for objects without one.
    pub namespace: Arc<str>,
    /// The object's name; for a collection, empty.
    pub name: Arc<str>,
}

impl Place {
    /// A place in the main cluster.
    pub fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self {
            cluster: MAIN.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The same place in another cluster.
    #[must_use]
    pub fn in_cluster(mut self, cluster: &str) -> Self {
        self.cluster = cluster.into();
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        let slash = if self.namespace.is_empty() || self.name.is_empty() { "" } else { "/" };
        if !self.namespace.is_empty() || !self.name.is_empty() {
            write!(f, " {}{slash}{}", self.namespace, self.name)?;
        }
        if &*self.cluster != MAIN {
            write!(f, " in {}", self.cluster)?;
        }
        Ok(())
    }
}

/// Plural and group, as a [`Place`] has them.
pub(super) fn resource_of(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// Everything that exists: the objects of all clusters as trees without `apiVersion` and `kind`, and what is outside
/// of them.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(super) objects: BTreeMap<Place, Arc<Value>>,
    pub(super) external: BTreeMap<String, Value>,
}

impl State {
    /// The objects of a kind in the main cluster, by namespace and name.
    pub fn of(&self, kind: &Kind) -> impl Iterator<Item = &Value> + use<'_> {
        self.of_in(MAIN, kind)
    }

    /// The objects of a kind in a cluster.
    pub fn of_in(&self, cluster: &str, kind: &Kind) -> impl Iterator<Item = &Value> + use<'_> {
        let first = Place::new(&resource_of(kind.group(), kind.plural()), "", "").in_cluster(cluster);
        let (cluster, resource) = (first.cluster.clone(), first.resource.clone());
        self.objects
            .range(first..)
            .take_while(move |(place, _)| place.cluster == cluster && place.resource == resource)
            .map(|(_, object)| &**object)
    }

    /// One object of the main cluster.
    pub fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&Value> {
        let place = Place::new(&resource_of(kind.group(), kind.plural()), namespace, name);
        self.objects.get(&place).map(|object| &**object)
    }

    /// Everything in all clusters.
    pub fn objects(&self) -> impl Iterator<Item = (&Place, &Value)> {
        self.objects.iter().map(|(place, object)| (place, &**object))
    }

    /// What exists outside of the clusters.
    pub fn external(&self) -> &BTreeMap<String, Value> {
        &self.external
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{Pod, PodTemplate};
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_found_by_kind_and_cluster() {
        let mut state = State::default();
        for (place, value) in [
            (Place::new("pods", "shop", "a"), json!(1)),
            (Place::new("pods", "shop", "b"), json!(2)),
            (Place::new("pods", "shop", "a").in_cluster("east"), json!(3)),
            (Place::new("podtemplates", "shop", "a"), json!(4)),
        ] {
            state.objects.insert(place, Arc::new(value));
        }
        let values = |cluster: &str, kind: &Kind| state.of_in(cluster, kind).cloned().collect::<Vec<_>>();
        assert_eq!(values(MAIN, &Kind::of::<Pod>()), [json!(1), json!(2)]);
        assert_eq!(values("east", &Kind::of::<Pod>()), [json!(3)]);
        assert_eq!(values(MAIN, &Kind::of::<PodTemplate>()), [json!(4)]);
        assert!(values(MAIN, &Kind::of::<Deployment>()).is_empty());
        assert_eq!(state.get(&Kind::of::<Pod>(), "shop", "b"), Some(&json!(2)));
    }

    #[test]
    fn places_read_as_people_say_them() {
        assert_eq!(Place::new("deployments.apps", "shop", "web").to_string(), "deployments.apps shop/web");
        assert_eq!(Place::new("nodes", "", "n1").to_string(), "nodes n1");
        assert_eq!(Place::new("pods", "shop", "").to_string(), "pods shop");
        assert_eq!(Place::new("pods", "", "").in_cluster("east").to_string(), "pods in east");
    }
}
