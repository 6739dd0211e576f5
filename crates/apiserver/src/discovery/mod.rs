//! What this server serves, told in the forms that clients ask for.
//!
//! A [`Catalog`] is a view of the served resources, ordered as kube-apiserver orders them: groups by a
//! fixed priority, custom groups last and by name, versions with the most stable and newest first. From
//! it come the legacy documents (`/api`, `/apis`, `/apis/<group>`, `/apis/<group>/<version>`) and the
//! aggregated ones. Everything is rendered on demand; [`etag`] makes the aggregated form cacheable.

#[cfg(test)]
pub(crate) mod tests;
mod versions;

pub(crate) use versions::compare_versions;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, SHA512, digest};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Text that is static for built-in kinds.
pub(crate) type Text = Cow<'static, str>;

/// The verbs of a custom kind whose definition is being deleted.
pub(crate) const TERMINATING_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];

/// A resource served in one version.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// API group, empty for the core one.
    pub(crate) group: Text,
    pub(crate) version: Text,
    pub(crate) plural: Text,
    pub(crate) singular: Text,
    pub(crate) kind: Text,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<Text>,
    pub(crate) short_names: Vec<Text>,
    pub(crate) categories: Vec<Text>,
    /// In the order discovery lists them.
    pub(crate) subresources: Vec<Subresource>,
    /// [`storage_version_hash`] of the stored form; none for what is not stored.
    pub(crate) storage_version_hash: Option<Text>,
    /// The name of its schema in `OpenAPI`; its list's is the same with `List`.
    pub(crate) definition: Text,
    /// Whether a `CustomResourceDefinition` made it.
    pub(crate) custom: bool,
}

/// Something served below each object of a resource.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    pub(crate) name: Text,
    pub(crate) kind: Text,
    /// Group and version of the kind where they are not the resource's own.
    pub(crate) group_version: Option<(Text, Text)>,
    pub(crate) verbs: Vec<Text>,
    /// The name of its schema in `OpenAPI`, where it is not the resource's own.
    pub(crate) definition: Option<Text>,
}

/// Tells stored forms apart: discovery's `storageVersionHash`.
pub(crate) fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let hash = digest(&SHA256, format!("{group}/{version}/{kind}").as_bytes());
    STANDARD.encode(&hash.as_ref()[..8])
}

/// A strong entity tag for a document's bytes, with its quotes.
pub(crate) fn etag(document: &[u8]) -> String {
    format!("\"{}\"", fingerprint([document]))
}

/// A hash of all parts in capital hexadecimal digits.
pub(crate) fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    use std::fmt::Write as _;
    let mut context = ring::digest::Context::new(&SHA512);
    for part in parts {
        context.update(part);
    }
    let hash = context.finish();
    hash.as_ref().iter().fold(String::with_capacity(128), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// The served resources in order.
#[derive(Debug)]
pub(crate) struct Catalog<'a> {
    groups: Vec<Group<'a>>,
}

#[derive(Debug)]
struct Group<'a> {
    name: &'a str,
    versions: Vec<Version<'a>>,
}

#[derive(Debug)]
struct Version<'a> {
    name: &'a str,
    /// Sorted by plural.
    resources: Vec<&'a Resource>,
}

impl<'a> Catalog<'a> {
    /// Orders resources. A group or version exists if something is served in it.
    pub(crate) fn new(resources: impl IntoIterator<Item = &'a Resource>) -> Self {
        let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<&Resource>>> = BTreeMap::new();
        for resource in resources {
            let versions = groups.entry(&resource.group).or_default();
            versions.entry(&resource.version).or_default().push(resource);
        }
        let mut groups: Vec<Group<'_>> = groups
            .into_iter()
            .map(|(name, versions)| {
                let sorted = |(name, mut resources): (&'a str, Vec<&'a Resource>)| {
                    resources.sort_by(|a, b| a.plural.cmp(&b.plural));
                    Version { name, resources }
                };
                let mut versions: Vec<_> = versions.into_iter().map(sorted).collect();
                versions.sort_by(|a, b| compare_versions(a.name, b.name));
                Group { name, versions }
            })
            .collect();
        // Names break ties: they are sorted already and the sort is stable.
        groups.sort_by_key(|group| std::cmp::Reverse(versions::group_priority(group.name)));
        Catalog { groups }
    }

