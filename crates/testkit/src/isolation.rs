//! Keeps tests that share a cluster apart.
//!
//! Every request of a test passes here. One that could see or change what belongs to another test is refused with 403,
//! and the test fails at once with a message that says what to do. The rules are the same on the embedded cluster, which
//! nobody shares, so that a mistake is found without a real one:
//!
//! - In namespaces: only the test's own, and those whose name comes from [`unique_name`].
//! - Across namespaces: only lists and watches of kinds whose plural comes from [`unique_name`], or by a selector that has
//!   such a name in it.
//! - Outside of namespaces: anything may be read. Only objects whose name comes from [`unique_name`] may be changed.
//!   Shared CRDs may be created, which is what [`Cluster::define`](crate::Cluster::define) does.
//!
//! A test that is right to look further, because whatever it acts on is its own, takes the client of
//! [`Cluster::unrestricted`](crate::Cluster::unrestricted).
//!
//! The last requests are kept, with their answers, and are part of the log of a test that fails.
//!
//! [`unique_name`]: crate::cluster::unique_name

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use tokio::sync::watch;
use tower_service::Service;

use crate::cluster::is_unique;

/// Requests that the log of a failed test goes back.
const LOG_LINES_MAX: usize = 1_000;

/// Built-in kinds that are in no namespace. A list of them is not a list of all namespaces.
const CLUSTER_SCOPED: [&str; 30] = [
    "apiservices",
    "certificatesigningrequests",
    "clusterrolebindings",
    "clusterroles",
    "clustertrustbundles",
    "componentstatuses",
    "csidrivers",
    "csinodes",
    "customresourcedefinitions",
    "deviceclasses",
    "flowschemas",
    "ingressclasses",
    "ipaddresses",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "namespaces",
    "nodes",
    "persistentvolumes",
    "priorityclasses",
    "prioritylevelconfigurations",
    "resourceslices",
    "runtimeclasses",
    "servicecidrs",
    "storageclasses",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "volumeattachments",
    "volumeattributesclasses",
];

/// What stands between a test and a cluster that it may share.
#[derive(Debug)]
pub(crate) struct Isolation {
    namespace: String,
    /// Otherwise requests are only logged.
    enforced: bool,
    log: Mutex<VecDeque<String>>,
    violation: watch::Sender<Option<String>>,
}

impl Isolation {
    pub(crate) fn of(namespace: &str, enforced: bool) -> Arc<Self> {
        Arc::new(Self {
            namespace: namespace.to_owned(),
            enforced,
            log: Mutex::default(),
            violation: watch::Sender::default(),
        })
    }

    pub(crate) fn is_enforced(&self) -> bool {
        self.enforced
    }

    /// Ends with the message as soon as a request has been refused.
    pub(crate) async fn violated(&self) -> String {
        let mut violation = self.violation.subscribe();
        match violation.wait_for(Option::is_some).await {
            Ok(found) => found.clone().unwrap_or_default(),
            // `self` holds the sender.
            Err(_) => std::future::pending().await,
        }
    }

    /// The message about the first request that was refused.
    pub(crate) fn violation(&self) -> Option<String> {
        self.violation.borrow().clone()
    }

    /// The last requests with their answers, a line each.
    pub(crate) fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    fn record(&self, line: String) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == LOG_LINES_MAX {
            log.pop_front();
        }
        log.push_back(line);
    }

    fn check(&self, method: &Method, uri: &http::Uri) -> Result<(), String> {
        let (path, query) = (uri.path(), uri.query().unwrap_or_default());
        if !self.enforced {
            return Ok(());
        }
        let Err(why) = judge(method, path, query, &self.namespace) else { return Ok(()) };
        let message = format!("this test is not isolated: {method} {path}: {why}");
        self.violation.send_if_modified(|first| {
            let is_first = first.is_none();
            if is_first {
                *first = Some(message.clone());
            }
            is_first
        });
        Err(message)
    }
}

/// Whether a test whose namespace is this one may send such a request; otherwise, why not and what to do instead.
fn judge(method: &Method, path: &str, query: &str, own: &str) -> Result<(), String> {
    let mut parts = path.trim_matches('/').split('/');
    // Discovery, health, versions and schemas belong to nobody.
    let under_version = match parts.next() {
        Some("api") => parts.next().is_some(),
        Some("apis") => parts.next().is_some() && parts.next().is_some(),
        _ => false,
    };
    let rest: Vec<&str> = parts.collect();
    if !under_version || rest.is_empty() {
        return Ok(());
    }
    let reads = method == Method::GET || method == Method::HEAD;
    match rest.as_slice() {
        ["namespaces", namespace, kind, ..] if !["status", "finalize"].contains(kind) => {
            // Events about objects that are in no namespace are written there.
            let is_event = *namespace == "default" && *kind == "events";
            if *namespace == own || is_unique(namespace) || is_event {
                return Ok(());
            }
            Err(format!(
                "namespace {namespace} belongs to all tests; use cluster.namespace(), or a name from unique_name()"
            ))
        }
        [kind] if reads => {
            if CLUSTER_SCOPED.contains(kind) || is_unique(kind) || is_unique(query) {
                return Ok(());
            }
            Err(format!(
                "{kind} of all namespaces are other tests' too; give the operator .namespace(cluster.namespace()), or \
                 a kind whose plural comes from unique_name()"
            ))
        }
        // Reviews are questions. Whatever else is created has its name in the body, and a name that is taken is refused.
        [_] if method == Method::POST => Ok(()),
        [kind] => Err(format!("this changes the {kind} of all tests; change them one by one, by name")),
        [_, _, ..] if reads => Ok(()),
        ["namespaces", name, ..] if *name == own => Ok(()),
        [kind, name, ..] => {
            // `plural.group` of a CRD.
            let first = name.split('.').next().unwrap_or_default();
            if is_unique(name) || is_unique(first) || is_unique(kind) {
                return Ok(());
            }
            Err(format!(
                "{kind} {name} is in no namespace, so it belongs to all tests; give it a name from unique_name()"
            ))
        }
        [] => Ok(()),
    }
}

