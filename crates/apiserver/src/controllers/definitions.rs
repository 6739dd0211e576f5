//! Definitions of custom kinds: their names are accepted or not, their versions served or not, and a
//! definition that is deleted takes its objects along.

use super::{change, delete_all, garbage, is_deleting, read};
use crate::builtin::rules::json::text_at;
use crate::builtin::rules::objects::crd::{self, CLEANUP, names};
use crate::kind::{Custom, Kind, Names, Nature, Scale, Subresource};
use crate::schema::CompiledSchema;
use crate::server::Server;
use crate::store::{CollectionId, Key, Object, Revision};
use crate::strategy::Part;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const WHO: &str = "apiserver-definitions";
const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

#[derive(Default)]
pub(super) struct Definitions {
    /// All definitions by name, oldest state first to be accepted.
    known: BTreeMap<String, Arc<Object>>,
    due: Vec<String>,
}

impl Definitions {
    pub(super) fn is_waiting(&self) -> bool {
        !self.due.is_empty()
    }

    pub(super) fn see(&mut self, id: &CollectionId, object: &Arc<Object>) {
        if id.parts() == ("apiextensions.k8s.io", "customresourcedefinitions") {
            let name = object.key.name.to_string();
            self.known.insert(name.clone(), object.clone());
            self.mark(name);
            return;
        }
        // An object of a definition that waits for its objects to go.
        let (group, plural) = id.parts();
        let name = format!("{plural}.{group}");
        if self.known.contains_key(&name) && self.is_terminating(&name) {
            self.mark(name);
        }
    }

    pub(super) fn gone(&mut self, server: &Server, id: &CollectionId, object: &Object) {
        if id.parts() == ("apiextensions.k8s.io", "customresourcedefinitions") {
            let name = object.key.name.to_string();
            self.known.remove(&name);
            self.due.retain(|due| *due != name);
            server.registry.serve(&name, Vec::new());
            // Names that were taken may be free now.
            self.due = self.known.keys().cloned().collect();
            return;
        }
        let (group, plural) = id.parts();
        let name = format!("{plural}.{group}");
        if self.known.contains_key(&name) && self.is_terminating(&name) {
            self.mark(name);
        }
    }

    fn is_terminating(&self, name: &str) -> bool {
        // Asked for every object of a custom kind, so definitions that live are told by their text.
        let deleted = |object: &Arc<Object>| object.mentions("\"deletionTimestamp\"") && is_deleting(object);
        self.known.get(name).is_some_and(deleted)
    }

    fn mark(&mut self, name: String) {
        if !self.due.contains(&name) {
            self.due.push(name);
        }
    }

    pub(super) async fn act(&mut self, server: &Server) {
        for name in std::mem::take(&mut self.due) {
            let Some(object) = self.known.get(&name).cloned() else { continue };
            if !self.settle(server, &name, &object).await {
                self.mark(name);
            }
        }
    }

    /// Brings one definition where it belongs. False if it must be tried again.
    async fn settle(&self, server: &Server, name: &str, object: &Object) -> bool {
        let Some(definition) = read(object) else { return true };
        let group = text_at(&definition, "/spec/group");
        let mut taken = names::TakenNames::default();
        for other in self.known.values().filter_map(|o| read(o)) {
            if text_at(&other, "/spec/group") == group && text_at(&other, "/metadata/name") != name {
                taken.add(&other);
            }
        }
        let Some(kind) = server.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        else {
            return true;
        };
        let deleting = definition.pointer("/metadata/deletionTimestamp").is_some();
        let now = server.timestamp();
        let status = if deleting { None } else { names::settle(&definition, &taken, &now) };
        // The event of our own write brings the definition here again, with its new status.
        if let Some(status) = status {
            let edit = |object: &mut Value| object["status"] = status.clone();
            return change(server, kind, &object.key, Part::Status, WHO, &edit).await.is_ok();
        }
        let established = crd::condition_is_true(&definition, "Established")
            && crd::condition_is_true(&definition, "NamesAccepted");
        let kinds = if established { kinds(&definition, object.revision, server) } else { Vec::new() };
        server.registry.serve(name, kinds);
        !deleting || clean_up(server, kind, &definition, &object.key).await
    }
}

/// Deletes the objects of a definition, and lets it go when none is left. False if it must be tried again.
async fn clean_up(server: &Server, definitions: Arc<Kind>, definition: &Value, key: &Key) -> bool {
    let id = CollectionId::new(text_at(definition, "/spec/group"), text_at(definition, "/spec/names/plural"));
    let Ok(listing) = server.store.list(&id, None, None, None) else { return false };
    let Some(kind) = server.registry.of_collection(&id) else {
        let edit = |object: &mut Value| garbage::retain(object, "finalizers", |f| f != CLEANUP);
        return change(server, definitions, key, Part::Main, WHO, &edit).await.is_ok();
    };
    if !is_in_progress(definition) {
        let now = server.timestamp();
        let edit = |object: &mut Value| {
            let message = "CustomResource deletion is in progress";
            names::set_condition(
                &mut object["status"],
                "Terminating",
                "True",
                "InstanceDeletionInProgress",
                message,
                &now,
            );
        };
        // The event of this write brings the definition here again.
        return change(server, definitions, key, Part::Status, WHO, &edit).await.is_ok();
    }
    let deleted = delete_all(server, &kind, &listing.items, WHO).await;
    if server.store.count(&id) > 0 {
        return deleted;
    }
    let edit = |object: &mut Value| garbage::retain(object, "finalizers", |f| f != CLEANUP);
    change(server, definitions, key, Part::Main, WHO, &edit).await.is_ok()
}

