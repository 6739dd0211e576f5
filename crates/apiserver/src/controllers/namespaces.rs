//! Namespaces: each active one has a default account and the CA's certificate; a terminating one is
//! emptied, and ends when nothing is left in it.

use super::{change, create, delete_all, is_deleting, read};
use crate::builtin::rules::json::text_at;
use crate::kind::Kind;
use crate::server::Server;
use crate::store::{CollectionId, Key, Object};
use crate::strategy::Part;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const WHO: &str = "namespace-controller";
pub(super) const ROOT_CA: &str = "kube-root-ca.crt";

#[derive(Default)]
pub(super) struct Namespaces {
    /// Active ones to be furnished.
    fresh: BTreeSet<String>,
    terminating: BTreeSet<String>,
    /// Terminating ones in which something has changed.
    due: BTreeSet<String>,
}

impl Namespaces {
    pub(super) fn is_waiting(&self) -> bool {
        !self.fresh.is_empty() || !self.due.is_empty()
    }

    pub(super) fn see(&mut self, id: &CollectionId, object: &Object) {
        if id.parts() == ("", "namespaces") {
            let name = object.key.name.to_string();
            if is_deleting(object) {
                self.fresh.remove(&name);
                self.terminating.insert(name.clone());
                self.due.insert(name);
            } else {
                self.fresh.insert(name);
            }
        } else if self.terminating.contains(&*object.key.namespace) {
            self.due.insert(object.key.namespace.to_string());
        } else if &*object.key.name == ROOT_CA && id.parts() == ("", "configmaps") {
            self.fresh.insert(object.key.namespace.to_string());
        }
    }

    pub(super) fn gone(&mut self, id: &CollectionId, object: &Object) {
        let namespace = object.key.namespace.to_string();
        match id.parts() {
            ("", "namespaces") => {
                self.fresh.remove(&*object.key.name);
                self.terminating.remove(&*object.key.name);
                self.due.remove(&*object.key.name);
            }
            // What every namespace has is made again when somebody deletes it.
            ("", "serviceaccounts" | "configmaps") if !self.terminating.contains(&namespace) => {
                if matches!(&*object.key.name, "default" | ROOT_CA) {
                    self.fresh.insert(namespace);
                }
            }
            _ if self.terminating.contains(&namespace) => {
                self.due.insert(namespace);
            }
            _ => {}
        }
    }

    pub(super) async fn act(&mut self, server: &Server) {
        for name in std::mem::take(&mut self.fresh) {
            if !furnish(server, &name).await {
                self.fresh.insert(name);
            }
        }
        for name in std::mem::take(&mut self.due) {
            if !empty(server, &name).await {
                self.due.insert(name);
            }
        }
    }
}

fn namespace_kind(server: &Server) -> Option<Arc<Kind>> {
    server.registry.find("", "v1", "namespaces")
}

/// Gives a namespace its default account and the CA's certificate. False if it must be tried again.
async fn furnish(server: &Server, name: &str) -> bool {
    let still_active = namespace_kind(server)
        .and_then(|kind| server.store.get(&kind.collection, &Key::new("", name)))
        .and_then(|object| read(&object))
        .is_some_and(|namespace| namespace.pointer("/metadata/deletionTimestamp").is_none());
    if !still_active {
        return true;
    }
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}});
    let certificate = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": ROOT_CA, "namespace": name, "annotations": {
            "kubernetes.io/description": "Holds the certificate that clients check this API server by."
        }},
        "data": {"ca.crt": server.ca_bundle},
    });
    let mut furnished = true;
    for (plural, object, who) in [
        ("serviceaccounts", account, "service-account-controller"),
        ("configmaps", certificate, "root-ca-cert-publisher"),
    ] {
        let Some(kind) = server.registry.find("", "v1", plural) else { continue };
        let key = Key::new(name, text_at(&object, "/metadata/name"));
        match server.store.get(&kind.collection, &key) {
            None => furnished &= create(server, kind, &key, object, who).await.is_ok(),
            Some(found) if plural == "configmaps" => {
                let Some(found) = read(&found) else { continue };
                let annotations = ["/data", "/metadata/annotations"];
                if annotations.iter().all(|part| found.pointer(part) == object.pointer(part)) {
                    continue;
                }
                let edit = |map: &mut Value| {
                    map["data"] = object["data"].clone();
                    map["metadata"]["annotations"] = object["metadata"]["annotations"].clone();
                };
                furnished &= change(server, kind, &key, Part::Main, who, &edit).await.is_ok();
            }
            Some(_) => {}
        }
    }
    furnished
}

