//! A served kind: one resource at one version, and all that the request handlers ask of it.

use crate::bounds::OBJECT_BYTES_MAX;
use crate::builtin::rules::Rules;
use crate::schema::{CompiledSchema, Schema, SchemaRef, TooManyDefaults};
use crate::status::Subject;
use crate::store::{CollectionId, Object, Revision, Unreadable};
use crate::table::Printer;
use bytes::Bytes;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// One resource at one version.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "the names are those of Kubernetes")]
pub(crate) struct Kind {
    pub group: String,
    pub version: String,
    /// `v1`, or `group/version`.
    pub api_version: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    pub subresources: Vec<Subresource>,
    pub collection: CollectionId,
    pub nature: Nature,
    pub printer: Printer,
    /// What stands before a stored object's own fields when it is sent at this version.
    prefix: Bytes,
}

/// A part of an object with an endpoint of its own.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    /// `status`, `scale`, `binding`, …
    pub name: String,
    /// The kind it is sent as, if not the object's own.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub verbs: Vec<String>,
}

/// Where a kind comes from.
pub(crate) enum Nature {
    /// Compiled in.
    Builtin(Builtin),
    /// Declared by a `CustomResourceDefinition`.
    Custom(Box<Custom>),
}

impl std::fmt::Debug for Nature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Nature::Builtin(_)) { "Builtin" } else { "Custom" })
    }
}

/// How the handlers treat a built-in kind.
pub(crate) struct Builtin {
    pub schema: SchemaRef,
    /// `storageVersionHash` in discovery.
    pub storage_hash: &'static str,
    pub rules: &'static Rules,
    /// A deletion answers with the object rather than with a `Status`.
    pub returns_deleted: bool,
    /// Replacing an absent object creates it.
    pub created_by_update: bool,
    /// A replacement may leave out the resource version.
    pub unconditional_update: bool,
}

/// What a `CustomResourceDefinition` says of one of its versions.
#[derive(Debug)]
pub(crate) struct Custom {
    /// The definition's name.
    pub definition: String,
    /// Its uid: a definition that is deleted and made again is another one.
    pub uid: String,
    /// The version that the definition stores objects in.
    pub storage_version: String,
    /// Its schema, unless this is that version.
    pub storage_schema: Option<Arc<CompiledSchema>>,
    pub status: bool,
    pub scale: Option<Scale>,
    /// `additionalPrinterColumns` as given.
    pub columns: Vec<Value>,
    /// JSON paths of `selectableFields`.
    pub selectable: Vec<String>,
    pub schema: Arc<CompiledSchema>,
    /// The `openAPIV3Schema` as given.
    pub open_api: Value,
    pub deprecation: Option<String>,
    /// Objects written before this revision were written under another schema.
    pub since: Revision,
    /// New objects are refused because the definition is being deleted.
    pub terminating: bool,
    /// The version is served; others only convert.
    pub served: bool,
}

/// Where a custom kind keeps what the scale subresource shows.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub spec: String,
    pub status: String,
    pub selector: Option<String>,
}

/// The names of a kind, to make one from.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the names are those of Kubernetes")]
pub(crate) struct Names {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
}

