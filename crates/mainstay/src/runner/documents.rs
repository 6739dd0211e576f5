//! Schemas that are being read. Controllers that start together need mostly the same, and share one answer.
//!
//! An answer lives only as long as somebody learns from it: whoever comes later asks anew, so that nobody learns of a kind from before
//! it was changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::OnceCell;

use super::lock;
use crate::diff::Document;

/// A document that one asks for and others wait for. What cannot be read is not shared: each asks for itself then.
pub(super) type Shared = Arc<OnceCell<Document>>;

/// The documents that are being read or learnt from, by their paths.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<BTreeMap<String, Weak<OnceCell<Document>>>>);

impl Documents {
    /// The document of a path, as long as anybody holds it.
    pub(super) fn shared(&self, path: &str) -> Shared {
        let mut known = lock(&self.0);
        known.retain(|_, document| document.strong_count() > 0);
        if let Some(document) = known.get(path).and_then(Weak::upgrade) {
            return document;
        }
        let document = Shared::default();
        known.insert(path.to_owned(), Arc::downgrade(&document));
        document
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
        first.set(Document::parse(b"{}").unwrap()).unwrap();
        drop(first);
        assert!(documents.shared("/a").initialized());
        drop(second);
        assert!(!documents.shared("/a").initialized());
    }
}
