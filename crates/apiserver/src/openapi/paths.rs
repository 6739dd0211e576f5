//! The paths of a resource and the operations on them.

use super::{REFERENCE, document_path};
use crate::discovery::{Resource, Subresource, Text};
use serde_json::{Map, Value, json};

const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Adds the paths of one resource.
pub(super) fn insert(paths: &mut Map<String, Value>, resource: &Resource) {
    let base = format!("/{}", document_path(&resource.group, &resource.version));
    let (scope, path_parameters): (String, &[&str]) = if resource.namespaced {
        (format!("{base}/namespaces/{{namespace}}"), &["namespace"])
    } else {
        (base.clone(), &[])
    };
    let list = format!("{}List", resource.definition);
    let own = Target::of(resource, None);

    if resource.namespaced {
        let item = Item::default().with(&resource.verbs, "list", || own.across_namespaces(&list));
        item.insert(paths, format!("{base}/{}", resource.plural), &[]);
    }
    let collection = format!("{scope}/{}", resource.plural);
    Item::default()
        .with(&resource.verbs, "list", || own.list(&list))
        .with(&resource.verbs, "create", || own.create())
        .with(&resource.verbs, "deletecollection", || own.delete_collection())
        .insert(paths, collection.clone(), path_parameters);

    let mut named: Vec<&str> = vec!["name"];
    named.extend(path_parameters);
    let object = format!("{collection}/{{name}}");
    Item::default()
        .with(&resource.verbs, "get", || own.read())
        .with(&resource.verbs, "update", || own.replace())
        .with(&resource.verbs, "patch", || own.patch())
        .with(&resource.verbs, "delete", || own.delete())
        .insert(paths, object.clone(), &named);

    for subresource in &resource.subresources {
        let below = Target::of(resource, Some(subresource));
        let verbs = &subresource.verbs;
        Item::default()
            .with(verbs, "get", || below.read())
            .with(verbs, "update", || below.replace())
            .with(verbs, "patch", || below.patch())
            .with(verbs, "create", || below.create())
            .with(verbs, "delete", || below.delete())
            .insert(paths, format!("{object}/{}", subresource.name), &named);
    }
}

/// An operation and the method it stands under.
type Operation = (&'static str, Value);

/// The operations of one path.
#[derive(Default)]
struct Item(Map<String, Value>);

impl Item {
    /// Adds the operation if the verb is served.
    fn with(mut self, verbs: &[Text], verb: &str, operation: impl FnOnce() -> Operation) -> Self {
        if verbs.iter().any(|found| found == verb) {
            let (method, operation) = operation();
            self.0.insert(method.to_owned(), operation);
        }
        self
    }

    fn insert(mut self, paths: &mut Map<String, Value>, path: String, path_parameters: &[&str]) {
        if self.0.is_empty() {
            return;
        }
        let named = path_parameters.iter().map(|name| {
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}})
        });
        let parameters: Vec<Value> = named.chain([query("pretty")]).collect();
        self.0.insert("parameters".to_owned(), parameters.into());
        paths.insert(path, Value::Object(self.0));
    }
}

/// What an operation is about.
#[derive(Clone, Copy)]
struct Target<'a> {
    resource: &'a Resource,
    subresource: Option<&'a Subresource>,
    in_namespace: bool,
}

impl<'a> Target<'a> {
    const fn of(resource: &'a Resource, subresource: Option<&'a Subresource>) -> Self {
        Target { resource, subresource, in_namespace: resource.namespaced }
    }

