//! Dynamic admission: mutating and validating webhooks, as kube-apiserver calls them.
//!
//! ```text
//! configurations ─▶ hook ─▶ matching, conditions ─▶ review ─▶ client ─▶ reply ─▶ review, patching
//! ```
//!
//! [`Webhooks`] is the only thing the request pipeline sees. Which webhook is called, what it is sent,
//! what its answer means and how a refusal is worded are pure functions; only [`client`] does I/O.
//!
//! Guarantees: without configurations nothing is done at all; mutating webhooks are called one after the
//! other, by configuration name and then in the order given, and once more if they ask for it and another
//! one changed the object after them; validating webhooks are called at the same time and the first
//! refusal, in that same order, is the answer. Objects of the admission configurations themselves are
//! never sent to webhooks.
//!
//! Absent: `authorizer` in match conditions (refused by name), HTTP redirects.

mod client;
mod conditions;
mod endpoint;
mod hook;
mod matching;
mod patching;
mod reply;
mod review;
#[cfg(test)]
mod tests;
mod transport;
mod trust;
mod webhooks;

use crate::server::User;
use crate::status::ApiError;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub(crate) use conditions::check_match_condition;
pub(crate) use webhooks::{Steps, Webhooks};

/// What a request does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    /// As rules and reviews spell it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

/// A kind in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Gvk<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
}

/// A resource in a version; `resource` is the plural.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Gvr<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
}

/// A form in which a resource is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served<'a> {
    pub resource: Gvr<'a>,
    pub kind: Gvk<'a>,
}

/// Turns an object into the same object of another version.
pub(crate) type Convert<'a> = &'a (dyn Fn(&Value, Gvk<'_>) -> Result<Value, ApiError> + Sync);

/// The other forms of the request's resource, for webhooks with `matchPolicy: Equivalent`.
#[derive(Clone, Copy)]
pub(crate) struct Equivalents<'a> {
    /// All other forms of the same objects, the kind being that of the request's subresource.
    pub served: &'a [Served<'a>],
    /// Converts between any of them and the request's own.
    pub convert: Convert<'a>,
}

/// What is asked of the server, beside the objects.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub operation: Operation,
    /// The kind in the request: the subresource's own (`Scale`) where it has one.
    pub kind: Gvk<'a>,
    pub resource: Gvr<'a>,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    /// Empty for cluster-scoped resources, except that a request for a Namespace has its name here.
    pub namespace: &'a str,
    /// Empty for `deletecollection`, as kube-apiserver sends it.
    pub name: &'a str,
    /// The stored Namespace of that name, for `namespaceSelector`.
    pub namespace_object: Option<&'a Value>,
    pub user: &'a User,
    pub dry_run: bool,
    /// `CreateOptions`, `UpdateOptions` (also for patches and applies) or `DeleteOptions` with their
    /// `kind` and `apiVersion: meta.k8s.io/v1`.
    pub options: &'a Value,
    pub equivalents: Equivalents<'a>,
}

/// What webhooks said beside yes and no. Kept also when the request is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// For the response's `Warning` headers, in order, repetitions included.
    pub warnings: Vec<String>,
    /// Audit annotations, as `webhook/key`.
    pub annotations: BTreeMap<String, String>,
}

impl Notes {
    fn absorb(&mut self, other: Notes) {
        self.warnings.extend(other.warnings);
        self.annotations.extend(other.annotations);
    }
}

/// Finds where a Service that a webhook names is served.
///
/// A cluster's Services are not reachable from a process outside of it, so whoever runs webhooks beside
/// this server says where they listen. The certificate is still checked for `name.namespace.svc`.
pub trait ServiceResolver: Send + Sync {
    /// The address to connect to for a port of a Service, or none if there is no such Service.
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Option<SocketAddr>;
}

/// Carries reviews to webhooks in place of HTTPS.
///
/// For webhooks in the same process, and for simulations in which one may be down.
pub trait WebhookTransport: Send + Sync + 'static {
    /// Posts a review to `https://host/path`; gives the body of a 200, or why there is none, in the words of
    /// Go's network library: `dial tcp 10.0.0.1:443: connect: connection refused`.
    fn post<'a>(&'a self, url: &'a str, review: Bytes) -> BoxFuture<'a, Result<Bytes, String>>;
}

/// Knows no Service.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoServices;

impl ServiceResolver for NoServices {
    fn resolve(&self, _: &str, _: &str, _: u16) -> Option<SocketAddr> {
        None
    }
}
