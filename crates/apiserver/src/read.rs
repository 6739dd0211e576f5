//! Get and list.

use crate::options::{self, At, ListOptions, Resume};
use crate::respond::{self, ListMeta, Reply};
use crate::server::{Call, Server};
use crate::status::ApiError;
use crate::store::{Expired, Key, Listing, Object};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const LIST_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. \
     You can start a new list without the continue parameter, or use the continue token in this response to \
     retrieve the remainder of the results. Continuing with the provided token results in an inconsistent \
     list - objects that were created, modified, or deleted between the time the first chunk was returned \
     and now may show up in the list.";
const VERSION_EXPIRED: &str = "The provided resource version is too old";

/// Answers with one object.
pub(crate) fn get(server: &Server, call: &Call) -> Result<Reply, ApiError> {
    if let Some(version) = call.query.get("resourceVersion") {
        refuse_future(server, options::read_version(version)?)?;
    }
    let object = find(server, call)?;
    respond::object(call, 200, &object, server.clock.now())
}

/// The object a call names.
pub(crate) fn find(server: &Server, call: &Call) -> Result<Arc<Object>, ApiError> {
    let key = Key::new(call.namespace(), call.name());
    let found = server.store.get(&call.kind.collection, &key);
    found.ok_or_else(|| ApiError::not_found(&call.kind.resource(), call.name()))
}

/// Refuses a revision that has not come yet.
pub(crate) fn refuse_future(server: &Server, wanted: u64) -> Result<(), ApiError> {
    let current = server.store.revision();
    if wanted <= current {
        return Ok(());
    }
    Err(too_large(wanted, current))
}

/// 504: the client asks for a revision of the future.
pub(crate) fn too_large(wanted: u64, current: u64) -> ApiError {
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    let mut error = ApiError::plain(504, "Timeout", message);
    let mut details = Map::new();
    let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
    details.insert("causes".into(), Value::Array(vec![cause]));
    details.insert("retryAfterSeconds".into(), 1.into());
    error.details = Some(Box::new(details));
    error
}

/// Answers with the objects that a call selects.
pub(crate) fn list(server: &Server, call: &Call, options: &ListOptions) -> Result<Reply, ApiError> {
    let page = select(server, call, options)?;
    respond::list(call, &page.items, &page.meta, server.clock.now())
}

/// A part of a list.
pub(crate) struct Page {
    pub items: Vec<Arc<Object>>,
    pub meta: ListMeta,
}

/// Finds what a list shows.
pub(crate) fn select(server: &Server, call: &Call, options: &ListOptions) -> Result<Page, ApiError> {
    let at = match (&options.resume, options.at) {
        (Some(resume), _) => {
            // A token is the client's to forge.
            refuse_future(server, resume.revision.unwrap_or(0))?;
            resume.revision
        }
        (None, At::Newest) => None,
        (None, At::NotOlderThan(revision)) => {
            refuse_future(server, revision)?;
            None
        }
        (None, At::Exactly(revision)) => {
            refuse_future(server, revision)?;
            Some(revision)
        }
    };
    let after = options.resume.as_ref().map(|r| &r.after);
    let all = options.selection.is_everything();
    let limit = if options.limit == 0 { usize::MAX } else { options.limit };
    let store = &server.store;
    let Listing { mut items, revision, mut rest } = store
        .page(
            &call.kind.collection,
            call.namespace.as_deref(),
            at,
            after,
            if all { limit } else { usize::MAX },
        )
        .map_err(|Expired { .. }| expired(options.resume.as_ref()))?;
    if !all {
        let mut candidates = items.into_iter();
        let selected = candidates.by_ref().filter_map(|object| {
            let selected =
                options.selection.selects(&call.kind, &object).map(|selected| selected.then_some(object));
            selected.transpose()
        });
        items = selected.take(limit).collect::<Result<_, _>>()?;
        rest = candidates.len();
    }
    let mut meta = ListMeta { revision, ..ListMeta::default() };
    // A token is given whenever anything at all is left, selected or not: finding out would mean reading on.
    if let (true, Some(last)) = (rest > 0 && options.limit > 0, items.last()) {
        meta.token = Some(Resume { revision: Some(revision), after: last.key.clone() }.token());
        meta.remaining = all.then_some(rest);
    }
    Ok(Page { items, meta })
}

/// 410, with a token to go on at the newest revision if the list was a continued one.
fn expired(resume: Option<&Resume>) -> ApiError {
    let Some(resume) = resume else { return ApiError::expired(VERSION_EXPIRED) };
    let mut error = ApiError::expired(LIST_EXPIRED);
    error.token = Some(Resume { revision: None, after: resume.after.clone() }.token());
    error
}