    fn named_groups(&self) -> impl Iterator<Item = &Group<'a>> {
        self.groups.iter().filter(|group| !group.name.is_empty())
    }

    fn version(&self, group: &str, version: &str) -> Option<&Version<'a>> {
        let group = self.groups.iter().find(|found| found.name == group)?;
        group.versions.iter().find(|found| found.name == version)
    }

    /// Every group and version with its resources, in order.
    pub(crate) fn group_versions(&self) -> impl Iterator<Item = (&'a str, &'a str, &[&'a Resource])> {
        self.groups.iter().flat_map(|group| {
            group.versions.iter().map(|version| (group.name, version.name, version.resources.as_slice()))
        })
    }

    /// `/api`: the versions of the core group.
    pub(crate) fn api_versions(&self, server_address: &str) -> Value {
        let core = self.groups.iter().find(|group| group.name.is_empty());
        let versions: Vec<&str> =
            core.iter().flat_map(|group| &group.versions).map(|version| version.name).collect();
        json!({
            "kind": "APIVersions",
            "versions": versions,
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
        })
    }

    /// `/apis`: all named groups.
    pub(crate) fn group_list(&self) -> Value {
        let groups: Vec<Value> = self.named_groups().map(|group| Value::Object(describe(group))).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/apis/<group>`; none if nothing is served in it.
    pub(crate) fn group(&self, name: &str) -> Option<Value> {
        let mut description = describe(self.named_groups().find(|group| group.name == name)?);
        description.insert("kind".into(), "APIGroup".into());
        description.insert("apiVersion".into(), "v1".into());
        Some(Value::Object(description))
    }

    /// `/api/<version>` (for the empty group) or `/apis/<group>/<version>`; none if nothing is served
    /// in it.
    pub(crate) fn resource_list(&self, group: &str, version: &str) -> Option<Value> {
        let found = self.version(group, version)?;
        let resources: Vec<Value> = found.resources.iter().flat_map(|resource| legacy(resource)).collect();
        let mut list = json!({
            "kind": "APIResourceList",
            "groupVersion": group_version(group, version),
            "resources": resources,
        });
        // The core group's list is older than the field.
        if !group.is_empty() {
            list["apiVersion"] = "v1".into();
        }
        Some(list)
    }

    /// The aggregated form of `/api` (`core`) or `/apis`, version v2.
    pub(crate) fn aggregated(&self, core: bool) -> Value {
        let groups = self.groups.iter().filter(|group| group.name.is_empty() == core);
        let items: Vec<Value> = groups.map(aggregated_group).collect();
        json!({
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        })
    }
}

/// `apps/v1`, or `v1` for the core group.
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn describe(group: &Group<'_>) -> Map<String, Value> {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            json!({"groupVersion": group_version(group.name, version.name), "version": version.name})
        })
        .collect();
    let mut description = Map::new();
    description.insert("name".into(), group.name.into());
    description.insert("preferredVersion".into(), versions.first().cloned().unwrap_or_default());
    description.insert("versions".into(), versions.into());
    description
}

fn insert_texts(object: &mut Value, field: &str, texts: &[Text]) {
    if !texts.is_empty() {
        object[field] = texts.iter().map(|text| Value::from(text.as_ref())).collect();
    }
}

/// A resource and its subresources in the legacy form.
fn legacy(resource: &Resource) -> Vec<Value> {
    let mut own = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    insert_texts(&mut own, "shortNames", &resource.short_names);
    insert_texts(&mut own, "categories", &resource.categories);
    if let Some(hash) = &resource.storage_version_hash {
        own["storageVersionHash"] = hash.as_ref().into();
    }
    let below = resource.subresources.iter().map(|subresource| {
        let mut below = json!({
            "name": format!("{}/{}", resource.plural, subresource.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": subresource.kind,
            "verbs": subresource.verbs,
        });
        if let Some((group, version)) = &subresource.group_version {
            below["group"] = group.as_ref().into();
            below["version"] = version.as_ref().into();
        }
        below
    });
    std::iter::once(own).chain(below).collect()
}

fn aggregated_group(group: &Group<'_>) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> =
                version.resources.iter().map(|resource| aggregated_resource(resource)).collect();
            json!({"version": version.name, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource) -> Value {
    // Built-in kinds leave out the group and version they stand under; custom ones don't.
    let (group, version) =
        if resource.custom { (resource.group.as_ref(), resource.version.as_ref()) } else { ("", "") };
    let mut out = json!({
        "resource": resource.plural,
        "responseKind": {"group": group, "version": version, "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    insert_texts(&mut out, "shortNames", &resource.short_names);
    insert_texts(&mut out, "categories", &resource.categories);
    let below = resource.subresources.iter().map(|subresource| {
        let (group, version) = subresource
            .group_version
            .as_ref()
            .map_or((group, version), |(group, version)| (group.as_ref(), version.as_ref()));
        json!({
            "subresource": subresource.name,
            "responseKind": {"group": group, "version": version, "kind": subresource.kind},
            "verbs": subresource.verbs,
        })
    });
    let below: Vec<Value> = below.collect();
    if !below.is_empty() {
        out["subresources"] = below.into();
    }
    out
}
