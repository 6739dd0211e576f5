//! What must be known of kinds before anything is decided about their objects: schemas, and whether there is a status subresource.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::documents::{Published, Shared};
use super::{Active, Runner};
use crate::diff::{Document, Rules};
use crate::execute::{Call, Failure};
use crate::kind::Kind;

/// How often schemas are asked for before a controller begins without them.
const SCHEMA_TRIES: u32 = 5;
/// The list of all documents, each with a hash of its content.
const INDEX: &str = "/openapi/v3";
/// For how long all controllers go by the same list.
const INDEX_AGE_MAX: Duration = Duration::from_secs(30);

/// What must be known of kinds before anything is decided about their objects.
#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    /// Whether the parent's kind has the status subresource.
    pub(crate) has_status: bool,
    pub(crate) rules: BTreeMap<Kind, Arc<Rules>>,
    /// By path: what the server's index says of the documents that the rules are from. Absent for those that could not be read.
    versions: BTreeMap<String, Option<String>>,
}

impl Knowledge {
    pub(crate) fn rules(&self, kind: &Kind) -> &Rules {
        static UNKNOWN: LazyLock<Rules> = LazyLock::new(Rules::unknown);
        self.rules.get(kind).map_or(&UNKNOWN, |rules| rules)
    }

    /// Whether all documents could be read.
    pub(super) fn is_complete(&self) -> bool {
        self.versions.values().all(Option::is_some)
    }

    /// Whether the same decisions follow from both.
    pub(super) fn decides_as(&self, other: &Self) -> bool {
        self.has_status == other.has_status && self.rules == other.rules
    }
}

impl Runner {
    async fn read(&self, kind: &Kind, path: String) -> Result<Bytes, Failure> {
        let (method, body) = (Method::GET, Vec::new());
        self.api.send(Call { verb: "get", method, kind, path, content_type: None, body, turn: None }).await
    }
}

/// Whether the server's index tells of other documents than were read. One that cannot be had tells of none.
pub(super) async fn has_changed(active: &Active, runner: &Runner, known: &Knowledge) -> bool {
    let index = match runner.documents.index(INDEX_AGE_MAX) {
        Some(index) => Some(index),
        None => read_index(active.controller.parent(), runner).await,
    };
    match index {
        Some(index) => known.versions.iter().any(|(path, version)| *version != version_in(&index, path)),
        None => false,
    }
}

/// What the index says of a document: its address, which has a hash of the content in it.
fn version_in(index: &Value, path: &str) -> Option<String> {
    let name = path.strip_prefix(INDEX)?.strip_prefix('/')?;
    Some(index["paths"][name]["serverRelativeURL"].as_str()?.to_owned())
}

async fn read_index(kind: &Kind, runner: &Runner) -> Option<Arc<Value>> {
    let index = Arc::new(read_document(kind, INDEX, 1, runner).await?.json()?);
    runner.documents.set_index(&index);
    Some(index)
}

/// Asks until the server answers: a decision on a guess would be worse than none. Schemas are shared with others that learn at the same
/// time, unless it has to be asked `anew`.
pub(super) async fn learn_kinds(active: &Active, runner: &Runner, anew: bool) -> Knowledge {
    let parent = active.controller.parent();
    let mut wait = Duration::from_millis(500);
    let has_status = loop {
        match has_status(parent, runner).await {
            Ok(Some(has_status)) => break has_status,
            // A new kind is served a moment before the server tells of it.
            Ok(None) => tracing::debug!(kind = %parent, "the server does not tell of the kind yet"),
            Err(failure) => {
                tracing::warn!(kind = %parent, %failure, "cannot learn whether the kind has a status subresource");
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(30));
    };
    let shared = |path: &str| if anew { Shared::default() } else { runner.documents.shared(path) };
    // Read before the documents: one that changes in between is read again later.
    let index = match runner.documents.index(INDEX_AGE_MAX).filter(|_| !anew) {
        Some(index) => index,
        None => read_index(parent, runner).await.unwrap_or_default(),
    };
    let (mut rules, mut versions) = (BTreeMap::new(), BTreeMap::new());
    let mut documents: BTreeMap<String, Shared> = BTreeMap::new();
    for watch in active.watches() {
        let kind = watch.kind();
        let path = Document::path(kind);
        if !documents.contains_key(&path) {
            let document = shared(&path);
            let read = async || read_document(kind, &path, SCHEMA_TRIES, runner).await.ok_or(());
            // Without it the rules are unknown ones, until it can be read.
            let is_read = document.get_or_try_init(read).await.is_ok();
            versions.insert(path.clone(), version_in(&index, &path).filter(|_| is_read));
            documents.insert(path.clone(), document);
        }
        if let Some(found) = documents.get(&path).and_then(|document| document.get()?.rules(kind)) {
            rules.insert(kind.clone(), found);
        }
    }
    Knowledge { has_status, rules, versions }
}

/// The schemas of a group. Without them lists are compared by their looks and statuses may name what has no place, so a server that
/// does not answer now is asked a few times.
async fn read_document(kind: &Kind, path: &str, tries: u32, runner: &Runner) -> Option<Published> {
    let mut wait = Duration::from_millis(500);
    for tries_left in (0..tries).rev() {
        let retry_after = match runner.read(kind, path.to_owned()).await {
            Ok(answer) => return Some(Published::new(answer)),
            Err(Failure::Unavailable { retry_after, .. }) if tries_left > 0 => retry_after,
            Err(failure) => {
                tracing::warn!(%kind, path, %failure, "cannot read a schema; until it can be, lists are compared by their looks");
                return None;
            }
        };
        tokio::time::sleep(retry_after.unwrap_or_default().max(wait)).await;
        wait *= 2;
    }
    None
}

/// Whether the kind has the status subresource. `None`: the server does not tell of the kind at all.
async fn has_status(kind: &Kind, runner: &Runner) -> Result<Option<bool>, Failure> {
    let root = if kind.group().is_empty() { "/api" } else { "/apis" };
    let answer = runner.read(kind, format!("{root}/{}", kind.api_version())).await?;
    let list: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let told = |name: &str| {
        let resources = list["resources"].as_array();
        resources.is_some_and(|resources| resources.iter().any(|resource| resource["name"] == name))
    };
    Ok(told(kind.plural()).then(|| told(&format!("{}/status", kind.plural()))))
}
