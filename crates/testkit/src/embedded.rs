//! The embedded API server, as the clusters of this crate use it.

use mainstay_apiserver::ApiServer;

/// A client of a new embedded API server in memory, with nothing in it but what a server starts with.
pub fn start_embedded() -> Option<kube::Client> {
    let server = ApiServer::builder().build().ok()?;
    Some(kube::Client::new(server, "default"))
}
