//! Namespaces: each active one has a default account and the CA's certificate; a terminating one is
//! emptied, and ends when nothing is left in it.

mod contents;

use super::engine::{Controller, Shared};
use super::queue::{Lane, Laned, Outcome, Queue};
use super::{change, create, delete_all, is_deleting, is_pods, read};
use crate::builtin::rules::json::text_at;
use crate::kind::Kind;
use crate::server::Server;
use crate::store::{CollectionId, Key, Object};
use crate::strategy::Part;
use contents::Contents;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const WHO: &str = "namespace-controller";
pub(super) const ROOT_CA: &str = "kube-root-ca.crt";

/// What there is to do for a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    /// Give an active one what each has.
    Furnish(String),
    /// Delete what is in a terminating one.
    Empty(String),
}

impl Laned for Task {
    fn lane(&self) -> Lane {
        Lane::Named(match self {
            Task::Furnish(_) => "furnish",
            Task::Empty(_) => "empty",
        })
    }
}

#[derive(Default)]
pub(super) struct Namespaces {
    terminating: BTreeMap<String, Contents>,
    queue: Queue<Task>,
}

impl Controller for Namespaces {
    type Key = Task;
    const NAME: &'static str = "namespaces";
    const AT_ONCE: usize = 10;

    fn see(&mut self, server: &Server, id: &CollectionId, object: &Arc<Object>) {
        let namespace = &*object.key.namespace;
        if id.parts() == ("", "namespaces") {
            let name = object.key.name.to_string();
            if is_deleting(object) {
                self.queue.forget(&Task::Furnish(name.clone()));
                self.terminating.entry(name.clone()).or_insert_with(|| Contents::of(server, &name));
                self.queue.mark(Task::Empty(name));
            } else {
                self.queue.mark(Task::Furnish(name));
            }
        } else if let Some(contents) = self.terminating.get_mut(namespace) {
            contents.see(id, object);
            self.queue.mark(Task::Empty(namespace.to_owned()));
        } else if &*object.key.name == ROOT_CA && id.parts() == ("", "configmaps") {
            self.queue.mark(Task::Furnish(namespace.to_owned()));
        }
    }

    fn gone(&mut self, _: &Server, id: &CollectionId, object: &Object) {
        let namespace = object.key.namespace.to_string();
        match id.parts() {
            ("", "namespaces") => {
                let name = object.key.name.to_string();
                self.terminating.remove(&name);
                self.queue.forget(&Task::Furnish(name.clone()));
                self.queue.forget(&Task::Empty(name));
            }
            // What every namespace has is made again when somebody deletes it.
            ("", "serviceaccounts" | "configmaps") if !self.terminating.contains_key(&namespace) => {
                if matches!(&*object.key.name, "default" | ROOT_CA) {
                    self.queue.mark(Task::Furnish(namespace));
                }
            }
            _ => {
                if let Some(contents) = self.terminating.get_mut(&namespace) {
                    contents.forget(&(id.clone(), object.key.clone()));
                    self.queue.mark(Task::Empty(namespace));
                }
            }
        }
    }

    fn queue(&mut self) -> &mut Queue<Task> {
        &mut self.queue
    }

    fn work(server: Arc<Server>, shared: Shared<Self>, task: Task) -> BoxFuture<'static, Outcome> {
        async move {
            Outcome::of(match task {
                Task::Furnish(name) => furnish(&server, &name).await,
                Task::Empty(name) => empty(&server, &shared, &name).await,
            })
        }
        .boxed()
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

impl Remaining {
    fn add(&mut self, kind: &Kind, objects: usize) {
        self.objects.insert(format!("{}.{}", kind.plural, kind.group), objects);
    }
}

/// Deletes everything in a namespace, and ends it when nothing is left. False if it must be tried again;
/// what waits for finalizers comes back by its own events.
async fn empty(server: &Server, shared: &Shared<Namespaces>, name: &str) -> bool {
    let waiting = shared.lock().terminating.get(name).and_then(|contents| contents.waits_for(server));
    let remaining = match waiting {
        Some(remaining) => remaining,
        None => clear_all(server, name).await,
    };
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

/// Deletes everything that is in a namespace now.
async fn clear_all(server: &Server, name: &str) -> Remaining {
    let mut remaining = Remaining::default();
    let kinds = server.registry.stored();
    if let Some(pods) = kinds.iter().find(|kind| is_pods(&kind.collection)) {
        clear(server, pods, name, &mut remaining).await;
    }
    // Pods may need the rest until they have ended. The event of the last one's removal leads here again.
    if remaining.objects.is_empty() {
        for kind in kinds.iter().filter(|kind| kind.namespaced && !is_pods(&kind.collection)) {
            clear(server, kind, name, &mut remaining).await;
        }
    }
    remaining
}

async fn clear(server: &Server, kind: &Arc<Kind>, namespace: &str, remaining: &mut Remaining) {
    let Ok(listing) = server.store.list(&kind.collection, Some(namespace), None, None) else { return };
    remaining.failed |= !delete_all(server, kind, &listing.items, WHO).await;
    let Ok(listing) = server.store.list(&kind.collection, Some(namespace), None, None) else { return };
    if listing.items.is_empty() {
        return;
    }
    remaining.add(kind, listing.items.len());
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