    fn definition(&self) -> &'a str {
        let own = self.subresource.and_then(|subresource| subresource.definition.as_deref());
        own.unwrap_or(&self.resource.definition)
    }

    fn kind(&self) -> Value {
        let resource = self.resource;
        let (mut group, mut version) = (resource.group.as_ref(), resource.version.as_ref());
        let mut kind = resource.kind.as_ref();
        if let Some(subresource) = self.subresource {
            kind = &subresource.kind;
            if let Some((other_group, other_version)) = &subresource.group_version {
                (group, version) = (other_group, other_version);
            }
        }
        json!({"group": group, "version": version, "kind": kind})
    }

    /// `readAppsV1NamespacedDeploymentStatus`
    fn id(&self, verb: &str, suffix: &str) -> String {
        let group = self.resource.group.as_ref();
        let group = if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) };
        let group: String = group.split(['.', '-']).map(capitalised).collect();
        let version = capitalised(&self.resource.version);
        let scope = if self.in_namespace { "Namespaced" } else { "" };
        let below = self.subresource.map(|subresource| capitalised(&subresource.name)).unwrap_or_default();
        let (verb, collection) = match verb.strip_suffix("Collection") {
            Some(verb) => (verb, "Collection"),
            None => (verb, ""),
        };
        format!("{verb}{group}{version}{collection}{scope}{}{below}{suffix}", self.resource.kind)
    }

    fn operation(&self, method: &'static str, id: &str, action: &str, rest: Value) -> Operation {
        let group = self.resource.group.split('.').next().unwrap_or_default();
        let group = if group.is_empty() { "core" } else { group };
        let mut operation = json!({
            "tags": [format!("{group}_{}", self.resource.version)],
            "operationId": id,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.kind(),
        });
        if let (Value::Object(operation), Value::Object(rest)) = (&mut operation, rest) {
            operation.extend(rest);
        }
        (method, operation)
    }

    fn listing(&self, list: &str, suffix: &str) -> Operation {
        let rest = json!({"parameters": queries(LIST_QUERIES), "responses": responses(&["200"], list)});
        self.operation("get", &self.id("list", suffix), "list", rest)
    }

    fn list(&self, list: &str) -> Operation {
        self.listing(list, "")
    }

    fn across_namespaces(&self, list: &str) -> Operation {
        let everywhere = Target { in_namespace: false, ..*self };
        everywhere.listing(list, "ForAllNamespaces")
    }

    fn create(&self) -> Operation {
        let rest = json!({
            "parameters": queries(WRITE_QUERIES),
            "requestBody": body(self.definition()),
            "responses": responses(&["200", "201", "202"], self.definition()),
        });
        self.operation("post", &self.id("create", ""), "post", rest)
    }

    fn read(&self) -> Operation {
        let rest = json!({"responses": responses(&["200"], self.definition())});
        self.operation("get", &self.id("read", ""), "get", rest)
    }

    fn replace(&self) -> Operation {
        let rest = json!({
            "parameters": queries(WRITE_QUERIES),
            "requestBody": body(self.definition()),
            "responses": responses(&["200", "201"], self.definition()),
        });
        self.operation("put", &self.id("replace", ""), "put", rest)
    }

    fn patch(&self) -> Operation {
        let mut types = vec![
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
        ];
        // Custom kinds have no types whose lists could be merged by key.
        if !self.resource.custom {
            types.push("application/strategic-merge-patch+json");
        }
        let content: Map<String, Value> =
            types.into_iter().map(|media| (media.to_owned(), schema(PATCH))).collect();
        let codes: &[&str] = if self.resource.custom { &["200"] } else { &["200", "201"] };
        let rest = json!({
            "parameters": queries(&["dryRun", "fieldManager", "fieldValidation", "force"]),
            "requestBody": {"content": content, "required": true},
            "responses": responses(codes, self.definition()),
        });
        self.operation("patch", &self.id("patch", ""), "patch", rest)
    }

    fn delete(&self) -> Operation {
        let rest = json!({
            "parameters": queries(DELETE_QUERIES),
            "requestBody": {"content": {"*/*": schema(DELETE_OPTIONS)}},
            "responses": responses(&["200", "202"], STATUS),
        });
        self.operation("delete", &self.id("delete", ""), "delete", rest)
    }

    fn delete_collection(&self) -> Operation {
        let mut names: Vec<&str> = DELETE_QUERIES.to_vec();
        names.extend(LIST_QUERIES.iter().filter(|name| !matches!(**name, "allowWatchBookmarks" | "watch")));
        names.sort_unstable();
        let rest = json!({
            "parameters": queries(&names),
            "requestBody": {"content": {"*/*": schema(DELETE_OPTIONS)}},
            "responses": responses(&["200"], STATUS),
        });
        self.operation("delete", &self.id("deleteCollection", ""), "deletecollection", rest)
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

const WRITE_QUERIES: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const DELETE_QUERIES: &[&str] = &["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"];
const LIST_QUERIES: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

fn query(name: &str) -> Value {
    let kind = match name {
        "force" | "watch" | "allowWatchBookmarks" | "sendInitialEvents" | "orphanDependents" => "boolean",
        "limit" | "timeoutSeconds" | "gracePeriodSeconds" => "integer",
        _ => "string",
    };
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}

fn queries(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| query(name)).collect()
}

fn schema(definition: &str) -> Value {
    json!({"schema": {"$ref": format!("{REFERENCE}{definition}")}})
}

fn body(definition: &str) -> Value {
    json!({"content": {"*/*": schema(definition)}, "required": true})
}

/// A response for each code, and the one of a request without credentials.
pub(super) fn responses(codes: &[&str], definition: &str) -> Value {
    let mut responses = Map::new();
    for code in codes {
        let meaning = match *code {
            "201" => "Created",
            "202" => "Accepted",
            _ => "OK",
        };
        let content = json!({"application/json": schema(definition)});
        responses.insert((*code).to_owned(), json!({"description": meaning, "content": content}));
    }
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    Value::Object(responses)
}