fn is_in_progress(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|c| c["reason"] == "InstanceDeletionInProgress")
}

/// The kinds that a definition's versions make.
fn kinds(definition: &Value, revision: Revision, server: &Server) -> Vec<Kind> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions.into_iter().flatten().map(|version| kind(definition, version, revision, server)).collect()
}

fn kind(definition: &Value, version: &Value, revision: Revision, server: &Server) -> Kind {
    let accepted =
        |field: &str| definition["status"]["acceptedNames"][field].as_str().unwrap_or_default().to_owned();
    let list = |field: &str| -> Vec<String> {
        let values = definition["status"]["acceptedNames"][field].as_array();
        values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let names = Names {
        group: text_at(definition, "/spec/group").to_owned(),
        version: text_at(version, "/name").to_owned(),
        kind: accepted("kind"),
        list_kind: accepted("listKind"),
        plural: accepted("plural"),
        singular: accepted("singular"),
        short_names: list("shortNames"),
        categories: list("categories"),
    };
    let open_api =
        version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_else(|| json!({"type": "object"}));
    let before = server.registry.find(&names.group, &names.version, &names.plural);
    let same = before
        .as_ref()
        .and_then(|kind| kind.custom())
        .filter(|custom| custom.open_api == open_api && custom.uid == text_at(definition, "/metadata/uid"));
    let (schema, since) = match same {
        Some(custom) => (custom.schema.clone(), custom.since),
        None => (Arc::new(CompiledSchema::read(&open_api)), revision),
    };
    let scale = version.pointer("/subresources/scale").map(|scale| Scale {
        spec: text_at(scale, "/specReplicasPath").to_owned(),
        status: text_at(scale, "/statusReplicasPath").to_owned(),
        selector: scale.get("labelSelectorPath").and_then(Value::as_str).map(str::to_owned),
    });
    let custom = Custom {
        definition: text_at(definition, "/metadata/name").to_owned(),
        uid: text_at(definition, "/metadata/uid").to_owned(),
        storage_version: crd::storage_version(definition).unwrap_or_default().to_owned(),
        storage_schema: storage_schema(definition, version),
        status: version.pointer("/subresources/status").is_some(),
        scale,
        columns: version["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
        selectable: selectable(version),
        schema,
        open_api,
        deprecation: deprecation(&names, version),
        since,
        terminating: definition.pointer("/metadata/deletionTimestamp").is_some(),
        served: version["served"] == Value::Bool(true),
    };
    let subresources = subresources(&names, &custom);
    let verbs = VERBS.iter().map(|verb| (*verb).to_owned()).collect();
    let collection = CollectionId::new(&names.group, &names.plural);
    let namespaced = text_at(definition, "/spec/scope") == "Namespaced";
    Kind::new(names, namespaced, verbs, subresources, collection, Nature::Custom(Box::new(custom)))
}

/// The schema of the version that objects are stored in, unless this is it.
fn storage_schema(definition: &Value, version: &Value) -> Option<Arc<CompiledSchema>> {
    if version["storage"] == Value::Bool(true) {
        return None;
    }
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array)?;
    let storage = versions.iter().find(|v| v["storage"] == Value::Bool(true))?;
    let schema = storage.pointer("/schema/openAPIV3Schema")?;
    Some(Arc::new(CompiledSchema::read(schema)))
}

fn selectable(version: &Value) -> Vec<String> {
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    fields.filter_map(|field| field["jsonPath"].as_str()).map(str::to_owned).collect()
}

fn deprecation(names: &Names, version: &Value) -> Option<String> {
    let deprecated = version["deprecated"] == Value::Bool(true);
    let said = version["deprecationWarning"].as_str().map(str::to_owned);
    deprecated.then(|| {
        said.unwrap_or_else(|| format!("{}/{} {} is deprecated", names.group, names.version, names.kind))
    })
}

fn subresources(names: &Names, custom: &Custom) -> Vec<Subresource> {
    let verbs = || vec!["get".to_owned(), "patch".to_owned(), "update".to_owned()];
    let mut parts = Vec::new();
    if custom.status {
        parts.push(Subresource {
            name: "status".into(),
            group: names.group.clone(),
            version: names.version.clone(),
            kind: names.kind.clone(),
            verbs: verbs(),
        });
    }
    if custom.scale.is_some() {
        parts.push(Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs: verbs(),
        });
    }
    parts
}
