//! The least permissions that an operator needs, from its configuration. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use crate::controller::{Bond, ChildKind, Controller, Strategy};
use crate::kind::{Kind, Scope};
use crate::plan::revision_kind;
use crate::webhook::WebhookPermissions;

/// Permissions: which verbs on which resources of which groups.
///
/// What every authenticated client may do (discovery, the OpenAPI documents) is not listed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rbac {
    /// Wherever the operator looks.
    everywhere: Rules,
    /// By namespace, in that one only: leases, the webhooks' certificate.
    within: BTreeMap<String, Vec<Value>>,
    /// Of kinds that are in no namespace.
    unbound: Rules,
    /// What webhooks need of such kinds, by name.
    cluster: Vec<Value>,
    name: String,
    namespace: Option<String>,
}

/// What writing events takes.
const EVENT_VERBS: [&str; 2] = ["create", "patch"];

/// By group and resource.
type Rules = BTreeMap<(String, String), BTreeSet<&'static str>>;

impl Rbac {
    pub(crate) fn new(name: &str, namespace: Option<&str>) -> Self {
        let mut rbac =
            Self { name: name.to_owned(), namespace: namespace.map(str::to_owned), ..Self::default() };
        let rule = rbac.everywhere.entry(("events.k8s.io".into(), "events".into())).or_default();
        rule.extend(EVENT_VERBS);
        rbac
    }

    /// Adds verbs on a resource in one namespace.
    pub(crate) fn allow_within(
        &mut self,
        namespace: &str,
        group: &str,
        resource: &str,
        verbs: &[&'static str],
    ) {
        let rule = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        let rules = self.within.entry(namespace.to_owned()).or_default();
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }

    /// Adds what webhooks need. `own` is the namespace that the operator runs in, as far as is known.
    pub(crate) fn allow_webhooks(&mut self, permissions: &WebhookPermissions, own: &str) {
        // Rules are plain data; they always serialise.
        let value = |rule| serde_json::to_value(rule).unwrap_or_default();
        self.cluster.extend(permissions.cluster.iter().map(value));
        for (namespace, rule) in &permissions.namespaced {
            let namespace = namespace.as_deref().unwrap_or(own);
            self.within.entry(namespace.to_owned()).or_default().push(value(rule));
        }
    }

    /// Adds verbs on a kind, or on a part of it such as `/status`.
    fn allow(&mut self, kind: &Kind, part: &str, verbs: &[&'static str]) {
        let rules = match kind.scope() {
            Scope::Namespaced => &mut self.everywhere,
            Scope::Cluster => &mut self.unbound,
        };
        let resource = format!("{}{part}", kind.plural());
        rules.entry((kind.group().to_owned(), resource)).or_default().extend(verbs);
    }

    fn allow_kind(&mut self, kind: &Kind, verbs: &[&'static str]) {
        self.allow(kind, "", verbs);
    }

    /// Adds what a controller needs.
    pub(crate) fn allow_controller(&mut self, controller: &Controller) {
        let parent = controller.parent();
        self.allow_kind(parent, &["get", "list", "watch"]);
        self.allow(parent, "/status", &["patch"]);
        if parent.scope() == Scope::Cluster && self.namespace.is_some() {
            // Where the events of objects without a namespace are.
            self.allow_within("default", "events.k8s.io", "events", &EVENT_VERBS);
        }
        if controller.needs_finalizer() {
            self.allow_kind(parent, &["patch"]);
        }
        if controller.options.writes_parents {
            self.allow_kind(parent, &["patch", "delete"]);
        }
        if !controller.children.is_empty() {
            // Children refer to their parent with blockOwnerDeletion, which is guarded by this where that is enforced.
            self.allow(parent, "/finalizers", &["update"]);
        }
        self.allow_beside_parent(controller);
        for like in &controller.runs {
            self.allow_beside_parent(like);
        }
    }

    /// What a controller needs of other kinds than its parents'.
    fn allow_beside_parent(&mut self, controller: &Controller) {
        for child in &controller.children {
            self.allow_child(child);
        }
        if controller.rolls() {
            self.allow_kind(&revision_kind(), &["get", "list", "watch", "create", "patch", "delete"]);
        }
        for kind in &controller.reads {
            self.allow_kind(kind, &["list", "watch"]);
        }
        for kind in &controller.deletes {
            self.allow_kind(kind, &["delete"]);
        }
    }

    fn allow_child(&mut self, child: &ChildKind) {
        // An apply that creates needs both verbs.
        if child.bond == Bond::Unowned {
            self.allow_kind(&child.kind, &["get", "list", "watch", "create", "patch"]);
            return;
        }
        self.allow_kind(&child.kind, &["get", "list", "watch", "create", "patch", "delete"]);
        if matches!(child.strategy, Strategy::Replace) {
            self.allow_kind(&child.kind, &["update"]);
        }
    }

    /// The objects to create: a `ClusterRole`, or a `Role` if the operator looks at one namespace only (then the `ClusterRole`
    /// has just what is in no namespace, if there is anything), and a `Role` in each namespace where it needs more.
    pub fn roles(&self) -> Vec<Value> {
        let mut roles = Vec::new();
        let mut unbound = self.unbound.clone();
        match &self.namespace {
            Some(namespace) => {
                roles.push(role("Role", &self.name, Some(namespace), &rules(&self.everywhere)));
            }
            None => unbound.extend(self.everywhere.clone()),
        }
        let cluster = [rules(&unbound), self.cluster.clone()].concat();
        if !cluster.is_empty() {
            roles.insert(0, role("ClusterRole", &self.name, None, &cluster));
        }
        for (namespace, rules) in &self.within {
            roles.push(role("Role", &format!("{}-own", self.name), Some(namespace), rules));
        }
        roles
    }
}

fn role(kind: &str, name: &str, namespace: Option<&str>, rules: &[Value]) -> Value {
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules})
}

/// Resources of a group with the same verbs share a rule.
fn rules(rules: &Rules) -> Vec<Value> {
    let mut shared: BTreeMap<(&str, &BTreeSet<&str>), Vec<&str>> = BTreeMap::new();
    for ((group, resource), verbs) in rules {
        shared.entry((group, verbs)).or_default().push(resource);
    }
    let rule =
        |((group, verbs), resources)| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    shared.into_iter().map(rule).collect()
}

/// As `kubectl apply -f -` reads it: a `List`, in JSON.
impl fmt::Display for Rbac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": self.roles()});
        write!(f, "{list:#}")
    }
}
