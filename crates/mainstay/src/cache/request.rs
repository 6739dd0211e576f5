//! The requests of lists and watches. Pure.

use http::Request;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::scope::Selection;
use crate::kind::Kind;

/// Everything that has a meaning in a query is escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PAGE_ITEMS: &str = "500";

/// What is asked of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question<'a> {
    /// The state, as events that end with a bookmark, and then every change.
    StreamedList { timeout_seconds: u64 },
    /// A page of the state: the first one, or the one of a token.
    Page { token: &'a str, limited: bool },
    /// The server's revision: a page with at most one item.
    Revision,
    /// Every change from a version on.
    Changes { from: &'a str, timeout_seconds: u64 },
}

/// The request of a question.
pub(super) fn request(
    kind: &Kind,
    selection: &Selection,
    question: Question<'_>,
) -> Result<Request<Body>, http::Error> {
    let mut query = Query(kind.collection_path(selection.scope.namespace.as_deref()), '?');
    match question {
        Question::StreamedList { timeout_seconds } => {
            query.add("watch", "true");
            query.add("sendInitialEvents", "true");
            query.add("resourceVersionMatch", "NotOlderThan");
            query.add("allowWatchBookmarks", "true");
            query.add("timeoutSeconds", &timeout_seconds.to_string());
        }
        Question::Page { token, limited } => {
            if limited {
                query.add("limit", PAGE_ITEMS);
            }
            if !token.is_empty() {
                query.add("continue", token);
            }
        }
        // Without `resourceVersion` the answer is the newest state, never that of a cache that lags behind.
        Question::Revision => query.add("limit", "1"),
        Question::Changes { from, timeout_seconds } => {
            query.add("watch", "true");
            query.add("resourceVersion", from);
            query.add("allowWatchBookmarks", "true");
            query.add("timeoutSeconds", &timeout_seconds.to_string());
        }
    }
    if let Some(labels) = selection.scope.labels.as_ref().filter(|labels| !labels.is_everything()) {
        query.add("labelSelector", &labels.to_string());
    }
    if let Some(name) = &selection.scope.name {
        query.add("fieldSelector", &format!("metadata.name={name}"));
    }
    let list = matches!(question, Question::Page { .. } | Question::Revision);
    // A server that cannot reduce its answers sends whole objects, of which only the metadata is kept.
    let accept = match (selection.options.metadata_only, list) {
        (true, true) => {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;q=0.5"
        }
        (true, false) => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;q=0.5"
        }
        (false, _) => "application/json",
    };
    let mut request = Request::get(query.0).header(ACCEPT, accept);
    if !list {
        // A compressed stream delivers events late, and not every client can read one.
        request = request.header(ACCEPT_ENCODING, "identity");
    }
    request.body(Body::empty())
}

/// A path with its parameters, and what goes before the next of them.
struct Query(String, char);

impl Query {
    fn add(&mut self, name: &str, value: &str) {
        self.0.push(self.1);
        self.1 = '&';
        self.0.push_str(name);
        self.0.push('=');
        self.0.extend(utf8_percent_encode(value, ESCAPED));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;
    use crate::cache::{Options, WatchScope};

    fn check(scope: WatchScope, metadata_only: bool, question: Question<'_>, expect: &Expect) {
        let options = Options { metadata_only, ..Options::default() };
        let selection = Selection { scope, options };
        let request = request(&Kind::of::<Deployment>(), &selection, question).unwrap();
        let accept = request.headers()[ACCEPT].to_str().unwrap();
        expect.assert_eq(&format!("{}\n{accept}", request.uri()));
    }

    #[test]
    fn streamed_list_asks_for_the_newest_state_and_its_end() {
        check(
            WatchScope::all(),
            false,
            Question::StreamedList { timeout_seconds: 290 },
            &expect![[r#"
                /apis/apps/v1/deployments?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=290
                application/json"#]],
        );
    }

    #[test]
    fn pages_and_changes_keep_to_the_scope() {
        let labels = "app=web,tier in (a,b)".parse().unwrap();
        let scope = WatchScope::namespace("shop").labelled(labels).named("x");
        check(
            scope.clone(),
            true,
            Question::Page { token: "a+b==", limited: true },
            &expect![[r#"
                /apis/apps/v1/namespaces/shop/deployments?limit=500&continue=a%2Bb%3D%3D&labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29&fieldSelector=metadata.name%3Dx
                application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;q=0.5"#]],
        );
        check(
            scope,
            true,
            Question::Changes { from: "17", timeout_seconds: 290 },
            &expect![[r#"
                /apis/apps/v1/namespaces/shop/deployments?watch=true&resourceVersion=17&allowWatchBookmarks=true&timeoutSeconds=290&labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29&fieldSelector=metadata.name%3Dx
                application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;q=0.5"#]],
        );
        check(
            WatchScope::all(),
            false,
            Question::Page { token: "", limited: false },
            &expect![[r#"
                /apis/apps/v1/deployments
                application/json"#]],
        );
    }
}
