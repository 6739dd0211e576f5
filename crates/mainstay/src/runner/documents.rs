//! Schemas that are being read. Controllers that start together need mostly the same, and share one answer.
//!
//! An answer lives only as long as somebody learns from it: whoever comes later asks anew, so that nobody learns of a kind from before
//! it was changed. But who is told what another in this process was told already shares the other's rules, and reads nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::lock;
use crate::diff::{Document, Rules};
use crate::kind::Kind;

/// A document that one asks for and others wait for. What cannot be had is not shared: each asks for itself then.
pub(super) type Shared = Arc<OnceCell<Published>>;

/// The documents that are being read or learnt from, by their paths.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    by_path: Mutex<BTreeMap<String, Weak<OnceCell<Published>>>>,
    /// The last list of all documents that somebody read, and when.
    index: Mutex<Option<(Instant, Arc<Value>)>>,
}

/// Rules by the hash of the document and the kind.
type ByOrigin = BTreeMap<(Vec<u8>, Kind), Weak<Rules>>;

/// The rules that somebody in this process holds.
static HELD: Mutex<ByOrigin> = Mutex::new(BTreeMap::new());

/// A document as a server published it.
#[derive(Debug)]
pub(super) struct Published {
    text: Bytes,
    hash: Vec<u8>,
    /// Nothing in it if the text is no document.
    document: OnceLock<Option<Document>>,
}

impl Published {
    pub(super) fn new(text: Bytes) -> Self {
        Self { hash: digest(&SHA256, &text).as_ref().to_vec(), text, document: OnceLock::new() }
    }

    /// Its text as a tree, if it is JSON.
    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.text).ok()
    }

    /// The rules of a kind, if the document describes it.
    pub(super) fn rules(&self, kind: &Kind) -> Option<Arc<Rules>> {
        let key = (self.hash.clone(), kind.clone());
        if let Some(rules) = lock(&HELD).get(&key).and_then(Weak::upgrade) {
            return Some(rules);
        }
        let document = self.document.get_or_init(|| Document::parse(&self.text).ok());
        let rules = Arc::new(document.as_ref()?.rules(kind)?);
        let mut held = lock(&HELD);
        held.retain(|_, rules| rules.strong_count() > 0);
        held.insert(key, Arc::downgrade(&rules));
        Some(rules)
    }
}

impl Documents {
    /// The document of a path, as long as anybody holds it.
    pub(super) fn shared(&self, path: &str) -> Shared {
        let mut known = lock(&self.by_path);
        known.retain(|_, document| document.strong_count() > 0);
        if let Some(document) = known.get(path).and_then(Weak::upgrade) {
            return document;
        }
        let document = Shared::default();
        known.insert(path.to_owned(), Arc::downgrade(&document));
        document
    }

    /// The list of all documents, if it was read within this time: controllers of one operator need not each ask for it.
    pub(super) fn index(&self, age_max: Duration) -> Option<Arc<Value>> {
        let index = lock(&self.index);
        let (read, index) = index.as_ref()?;
        (read.elapsed() < age_max).then(|| Arc::clone(index))
    }

    pub(super) fn set_index(&self, index: &Arc<Value>) {
        *lock(&self.index) = Some((Instant::now(), Arc::clone(index)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_shared_only_while_somebody_holds_it() {
        let documents = Documents::default();
        let (first, second) = (documents.shared("/a"), documents.shared("/a"));
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &documents.shared("/b")));
        first.set(Published::new("{}".into())).unwrap();
        drop(first);
        assert!(documents.shared("/a").initialized());
        drop(second);
        assert!(!documents.shared("/a").initialized());
    }

    /// A document of one kind, of which a server tells this.
    fn published(description: &str) -> Published {
        let kinds = serde_json::json!([{"group": "example.com", "version": "v1", "kind": "Document"}]);
        let schema = serde_json::json!({
            "description": description, "type": "object", "x-kubernetes-group-version-kind": kinds,
        });
        let document = serde_json::json!({"components": {"schemas": {"it": schema}}});
        Published::new(document.to_string().into())
    }

    #[test]
    fn rules_are_shared_by_all_who_were_told_the_same_while_one_holds_them() {
        let kind = Kind::new("example.com/v1", "Document", "documents", crate::Scope::Namespaced);
        let (first, same, other) = (published("a"), published("a"), published("b"));
        let rules = first.rules(&kind).unwrap();
        let shared = same.rules(&kind).unwrap();
        assert!(Arc::ptr_eq(&rules, &shared));
        assert!(same.document.get().is_none(), "it is not even read");
        assert!(!Arc::ptr_eq(&rules, &other.rules(&kind).unwrap()));
        drop((rules, shared));
        same.rules(&kind).unwrap();
        assert!(same.document.get().is_some(), "nobody holds them any more");
        assert!(published("a").rules(&Kind::of::<k8s_openapi::api::core::v1::Secret>()).is_none());
        assert!(Published::new("no document".into()).rules(&kind).is_none());
    }
}
