//! What all request handlers share: the store, the served kinds, time and identity.

use crate::admission::Webhooks;
use crate::allocate::Book;
use crate::clock::{Clock, Identities};
use crate::health::Troubles;
use crate::kind::Kind;
use crate::negotiate::Accept;
use crate::registry::Registry;
use crate::request::Query;
use crate::service::body::Budget;
use crate::store::Store;
use crate::strategy::Leniency;
use crate::subresource::Providers;
use crate::warnings;
use crate::watch::WatchDelivery;
use bytes::Bytes;
use http::HeaderMap;
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One API server's state.
pub(crate) struct Server {
    pub store: Arc<Store>,
    pub registry: Registry,
    pub clock: Arc<dyn Clock>,
    pub identities: Arc<dyn Identities>,
    pub delivery: Option<Arc<dyn WatchDelivery>>,
    pub providers: Providers,
    pub webhooks: Webhooks,
    pub allocations: Book,
    /// What the controllers ran into.
    pub troubles: Troubles,
    /// How long events are kept after they were last written; zero: for ever.
    pub event_ttl: Duration,
    /// What `kube-root-ca.crt` holds.
    pub ca_bundle: String,
    /// What passes here that Kubernetes refuses.
    pub leniency: Leniency,
    /// What the bodies of requests may take.
    pub bodies: Budget,
}

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
}

impl User {
    /// The user that may do everything, and the one of requests that come without a socket.
    pub fn admin() -> Self {
        let groups = vec!["system:masters".into(), "system:authenticated".into()];
        User { name: "system:admin".into(), groups }
    }

    /// The user as reviews show one.
    pub(crate) fn info(&self) -> UserInfo<'_> {
        UserInfo { username: &self.name, groups: &self.groups }
    }
}

/// A user inside a review: of a token, of oneself, or for a webhook.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct UserInfo<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
}

/// One request for a served resource.
pub(crate) struct Call {
    pub kind: Arc<Kind>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    pub query: Query,
    pub headers: HeaderMap,
    pub accept: Accept,
    pub user: User,
    pub body: Bytes,
    /// Sentences for `Warning` headers.
    warnings: Mutex<Vec<String>>,
}

impl Call {
    pub(crate) fn new(kind: Arc<Kind>, accept: Accept, user: User, query: Query, headers: HeaderMap) -> Self {
        Call {
            kind,
            namespace: None,
            name: None,
            subresource: None,
            query,
            headers,
            accept,
            user,
            body: Bytes::new(),
            warnings: Mutex::default(),
        }
    }

    /// The same caller's request for another object, without a body.
    pub(crate) fn retarget(&self, kind: Arc<Kind>, name: &str, subresource: Option<&str>) -> Call {
        let mut call =
            Call::new(kind, self.accept, self.user.clone(), self.query.clone(), self.headers.clone());
        call.namespace.clone_from(&self.namespace);
        call.name = Some(name.to_owned());
        call.subresource = subresource.map(str::to_owned);
        call
    }

    /// Adds a sentence for the client to read, once.
    pub(crate) fn warn(&self, warning: impl Into<String>) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings::add(&mut warnings, warning.into());
    }

    pub(crate) fn take_warnings(&self) -> Vec<String> {
        let warnings = std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        warnings::shown(warnings)
    }

    /// The namespace, empty for cluster-scoped kinds.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

impl Server {
    pub(crate) fn uid(&self) -> String {
        crate::clock::uuid(&*self.identities)
    }

    /// The time as objects are stamped with it: whole seconds.
    pub(crate) fn timestamp(&self) -> String {
        format_time(self.clock.now())
    }
}

/// RFC 3339 in whole seconds.
pub(crate) fn format_time(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
