//! Which kinds are served.
//!
//! Built-in kinds are made once per process and shared by all servers in it; each server adds the custom
//! kinds of its own definitions.

use crate::builtin::rules::{Rules, rules};
use crate::builtin::tables::{self, resources};
use crate::kind::{Builtin, Custom, Kind, Names, Nature, Subresource};
use crate::store::CollectionId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use tokio::sync::watch::{Receiver, Sender};

type Id = (String, String, String);

/// See the [module](self).
pub(crate) struct Registry {
    custom: RwLock<CustomKinds>,
    /// Held so that watches of built-in kinds have something to wait for that never comes.
    never: Sender<bool>,
}

#[derive(Default)]
struct CustomKinds {
    /// In the order of their [`place`]s, to be found without making a key.
    kinds: Vec<Arc<Kind>>,
    /// Told when a version is no longer served.
    closers: HashMap<Id, Sender<bool>>,
    /// The versions of each definition, by its name.
    of_definition: HashMap<String, Vec<Id>>,
}

/// In the order of their [`place`]s.
static BUILTIN: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| {
    let mut kinds: Vec<_> = resources().iter().filter_map(builtin_kind).map(Arc::new).collect();
    kinds.sort_by(|a, b| place(a).cmp(&place(b)));
    kinds
});

/// What a URL says of a kind.
fn place(kind: &Kind) -> (&str, &str, &str) {
    (&kind.group, &kind.version, &kind.plural)
}

fn position(kinds: &[Arc<Kind>], wanted: (&str, &str, &str)) -> Result<usize, usize> {
    kinds.binary_search_by(|kind| place(kind).cmp(&wanted))
}

/// Kinds that are never stored: a request makes them and the answer is all there is.
const NOT_STORED: &[&str] = &[
    "SelfSubjectAccessReview",
    "SubjectAccessReview",
    "LocalSubjectAccessReview",
    "SelfSubjectRulesReview",
    "TokenReview",
    "SelfSubjectReview",
    "Binding",
];

fn id(kind: &Kind) -> Id {
    (kind.group.clone(), kind.version.clone(), kind.plural.clone())
}

fn builtin_kind(resource: &tables::Resource) -> Option<Kind> {
    static NO_RULES: Rules = Rules::NONE;
    let schema = tables::schema_of(resource.group, resource.version, resource.kind)?;
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let names = Names {
        group: resource.group.into(),
        version: resource.version.into(),
        kind: resource.kind.into(),
        list_kind: format!("{}List", resource.kind),
        plural: resource.plural.into(),
        singular: resource.singular.into(),
        short_names: owned(&resource.short_names),
        categories: owned(&resource.categories),
    };
    let subresources = resource.subresources.iter().map(|sub| Subresource {
        name: sub.name.into(),
        group: sub.group.into(),
        version: sub.version.into(),
        kind: sub.kind.into(),
        verbs: owned(&sub.verbs),
    });
    let nature = Nature::Builtin(Builtin {
        schema,
        storage_hash: resource.storage_hash,
        rules: rules(resource.group, resource.kind).unwrap_or(&NO_RULES),
        returns_deleted: matches!(
            resource.kind,
            "StorageClass"
                | "PersistentVolume"
                | "ServiceAccount"
                | "PersistentVolumeClaim"
                | "Namespace"
                | "Pod"
                | "Service"
                | "PodTemplate"
        ),
        created_by_update: matches!(
            resource.kind,
            "RoleBinding"
                | "ClusterRoleBinding"
                | "Role"
                | "ClusterRole"
                | "Lease"
                | "Event"
                | "Service"
                | "Endpoints"
        ),
        unconditional_update: !matches!(
            resource.kind,
            "PodDisruptionBudget"
                | "Lease"
                | "MutatingWebhookConfiguration"
                | "ValidatingWebhookConfiguration"
                | "CustomResourceDefinition"
        ),
    });
    // Both groups of events are one collection.
    let collection = match resource.group {
        "events.k8s.io" => CollectionId::new("", "events"),
        group => CollectionId::new(group, resource.plural),
    };
    let subresources = subresources.collect();
    Some(Kind::new(names, resource.namespaced, owned(&resource.verbs), subresources, collection, nature))
}

