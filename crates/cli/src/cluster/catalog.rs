//! Which kinds the cluster has, and what people call them.

use http::Request;
use kube::{Client, Error};
use mainstay::{Key, Kind, Scope};
use serde::Deserialize;
use serde_json::Value;

/// Everything in one answer; every server that is supported has it.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A kind, and what people call it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resource {
    pub(crate) kind: Kind,
    singular: String,
    short_names: Vec<String>,
    verbs: Vec<String>,
}

impl Resource {
    /// Whether its objects can be listed.
    pub(crate) fn is_listed(&self) -> bool {
        self.verbs.iter().any(|verb| verb == "list")
    }

    fn is_called(&self, name: &str) -> bool {
        self.kind.plural() == name
            || self.singular == name
            || self.kind.kind().to_lowercase() == name
            || self.short_names.iter().any(|short| short == name)
    }
}

/// All kinds in the order of discovery: what comes first is preferred.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog(Vec<Resource>);

impl Catalog {
    pub(crate) async fn fetch(client: &Client) -> Result<Self, Error> {
        let mut catalog = Catalog::default();
        for root in ["/api", "/apis"] {
            let request = Request::get(root).header("accept", AGGREGATED).body(Vec::new());
            catalog.add(client.request(request.map_err(Error::HttpError)?).await?);
        }
        Ok(catalog)
    }

    /// An object's kind, if the cluster has it.
    pub(crate) fn kind_of(&self, object: &Value) -> Option<&Kind> {
        let (version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
        let mut kinds = self.0.iter().map(|resource| &resource.kind);
        kinds.find(|known| known.kind() == kind && known.api_version() == version)
    }

    /// Where an object is, if the cluster has its kind.
    pub(crate) fn path_of(&self, object: &Value) -> Option<String> {
        let (kind, metadata) = (self.kind_of(object)?, &object["metadata"]);
        let namespace = metadata["namespace"].as_str().filter(|_| kind.scope() == Scope::Namespaced);
        Some(kind.object_path(&Key::new(namespace, metadata["name"].as_str()?)))
    }

    fn add(&mut self, groups: Groups) {
        for group in groups.items {
            for version in group.versions {
                let api_version = match group.metadata.name.as_str() {
                    "" => version.version,
                    group => format!("{group}/{}", version.version),
                };
                self.0.extend(version.resources.into_iter().filter_map(|found| {
                    let scope = if found.scope == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
                    Some(Resource {
                        kind: Kind::new(&api_version, &found.response_kind?.kind, &found.resource, scope),
                        singular: found.singular_resource,
                        short_names: found.short_names,
                        verbs: found.verbs,
                    })
                }));
            }
        }
    }

    /// Every kind once, in its preferred version.
    pub(crate) fn preferred(&self) -> impl Iterator<Item = &Resource> {
        let is_first = |place: usize, one: &Resource| {
            let same = |other: &Resource| {
                other.kind.group() == one.kind.group() && other.kind.kind() == one.kind.kind()
            };
            !self.0[..place].iter().any(same)
        };
        self.0.iter().enumerate().filter(move |(place, one)| is_first(*place, one)).map(|(_, one)| one)
    }

    /// The kind that is called so: `deploy`, `deployments.apps`, `Deployment`, `Deployment.apps/v1`.
    pub(crate) fn find(&self, name: &str) -> Option<&Resource> {
        let name = name.to_lowercase();
        let (short, group) = match name.split_once('.') {
            Some((short, group)) => (short, Some(group)),
            None => (name.as_str(), None),
        };
        // A version alone follows the dot in the core group: `Pod.v1`.
        let in_group = |kind: &Kind| {
            group.is_none_or(|group| {
                let versioned = kind.api_version();
                kind.group() == group
                    || versioned == group
                    || versioned == format!("{group}/{}", kind.version())
            })
        };
        self.0.iter().find(|resource| resource.is_called(short) && in_group(&resource.kind))
    }

    /// Whether this very kind is served in this very version.
    pub(crate) fn serves(&self, kind: &Kind) -> bool {
        self.0.iter().any(|resource| resource.kind == *kind)
    }

    /// A kind whose name is nearly this one.
    pub(crate) fn similar(&self, name: &str) -> Option<&Resource> {
        let name = name.to_lowercase();
        let near = |known: &str| is_near(known, &name);
        self.preferred().find(|known| near(known.kind.plural()) || near(&known.singular))
    }
}

/// Whether one letter more, less or other makes one text of the other.
fn is_near(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let before = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[before..], &other[before..]);
    let after = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    one.len() - after <= 1 && other.len() - after <= 1
}

#[derive(Debug, Deserialize)]
struct Groups {
    items: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Debug, Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Found>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ResponseKind {
    kind: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn catalog() -> Catalog {
        let resource = |plural: &str, kind: &str, short: &str| {
            json!({"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced",
                "singularResource": kind.to_lowercase(), "shortNames": [short], "verbs": ["list"]})
        };
        let mut catalog = Catalog::default();
        let core = json!({"metadata": {}, "versions": [{"version": "v1", "resources": [
            resource("pods", "Pod", "po"), resource("events", "Event", "ev")]}]});
        let apps = json!({"metadata": {"name": "apps"}, "versions": [
            {"version": "v1", "resources": [resource("deployments", "Deployment", "deploy")]},
            {"version": "v1beta1", "resources": [resource("deployments", "Deployment", "deploy")]}]});
        let events = json!({"metadata": {"name": "events.k8s.io"}, "versions": [
            {"version": "v1", "resources": [resource("events", "Event", "ev")]}]});
        catalog.add(serde_json::from_value(json!({"items": [core, apps, events]})).unwrap());
        catalog
    }

    #[test]
    fn a_kind_is_found_by_any_of_its_names() {
        let catalog = catalog();
        let found = |name: &str| catalog.find(name).map(|found| found.kind.to_string());
        for name in ["deploy", "deployment", "Deployments", "deployments.apps", "Deployment.apps/v1"] {
            assert_eq!(found(name).as_deref(), Some("Deployment.apps/v1"), "{name}");
        }
        assert_eq!(found("Deployment.apps/v1beta1").as_deref(), Some("Deployment.apps/v1beta1"));
        assert_eq!(found("Pod.v1").as_deref(), Some("Pod.v1"));
        assert_eq!(found("events").as_deref(), Some("Event.v1"), "the core group comes first");
        assert_eq!(found("events.events.k8s.io").as_deref(), Some("Event.events.k8s.io/v1"));
        assert_eq!((found("deployments.example.com"), found("nothing")), (None, None));
    }

    #[test]
    fn each_kind_is_listed_once() {
        let kinds: Vec<_> = catalog().preferred().map(|found| found.kind.to_string()).collect();
        assert_eq!(kinds, ["Pod.v1", "Event.v1", "Deployment.apps/v1", "Event.events.k8s.io/v1"]);
    }

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let catalog = catalog();
        let similar = |name: &str| catalog.similar(name).map(|found| found.kind.plural().to_owned());
        assert_eq!(similar("deploymet").as_deref(), Some("deployments"));
        assert_eq!(similar("podz").as_deref(), Some("pods"));
        assert_eq!(similar("xyz"), None);
    }
}
