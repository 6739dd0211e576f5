//! What a kind is, and how its objects are named and reached.
//!
//! Everything in this crate speaks of kinds by value: a [`Kind`] is the same whether it came from a Rust type or
//! was written down while the program ran.

use std::any::TypeId;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use kube::core::{ClusterResourceScope, Resource};
use serde::{Deserialize, Serialize};

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// Every object is in a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// A kind of Kubernetes object: its group, version, name, plural and scope. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Parts", from = "Parts")]
pub struct Kind(Arc<Parts>);

/// By group, version and name. Kinds are keys of maps everywhere, and most that meet there are clones of one value.
impl Ord for Kind {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Parts {
    group: String,
    version: String,
    kind: String,
    plural: String,
    scope: Scope,
}

impl From<Parts> for Kind {
    fn from(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl From<Kind> for Parts {
    fn from(kind: Kind) -> Self {
        Arc::unwrap_or_clone(kind.0)
    }
}

impl Kind {
    /// A kind written down: `Kind::new("example.com/v1", "EchoServer", "echoservers", Scope::Namespaced)`.
    pub fn new(api_version: &str, kind: &str, plural: &str, scope: Scope) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self(Arc::new(Parts {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            scope,
        }))
    }

    /// The kind of a Rust type, from `k8s-openapi` or from kube's derive.
    pub fn of<K>() -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        let cluster = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        let scope = if cluster { Scope::Cluster } else { Scope::Namespaced };
        Self::new(&K::api_version(&()), &K::kind(&()), &K::plural(&()), scope)
    }

    /// The API group, empty for the core group.
    pub fn group(&self) -> &str {
        &self.0.group
    }

    /// The version without the group.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// The group and version as objects carry it: `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        if self.0.group.is_empty() {
            self.0.version.clone()
        } else {
            format!("{}/{}", self.0.group, self.0.version)
        }
    }

    /// The name as objects carry it: `Deployment`.
    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    /// The name as URLs and RBAC rules carry it: `deployments`.
    pub fn plural(&self) -> &str {
        &self.0.plural
    }

    /// Whether its objects live in namespaces.
    pub fn scope(&self) -> Scope {
        self.0.scope
    }

    /// The path of the collection: of all namespaces, or of one.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let root = if self.0.group.is_empty() { "/api" } else { "/apis" };
        match namespace {
            Some(namespace) if self.0.scope == Scope::Namespaced => {
                format!("{root}/{}/namespaces/{namespace}/{}", self.api_version(), self.0.plural)
            }
            _ => format!("{root}/{}/{}", self.api_version(), self.0.plural),
        }
    }

    /// The path of one object.
    pub fn object_path(&self, key: &Key) -> String {
        format!("{}/{}", self.collection_path(key.namespace()), key.name())
    }
}

/// As people write it: `Deployment.apps/v1`, `Service.v1`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.group.is_empty() {
            write!(f, "{}.{}", self.0.kind, self.0.version)
        } else {
            write!(f, "{}.{}/{}", self.0.kind, self.0.group, self.0.version)
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which object of a kind: its namespace, if it has one, and its name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    namespace: Option<Arc<str>>,
    name: Arc<str>,
}

impl Key {
    /// An object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// An object of a cluster-scoped kind.
    pub fn cluster(name: &str) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// Either.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        Self { namespace: namespace.map(Arc::from), name: name.into() }
    }

    /// Its namespace, unless the kind is cluster-scoped.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// As people write it: `namespace/name`, or `name`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One object of any kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace and name.
    pub key: Key,
}

/// As people write it: `Deployment.apps/v1 shop/web`.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{Namespace, Service};

    use super::*;

    #[test]
    fn a_kind_is_the_same_from_a_type_and_written_down() {
        assert_eq!(
            Kind::of::<Deployment>(),
            Kind::new("apps/v1", "Deployment", "deployments", Scope::Namespaced)
        );
        assert_eq!(Kind::of::<Namespace>(), Kind::new("v1", "Namespace", "namespaces", Scope::Cluster));
    }

    #[test]
    fn paths_are_those_of_the_api() {
        let web = Key::namespaced("shop", "web");
        assert_eq!(
            Kind::of::<Deployment>().object_path(&web),
            "/apis/apps/v1/namespaces/shop/deployments/web"
        );
        assert_eq!(Kind::of::<Service>().collection_path(None), "/api/v1/services");
        assert_eq!(Kind::of::<Namespace>().object_path(&Key::cluster("shop")), "/api/v1/namespaces/shop");
    }
}
