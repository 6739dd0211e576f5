//! Parts of objects with endpoints of their own, and those that whoever embeds the server provides.

use crate::body::Body;
use crate::server::User;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use std::collections::HashMap;
use std::sync::Arc;

/// Serves a subresource that the API server itself does not have: `pods/log`, `pods/exec`, …
pub trait SubresourceProvider: Send + Sync + 'static {
    /// Answers a request for the subresource of one object, which exists.
    fn serve(&self, request: SubresourceRequest) -> BoxFuture<'static, Response<Body>>;
}

/// A request for a provided subresource.
#[derive(Debug)]
pub struct SubresourceRequest {
    /// The object's namespace, empty if it has none.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object itself.
    pub object: serde_json::Value,
    /// Who asks.
    pub user: User,
    /// The HTTP request.
    pub request: Request<Bytes>,
}

/// The provided subresources, by group, resource and subresource.
#[derive(Clone, Default)]
pub(crate) struct Providers(HashMap<(String, String, String), Arc<dyn SubresourceProvider>>);

impl Providers {
    pub(crate) fn add(
        &mut self,
        group: &str,
        resource: &str,
        name: &str,
        provider: Arc<dyn SubresourceProvider>,
    ) {
        self.0.insert((group.to_owned(), resource.to_owned(), name.to_owned()), provider);
    }

    pub(crate) fn get(
        &self,
        group: &str,
        resource: &str,
        name: &str,
    ) -> Option<Arc<dyn SubresourceProvider>> {
        self.0.get(&(group.to_owned(), resource.to_owned(), name.to_owned())).cloned()
    }
}
