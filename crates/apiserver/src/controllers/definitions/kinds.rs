//! From a CRD to the kinds that are served.

use crate::builtin::rules::json::text_at;
use crate::builtin::rules::objects::crd;
use crate::kind::{Custom, Kind, Names, Nature, Scale, Subresource};
use crate::offload::offload;
use crate::schema::CompiledSchema;
use crate::server::Server;
use crate::store::{CollectionId, Revision};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The kinds that a definition's versions make.
pub(super) async fn kinds(definition: &Value, revision: Revision, server: &Server) -> Vec<Kind> {
    let versions =
        definition.pointer("/spec/versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut compiled = Compiled { definition, revision, server, done: HashMap::new() };
    for version in versions {
        compiled.compile(version).await;
    }
    versions.iter().map(|version| kind(&compiled, version)).collect()
}

/// The schemas of one CRD's versions, each compiled once.
struct Compiled<'a> {
    definition: &'a Value,
    revision: Revision,
    server: &'a Server,
    /// By version: the schema, and since which revision it is served.
    done: HashMap<&'a str, (Arc<CompiledSchema>, Revision)>,
}

impl<'a> Compiled<'a> {
    /// Compiles the schema of a version, unless the kind that is served has the same.
    async fn compile(&mut self, version: &'a Value) {
        let (name, open_api) = (text_at(version, "/name"), open_api(version));
        let group = text_at(self.definition, "/spec/group");
        let plural = text_at(self.definition, "/status/acceptedNames/plural");
        let before = self.server.registry.find(group, name, plural);
        let uid = text_at(self.definition, "/metadata/uid");
        let same = before
            .as_ref()
            .and_then(|kind| kind.custom())
            .filter(|custom| custom.open_api == *open_api && custom.uid == uid);
        let done = if let Some(custom) = same {
            (custom.schema.clone(), custom.since)
        } else {
            let open_api = open_api.into_owned();
            (Arc::new(offload(move |_| CompiledSchema::read(&open_api)).await), self.revision)
        };
        self.done.insert(name, done);
    }

    /// The schema of a version, and since when it is served.
    fn schema(&self, version: &Value) -> Option<&(Arc<CompiledSchema>, Revision)> {
        self.done.get(text_at(version, "/name"))
    }
}

/// The schema that a version brings, or that of any object.
fn open_api(version: &Value) -> Cow<'_, Value> {
    match version.pointer("/schema/openAPIV3Schema") {
        Some(schema) => Cow::Borrowed(schema),
        None => Cow::Owned(json!({"type": "object"})),
    }
}

fn kind(compiled: &Compiled<'_>, version: &Value) -> Kind {
    let definition = compiled.definition;
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
    let open_api = open_api(version).into_owned();
    // Each version has been compiled.
    let (schema, since) = match compiled.schema(version) {
        Some(done) => done.clone(),
        None => (Arc::new(CompiledSchema::read(&open_api)), compiled.revision),
    };
    let storage_schema = storage_schema(compiled, version);
    let scale = version.pointer("/subresources/scale").map(|scale| Scale {
        spec: text_at(scale, "/specReplicasPath").to_owned(),
        status: text_at(scale, "/statusReplicasPath").to_owned(),
        selector: scale.get("labelSelectorPath").and_then(Value::as_str).map(str::to_owned),
    });
    let custom = Custom {
        definition: text_at(definition, "/metadata/name").to_owned(),
        uid: text_at(definition, "/metadata/uid").to_owned(),
        storage_version: crd::storage_version(definition).unwrap_or_default().to_owned(),
        storage_schema,
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
fn storage_schema(compiled: &Compiled<'_>, version: &Value) -> Option<Arc<CompiledSchema>> {
    if version["storage"] == Value::Bool(true) {
        return None;
    }
    let versions = compiled.definition.pointer("/spec/versions").and_then(Value::as_array)?;
    let storage = versions.iter().find(|v| v["storage"] == Value::Bool(true))?;
    storage.pointer("/schema/openAPIV3Schema")?;
    compiled.schema(storage).map(|(schema, _)| schema.clone())
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