/// What is left in a namespace.
#[derive(Default)]
struct Remaining {
    /// Resource (`deployments.apps`) to how many objects.
    objects: BTreeMap<String, usize>,
    /// Finalizer to how many objects wait for it.
    finalizers: BTreeMap<String, usize>,
    failed: bool,
}

/// Deletes everything in a namespace, and ends it when nothing is left. False if it must be tried again;
/// what waits for finalizers comes back by its own events.
async fn empty(server: &Server, name: &str) -> bool {
    let mut remaining = Remaining::default();
    for kind in server.registry.stored().iter().filter(|kind| kind.namespaced) {
        clear(server, kind, name, &mut remaining).await;
    }
    let Some(kind) = namespace_kind(server) else { return true };
    let key = Key::new("", name);
    if remaining.objects.is_empty() {
        let edit = |namespace: &mut Value| {
            if let Some(finalizers) = namespace.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut)
            {
                finalizers.retain(|f| f != "kubernetes");
            }
        };
        return change(server, kind, &key, Part::Other("finalize"), WHO, &edit).await.is_ok();
    }
    let now = server.timestamp();
    let edit = |namespace: &mut Value| set_conditions(namespace, &remaining, &now);
    change(server, kind, &key, Part::Status, WHO, &edit).await.is_ok() && !remaining.failed
}

async fn clear(server: &Server, kind: &Arc<Kind>, namespace: &str, remaining: &mut Remaining) {
    let Ok(listing) = server.store.list(&kind.collection, Some(namespace), None, None) else { return };
    remaining.failed |= !delete_all(server, kind, &listing.items, WHO).await;
    let Ok(listing) = server.store.list(&kind.collection, Some(namespace), None, None) else { return };
    if listing.items.is_empty() {
        return;
    }
    let resource = if kind.group.is_empty() {
        format!("{}.", kind.plural)
    } else {
        format!("{}.{}", kind.plural, kind.group)
    };
    remaining.objects.insert(resource, listing.items.len());
    for object in &listing.items {
        let Some(tree) = read(object) else { continue };
        let finalizers = tree.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
        for finalizer in finalizers.filter_map(Value::as_str) {
            *remaining.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
}

/// Says on the namespace what keeps it.
fn set_conditions(namespace: &mut Value, remaining: &Remaining, now: &str) {
    let counted = |counts: &BTreeMap<String, usize>, verb: &str| {
        let parts: Vec<String> =
            counts.iter().map(|(what, n)| format!("{what} {verb} {n} resource instances")).collect();
        parts.join(", ")
    };
    let finalizers = if remaining.finalizers.is_empty() {
        ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished".to_owned())
    } else {
        let list = counted(&remaining.finalizers, "in");
        (
            "True",
            "SomeFinalizersRemain",
            format!("Some content in the namespace has finalizers remaining: {list}"),
        )
    };
    let content = format!("Some resources are remaining: {}", counted(&remaining.objects, "has"));
    let wanted = [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered".to_owned(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".to_owned(),
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".to_owned(),
        ),
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", content),
        ("NamespaceFinalizersRemaining", finalizers.0, finalizers.1, finalizers.2),
    ];
    let before =
        namespace.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let conditions: Vec<Value> = wanted
        .into_iter()
        .map(|(kind, status, reason, message)| {
            let old = before.iter().find(|c| c["type"] == kind);
            let since = old.filter(|c| c["status"] == status).map_or(json!(now), |c| c["lastTransitionTime"].clone());
            json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
        })
        .collect();
    namespace["status"]["conditions"] = conditions.into();
}