/// Sends what it may to `inner`, and keeps the log.
#[derive(Clone)]
pub(crate) struct Isolated<S> {
    pub(crate) inner: S,
    pub(crate) isolation: Arc<Isolation>,
}

/// Puts [`Isolated`] around the service of a client.
#[derive(Clone)]
pub(crate) struct IsolatedLayer(pub(crate) Arc<Isolation>);

impl<S> tower::Layer<S> for IsolatedLayer {
    type Service = Isolated<S>;

    fn layer(&self, inner: S) -> Isolated<S> {
        Isolated { inner, isolation: Arc::clone(&self.0) }
    }
}

type Answer<B> = Response<http_body_util::Either<B, http_body_util::Full<bytes::Bytes>>>;

impl<S, B> Service<Request<Body>> for Isolated<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: std::fmt::Display,
    B: http_body::Body<Data = bytes::Bytes>,
{
    type Response = Answer<B>;
    type Error = S::Error;
    type Future = futures::future::BoxFuture<'static, Result<Answer<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let isolation = Arc::clone(&self.isolation);
        let line = format!("{} {}", request.method(), request.uri());
        if let Err(message) = isolation.check(request.method(), request.uri()) {
            isolation.record(format!("{line} → refused: not isolated"));
            return Box::pin(async move { Ok(refusal(&message)) });
        }
        let sending = self.inner.call(request);
        Box::pin(async move {
            let outcome = sending.await;
            match &outcome {
                Ok(answer) => isolation.record(format!("{line} → {}", answer.status().as_u16())),
                Err(error) => isolation.record(format!("{line} → {error}")),
            }
            Ok(outcome?.map(http_body_util::Either::Left))
        })
    }
}

fn refusal<B>(message: &str) -> Answer<B> {
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": message,
    });
    let body = http_body_util::Full::new(bytes::Bytes::from(body.to_string()));
    let mut answer = Response::new(http_body_util::Either::Right(body));
    *answer.status_mut() = StatusCode::FORBIDDEN;
    answer
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::unique_name;

    const OWN: &str = "test-own";

    fn refused(method: &Method, path: &str) -> Option<String> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        judge(method, path, query, OWN).err()
    }

    #[test]
    fn a_test_does_as_it_likes_in_its_own_namespace() {
        for path in [
            "/api/v1/namespaces/test-own/configmaps/a",
            "/apis/apps/v1/namespaces/test-own/deployments",
            "/api/v1/namespaces/test-own",
            "/api/v1/namespaces/test-own/finalize",
        ] {
            for method in [Method::GET, Method::PATCH, Method::DELETE] {
                assert_eq!(refused(&method, path), None, "{method} {path}");
            }
        }
    }

    #[test]
    fn a_shared_kind_is_not_watched_in_all_namespaces() {
        let why = refused(&Method::GET, "/api/v1/configmaps").unwrap();
        assert!(why.contains("unique_name()"), "{why}");
        assert!(refused(&Method::GET, "/apis/test.mainstay.dev/v1/shops").is_some());
        let own = format!("/apis/test.mainstay.dev/v1/{}", unique_name("shops").replace('-', ""));
        assert_eq!(refused(&Method::GET, &own), None);
        let selected =
            format!("/api/v1/configmaps?fieldSelector=metadata.namespace%3D{}", unique_name("test"));
        assert_eq!(refused(&Method::GET, &selected), None);
        assert!(refused(&Method::GET, "/api/v1/configmaps?labelSelector=app").is_some());
    }

    #[test]
    fn objects_of_others_are_not_touched() {
        for (method, path) in [
            (Method::PATCH, "/api/v1/namespaces/default/configmaps/a"),
            (Method::GET, "/api/v1/namespaces/kube-system/secrets"),
            (Method::DELETE, "/api/v1/namespaces/other"),
            (Method::PATCH, "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin"),
            (
                Method::DELETE,
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shops.test.mainstay.dev",
            ),
            (Method::DELETE, "/api/v1/nodes"),
        ] {
            assert!(refused(&method, path).is_some(), "{method} {path}");
        }
    }

    #[test]
    fn what_has_a_unique_name_is_the_tests_own() {
        let name = unique_name("x");
        for path in [
            format!("/api/v1/namespaces/{name}"),
            format!("/api/v1/namespaces/network-{name}/pods"),
            format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}"),
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}.test.mainstay.dev"),
        ] {
            assert_eq!(refused(&Method::DELETE, &path), None, "{path}");
        }
    }

    #[test]
    fn what_belongs_to_nobody_is_open() {
        for path in ["/version", "/openapi/v3/apis/apps/v1", "/apis", "/api/v1", "/apis/apps/v1", "/readyz"] {
            assert_eq!(refused(&Method::GET, path), None, "{path}");
        }
        let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        assert_eq!(refused(&Method::POST, review), None);
        assert_eq!(refused(&Method::GET, "/api/v1/nodes"), None);
        assert_eq!(refused(&Method::POST, "/apis/events.k8s.io/v1/namespaces/default/events"), None);
    }
}