impl Kind {
    pub(crate) fn new(
        names: Names,
        namespaced: bool,
        verbs: Vec<String>,
        subresources: Vec<Subresource>,
        collection: CollectionId,
        nature: Nature,
    ) -> Kind {
        let Names { group, version, kind, list_kind, plural, singular, short_names, categories } = names;
        let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        let printer = match &nature {
            Nature::Builtin(_) => Printer::builtin(&group, &kind),
            Nature::Custom(custom) => Printer::custom(&custom.columns),
        };
        // Go writes its own types with the kind first, and maps, as which it keeps custom objects, in the order of their keys.
        let prefix = match &nature {
            Nature::Builtin(_) => format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\","),
            Nature::Custom(_) => format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\","),
        }
        .into();
        Kind {
            group,
            version,
            api_version,
            kind,
            list_kind,
            plural,
            singular,
            short_names,
            categories,
            namespaced,
            verbs,
            subresources,
            collection,
            nature,
            printer,
            prefix,
        }
    }

    pub(crate) fn schema(&self) -> &Schema {
        match &self.nature {
            Nature::Builtin(builtin) => &builtin.schema,
            Nature::Custom(custom) => &custom.schema,
        }
    }

    /// The schema by which ownership of fields is tracked and patches are merged.
    pub(crate) fn owned_schema(&self) -> &SchemaRef {
        match &self.nature {
            Nature::Builtin(builtin) => &builtin.schema,
            Nature::Custom(custom) => custom.schema.owned(),
        }
    }

    /// How refusals name the resource: by its plural.
    pub(crate) fn resource(&self) -> Subject<'_> {
        Subject { group: &self.group, kind: &self.plural }
    }

    /// The Go package of the kind inside kube-apiserver, which shows in some refusals.
    pub(crate) fn internal_group(&self) -> &str {
        match self.group.split('.').next() {
            None | Some("") => "core",
            Some(first) => first,
        }
    }

    /// How validation errors name the kind.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { group: &self.group, kind: &self.kind }
    }

    pub(crate) fn builtin(&self) -> Option<&Builtin> {
        match &self.nature {
            Nature::Builtin(builtin) => Some(builtin),
            Nature::Custom(_) => None,
        }
    }

    pub(crate) fn custom(&self) -> Option<&Custom> {
        match &self.nature {
            Nature::Builtin(_) => None,
            Nature::Custom(custom) => Some(custom),
        }
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Whether an object is sent at this version just as it is stored.
    pub(crate) fn stored_as_sent(&self, object: &Object) -> bool {
        match &self.nature {
            // The two groups of events keep one collection, in the core group's form.
            Nature::Builtin(_) => self.group != "events.k8s.io",
            Nature::Custom(custom) => custom.storage_schema.is_none() && object.revision >= custom.since,
        }
    }

    /// The text that is put before a stored object's fields to make it a whole one.
    pub(crate) fn prefix(&self) -> &Bytes {
        &self.prefix
    }

    /// A stored object's text as a whole one of this version.
    pub(crate) fn whole(&self, json: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(self.prefix.len() + json.len());
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(json.get(1..).unwrap_or_default());
        out.into()
    }

    /// Stamps a tree with this version's names.
    pub(crate) fn stamp(&self, tree: &mut Map<String, Value>) {
        tree.insert("apiVersion".into(), self.api_version.as_str().into());
        tree.insert("kind".into(), self.kind.as_str().into());
    }

    /// A stored object as a tree of this version. Its CRD may have gained defaults since it was stored. If these would make
    /// it larger than an object may be, it is shown without them, so that it can still be listed and deleted.
    pub(crate) fn tree(&self, object: &Object) -> Result<Value, Unreadable> {
        let mut value = object.value()?;
        if let Value::Object(tree) = &mut value {
            self.stamp(tree);
        }
        let room = OBJECT_BYTES_MAX.saturating_sub(object.json.len());
        if !self.stored_as_sent(object) && self.convert(&mut value, room).is_err() {
            return self.written_tree(object);
        }
        Ok(value)
    }

    /// A stored object as a tree of this version, nothing filled in.
    pub(crate) fn written_tree(&self, object: &Object) -> Result<Value, Unreadable> {
        let mut value = object.value()?;
        if let Value::Object(tree) = &mut value {
            self.stamp(tree);
        }
        crate::schema::prune(&mut value, self.schema());
        Ok(value)
    }

    /// Brings a tree in stored form, or one of an older schema, into the form of this version. Defaults may add at most
    /// `defaults_max` bytes; if they would add more, the tree is of no use.
    fn convert(&self, value: &mut Value, defaults_max: usize) -> Result<(), TooManyDefaults> {
        match &self.nature {
            Nature::Builtin(builtin) => {
                crate::builtin::rules::objects::event::from_core(value);
                // What is left unset has another form in the other group; nothing in it can be wrong.
                let _ = crate::builtin::conform::conform(value, &builtin.schema);
            }
            Nature::Custom(custom) => {
                // Defaults are those of the version that is stored.
                if custom.storage_schema.is_none() {
                    crate::schema::prune(value, self.schema());
                }
                let storage_schema = custom.storage_schema.as_deref().unwrap_or(&custom.schema);
                crate::schema::apply_defaults_within(value, storage_schema, defaults_max)?;
                if custom.storage_schema.is_some() {
                    crate::schema::prune(value, self.schema());
                }
            }
        }
        Ok(())
    }

    /// An object of another version of the same resource as one of this version.
    pub(crate) fn converted_from(&self, other: &Kind, mut value: Value) -> Option<Value> {
        if self.collection != other.collection {
            return None;
        }
        if let Cow::Owned(stored) = other.stored(&value) {
            value = stored;
        }
        if let Value::Object(tree) = &mut value {
            self.stamp(tree);
        }
        if self.version != other.version || self.group != other.group {
            self.convert(&mut value, OBJECT_BYTES_MAX).ok()?;
        }
        Some(value)
    }

    /// A tree of this version in the form that is stored.
    pub(crate) fn stored<'a>(&self, value: &'a Value) -> Cow<'a, Value> {
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut stored = value.clone();
            change(&mut stored);
            Cow::Owned(stored)
        };
        match &self.nature {
            Nature::Builtin(_) if self.group == "events.k8s.io" => {
                changed(&crate::builtin::rules::objects::event::to_core)
            }
            Nature::Builtin(_) => Cow::Borrowed(value),
            Nature::Custom(custom) => match &custom.storage_schema {
                Some(schema) => changed(&|value| drop(crate::schema::prune(value, schema))),
                None => Cow::Borrowed(value),
            },
        }
    }
}