impl Registry {
    pub(crate) fn new() -> Registry {
        Registry { custom: RwLock::default(), never: Sender::new(false) }
    }

    /// The kind that a URL names.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let wanted = (group, version, plural);
        if let Ok(at) = position(&BUILTIN, wanted) {
            return Some(BUILTIN[at].clone());
        }
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        let at = position(&custom.kinds, wanted).ok()?;
        Some(&custom.kinds[at]).filter(|kind| is_served(kind)).cloned()
    }

    /// The kind of a name, at any version, preferring the one given.
    pub(crate) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Kind>> {
        let matches = |candidate: &&Arc<Kind>| candidate.group == group && candidate.kind == kind;
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        let all = || BUILTIN.iter().chain(&custom.kinds).filter(matches);
        all().find(|candidate| candidate.version == version).or_else(|| all().next()).cloned()
    }

    /// Some version of the kind that is stored in a collection.
    pub(crate) fn of_collection(&self, id: &CollectionId) -> Option<Arc<Kind>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        let (group, plural) = id.parts();
        let fits = |kind: &&Arc<Kind>| kind.group == group && kind.plural == plural;
        BUILTIN.iter().chain(&custom.kinds).find(fits).cloned()
    }

    /// Whether a group is one of Kubernetes' own.
    pub(crate) fn has_builtin_group(group: &str) -> bool {
        BUILTIN.iter().any(|kind| kind.group == group)
    }

    /// Every served kind at every version, built-in ones first.
    pub(crate) fn all(&self) -> Vec<Arc<Kind>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        BUILTIN.iter().chain(custom.kinds.iter().filter(|kind| is_served(kind))).cloned().collect()
    }

    /// One version of every stored, namespaced or not, kind.
    pub(crate) fn stored(&self) -> Vec<Arc<Kind>> {
        let mut seen = std::collections::HashSet::new();
        let mut kinds = self.all();
        kinds.retain(|kind| is_stored(kind) && seen.insert(kind.collection.clone()));
        kinds
    }

    /// Turns true when this kind is no longer served.
    pub(crate) fn closed(&self, kind: &Kind) -> Receiver<bool> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        custom.closers.get(&id(kind)).unwrap_or(&self.never).subscribe()
    }

    /// Serves these versions of a definition, and no others of it.
    pub(crate) fn serve(&self, definition: &str, kinds: Vec<Kind>) {
        let mut custom = self.custom.write().unwrap_or_else(PoisonError::into_inner);
        let custom = &mut *custom;
        let is_its = |kind: &Kind| kind.custom().is_some_and(|c: &Custom| c.definition == definition);
        let served: Vec<Id> = kinds.iter().filter(|k| k.custom().is_some_and(|c| c.served)).map(id).collect();
        let CustomKinds { kinds: known, closers, of_definition } = custom;
        // Only what is its own is looked at: there may be thousands of others.
        for before in of_definition.remove(definition).unwrap_or_default() {
            if served.contains(&before) {
                continue;
            }
            if let Ok(at) = position(known, (&before.0, &before.1, &before.2))
                && is_its(&known[at])
            {
                known.remove(at);
            }
            if position(known, (&before.0, &before.1, &before.2)).is_err()
                && let Some(closer) = closers.remove(&before)
            {
                closer.send_replace(true);
            }
        }
        if !kinds.is_empty() {
            of_definition.insert(definition.to_owned(), kinds.iter().map(id).collect());
        }
        for kind in kinds {
            if kind.custom().is_some_and(|c| c.served) {
                closers.entry(id(&kind)).or_insert_with(|| Sender::new(false));
            }
            match position(known, place(&kind)) {
                Ok(at) => known[at] = Arc::new(kind),
                Err(at) => known.insert(at, Arc::new(kind)),
            }
        }
    }
}

fn is_served(kind: &Kind) -> bool {
    kind.custom().is_none_or(|custom| custom.served)
}

/// Whether objects of a kind are kept.
pub(crate) fn is_stored(kind: &Kind) -> bool {
    !(kind.builtin().is_some() && NOT_STORED.contains(&kind.kind.as_str()))
}
