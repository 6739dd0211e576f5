//! Reads what a tree is made of.
//!
//! First the metadata of everything, to see who owns whom; then the objects that belong to a root. What is in Secrets and
//! `ConfigMap`s is never read: it says nothing about how they do.

use super::tree::{self, Tree};
use crate::cluster::{Catalog, Cluster, Resource, list, list_metadata};
use crate::failure::Failure;
use futures::StreamExt as _;
use mainstay::Kind;
use serde_json::Value;
use std::collections::BTreeMap;

/// Requests under way at one time.
const AT_ONCE: usize = 16;

/// Trees, and the kinds that could not be looked at, with the reason.
pub(crate) struct Gathered {
    pub(crate) trees: Vec<Tree>,
    pub(crate) left_out: Vec<(Kind, String)>,
}

/// The trees of these roots. With a namespace, nothing else is looked at.
pub(crate) async fn gather(
    cluster: &Cluster,
    catalog: &Catalog,
    roots: Vec<Value>,
    namespace: Option<&str>,
) -> Result<Gathered, Failure> {
    if roots.is_empty() {
        return Ok(Gathered { trees: Vec::new(), left_out: Vec::new() });
    }
    let asked =
        catalog.preferred().filter(|resource| resource.is_listed() && may_belong(resource, namespace));
    let kinds: Vec<Kind> = asked.map(|resource| resource.kind.clone()).collect();
    let mut left_out = Vec::new();
    let mut owned: Vec<(Kind, Value)> = Vec::new();
    let found: Vec<_> = futures::stream::iter(kinds)
        .map(async |kind| {
            let found = list_metadata(&cluster.client, &kind.collection_path(namespace)).await;
            (kind, found)
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    for (kind, found) in found {
        match found {
            Ok(objects) => owned.extend(objects.into_iter().map(|object| (kind.clone(), object))),
            // Gone since it was discovered, or not to be listed after all.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => {}
            Err(kube::Error::Api(status)) => left_out.push((kind, status.message)),
            Err(error) => return Err(cluster.failed(&format!("list {}", kind.plural()), error)),
        }
    }
    owned.retain(|(_, object)| tree::owners(object).next().is_some());
    let belonging = tree::belonging(&roots, &owned);
    let whole = read(cluster, &belonging, namespace).await?;
    let objects = belonging.into_iter().map(|(kind, object)| {
        let uid = tree::uid(&object).to_owned();
        let mut object = whole.get(&uid).cloned().unwrap_or(object);
        object["kind"] = kind.kind().into();
        object["apiVersion"] = kind.api_version().into();
        object
    });
    Ok(Gathered { trees: tree::grow(roots, objects.collect()), left_out })
}

fn may_belong(resource: &Resource, namespace: Option<&str>) -> bool {
    let in_reach = namespace.is_none() || resource.kind.scope() == mainstay::Scope::Namespaced;
    // Events are about objects, not of them, and there are many.
    in_reach && resource.kind.plural() != "events"
}

/// Whether an object of this kind says how it does.
fn tells(kind: &Kind) -> bool {
    !(kind.group().is_empty() && matches!(kind.kind(), "Secret" | "ConfigMap"))
}

/// The objects themselves, by uid.
async fn read(
    cluster: &Cluster,
    belonging: &[(Kind, Value)],
    namespace: Option<&str>,
) -> Result<BTreeMap<String, Value>, Failure> {
    let mut kinds: Vec<&Kind> = belonging.iter().map(|(kind, _)| kind).filter(|kind| tells(kind)).collect();
    kinds.sort();
    kinds.dedup();
    let mut whole = BTreeMap::new();
    for kind in kinds {
        let found = list(&cluster.client, &kind.collection_path(namespace)).await;
        let found = found.map_err(|error| cluster.failed(&format!("list {}", kind.plural()), error))?;
        whole.extend(found.into_iter().map(|object| (tree::uid(&object).to_owned(), object)));
    }
    Ok(whole)
}
