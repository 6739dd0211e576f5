//! What is left of a system.

use super::Extent;
use crate::cluster::{Catalog, Cluster, encoded, list_metadata, selected};
use crate::failure::Failure;
use crate::manifests::APP;
use crate::run::announce;
use crate::systems::Held;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Error;
use mainstay::{Key, Kind};
use serde_json::Value;

/// The label of an operator's leases.
const OPERATOR: &str = "mainstay.dev/operator";

/// Sorts of leftovers, in the order in which they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A Deployment of the operator.
    Operator,
    /// A pod of it. It goes with the Deployment, and is waited for: as long as it runs, it puts finalizers on.
    Pod,
    /// An object of one of its kinds.
    Object,
    /// A finalizer that only the operator would take off.
    Finalizer,
    /// An account, a role or a binding.
    Permission,
    /// What replicas agree by.
    Lease,
    /// Where an operator outside of the cluster could be asked.
    Announcement,
    /// A CRD.
    Definition,
}

impl What {
    /// Whether the operator is still there.
    pub(super) fn runs(self) -> bool {
        matches!(self, Self::Operator | Self::Pod)
    }
}

/// Something that is left.
#[derive(Debug, Clone)]
pub(super) struct Leftover {
    pub(super) what: What,
    pub(super) kind: Kind,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    /// Which object of that name.
    pub(super) uid: String,
    /// The finalizer to take off, or the key of a ConfigMap.
    pub(super) part: String,
}

impl Leftover {
    fn of(what: What, kind: &Kind, object: &Value, part: &str) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        Self {
            what,
            kind: kind.clone(),
            namespace: text("namespace"),
            name: text("name").unwrap_or_default(),
            uid: text("uid").unwrap_or_default(),
            part: part.to_owned(),
        }
    }

    /// As kubectl takes it: `jobs.batch/feed-a`.
    pub(super) fn resource(&self) -> String {
        let group = self.kind.group();
        let dot = if group.is_empty() { "" } else { "." };
        format!("{}{dot}{group}/{}", self.kind.plural(), self.name)
    }

    pub(super) fn path(&self) -> String {
        self.kind.object_path(&Key::new(self.namespace.as_deref(), &self.name))
    }
}

/// All that is left, in the order in which it goes.
pub(super) async fn leftovers(cluster: &Cluster, extent: &Extent<'_>) -> Result<Vec<Leftover>, Failure> {
    let looking = Looking { cluster, extent, catalog: cluster.catalog().await? };
    let mut found = looking.operator().await?;
    let parents = looking.parents().await?;
    found.extend(looking.of_parents(&parents).await?);
    for held in extent.system.held {
        found.extend(looking.held(held).await?);
    }
    found.extend(looking.permissions().await?);
    found.extend(looking.leases_and_announcements().await?);
    if extent.crds {
        found.extend(looking.definitions().await?);
    }
    found.sort_by_key(|leftover| leftover.what);
    Ok(found)
}

struct Looking<'a> {
    cluster: &'a Cluster,
    extent: &'a Extent<'a>,
    catalog: Catalog,
}

impl Looking<'_> {
    /// The metadata of objects of a kind. A kind that the cluster does not have has none.
    async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>, Failure> {
        let labels = (!selector.is_empty()).then_some(selector);
        self.list_at(kind, &selected(&kind.collection_path(namespace), labels)).await
    }

    async fn list_at(&self, kind: &Kind, path: &str) -> Result<Vec<Value>, Failure> {
        match list_metadata(&self.cluster.client, path).await {
            Err(Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            found => found.map_err(|error| self.cluster.failed(&format!("list {}", kind.plural()), error)),
        }
    }

    async fn operator(&self) -> Result<Vec<Leftover>, Failure> {
        let labels =
            format!("app.kubernetes.io/name={APP},app.kubernetes.io/component={}", self.extent.system.name);
        let mut found = Vec::new();
        for (what, kind) in [(What::Operator, Kind::of::<Deployment>()), (What::Pod, Kind::of::<Pod>())] {
            let listed = self.list(&kind, Some(self.extent.home), &labels).await?;
            found.extend(listed.iter().map(|object| Leftover::of(what, &kind, object, "")));
        }
        Ok(found)
    }

    /// The kinds that users write: its own, and those that objects of its own kinds name.
    async fn parents(&self) -> Result<Vec<Kind>, Failure> {
        let mut kinds: Vec<Kind> =
            self.extent.system.parents()?.into_iter().map(|parent| parent.kind).collect();
        kinds.retain(|kind| self.catalog.serves(kind));
        let mut named = Vec::new();
        for kind in &kinds {
            let path = kind.collection_path(None);
            let objects = crate::cluster::list(&self.cluster.client, &path).await;
            let objects =
                objects.map_err(|error| self.cluster.failed(&format!("list {}", kind.plural()), error))?;
            named.extend(objects.iter().filter_map(|object| (self.extent.system.names)(object)));
        }
        named.retain(|kind: &Kind| self.catalog.serves(kind) && !kinds.contains(kind));
        named.sort();
        named.dedup();
        kinds.extend(named);
        Ok(kinds)
    }

    /// Objects, if they are to go, and finalizers of the operator on them.
    async fn of_parents(&self, kinds: &[Kind]) -> Result<Vec<Leftover>, Failure> {
        let own = format!("{}.mainstay.dev/finalizer", self.extent.system.name);
        let mut found = Vec::new();
        for kind in kinds {
            // What is in no namespace is not what an operator of one namespace has to itself.
            if self.extent.watch.is_some() && kind.scope() == mainstay::Scope::Cluster {
                continue;
            }
            for object in self.list(kind, self.extent.watch, "").await? {
                let is_deleting = object["metadata"]["deletionTimestamp"].is_string();
                let is_held = holds(&object, &own);
                // One that is being deleted goes when its finalizers do.
                if self.extent.delete_objects && !(is_deleting && is_held) {
                    found.push(Leftover::of(What::Object, kind, &object, ""));
                }
                if is_held {
                    found.push(Leftover::of(What::Finalizer, kind, &object, &own));
                }
            }
        }
        Ok(found)
    }

    async fn held(&self, held: &Held) -> Result<Vec<Leftover>, Failure> {
        let kind = (held.kind)();
        let objects = self.list(&kind, self.extent.watch, held.selector).await?;
        let objects = objects.iter().filter(|object| holds(object, held.finalizer));
        Ok(objects.map(|object| Leftover::of(What::Finalizer, &kind, object, held.finalizer)).collect())
    }

    async fn permissions(&self) -> Result<Vec<Leftover>, Failure> {
        let (home, watch) = (self.extent.home, self.extent.watch);
        let name = format!("{APP}-{}", self.extent.system.name);
        let names = [name.clone(), format!("{name}-own")];
        let mut places = vec![(Kind::of::<ServiceAccount>(), Some(home))];
        if watch.is_none() {
            places.extend([(Kind::of::<ClusterRoleBinding>(), None), (Kind::of::<ClusterRole>(), None)]);
        }
        for kind in [Kind::of::<RoleBinding>(), Kind::of::<Role>()] {
            match watch {
                None => places.push((kind, None)),
                Some(watch) => {
                    places.push((kind.clone(), Some(watch)));
                    places.extend((home != watch).then_some((kind, Some(home))));
                }
            }
        }
        let mut found = Vec::new();
        for (kind, namespace) in places {
            for name in &names {
                let only = encoded(&format!("metadata.name={name}"));
                let path = format!("{}?fieldSelector={only}", kind.collection_path(namespace));
                let listed = self.list_at(&kind, &path).await?;
                found.extend(listed.iter().map(|object| Leftover::of(What::Permission, &kind, object, "")));
            }
        }
        Ok(found)
    }

    async fn leases_and_announcements(&self) -> Result<Vec<Leftover>, Failure> {
        let system = self.extent.system.name;
        let lease = Kind::of::<Lease>();
        let leases = self.list(&lease, self.extent.watch, &format!("{OPERATOR}={system}")).await?;
        let mut found: Vec<Leftover> =
            leases.iter().map(|object| Leftover::of(What::Lease, &lease, object, "")).collect();
        let map = Kind::of::<ConfigMap>();
        let path = selected(&map.collection_path(self.extent.watch), Some(announce::LABEL));
        let maps = crate::cluster::list(&self.cluster.client, &path).await;
        let maps = maps.map_err(|error| self.cluster.failed("list configmaps", error))?;
        let own = maps.iter().filter(|map| map["data"].get(system).is_some());
        found.extend(own.map(|object| Leftover::of(What::Announcement, &map, object, system)));
        Ok(found)
    }

    async fn definitions(&self) -> Result<Vec<Leftover>, Failure> {
        let kind = Kind::of::<CustomResourceDefinition>();
        let own: Vec<String> = self.extent.system.definitions()?.iter().filter_map(name_of).collect();
        let listed = self.list(&kind, None, "").await?;
        let listed = listed.iter().filter(|object| name_of(object).is_some_and(|name| own.contains(&name)));
        Ok(listed.map(|object| Leftover::of(What::Definition, &kind, object, "")).collect())
    }
}

fn name_of(object: &Value) -> Option<String> {
    object["metadata"]["name"].as_str().map(str::to_owned)
}

fn holds(object: &Value, finalizer: &str) -> bool {
    let all = object["metadata"]["finalizers"].as_array();
    all.is_some_and(|all| all.iter().any(|known| known == finalizer))
}
