//! How the operator asks the manager of a run.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Method;
use serde::de::DeserializeOwned;

use super::report::{Progress, Report};
use crate::fetch::{Body, Fetch};
use crate::rpc::RpcError;

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The longest report that is read: what a ConfigMap holds.
const REPORT_BYTES_MAX: usize = 1_000_000;

/// Where a manager is: `http://10.0.0.1:5115`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerPlace {
    /// Its address.
    pub url: String,
    /// Whether its pod runs nowhere. There is nobody to be asked then.
    pub is_simulated: bool,
}

/// How the operator asks the manager of a run. [`HttpManagers`] is the one over HTTP; simulations have their own.
pub trait ManagerClient: Send + Sync + 'static {
    /// How far it is.
    fn progress<'a>(&'a self, manager: &'a ManagerPlace) -> BoxFuture<'a, Result<Progress, RpcError>>;

    /// What it found.
    fn report<'a>(&'a self, manager: &'a ManagerPlace) -> BoxFuture<'a, Result<Report, RpcError>>;

    /// The report is kept: it may go.
    fn dismiss<'a>(&'a self, manager: &'a ManagerPlace) -> BoxFuture<'a, Result<(), RpcError>>;
}

/// Asks managers over HTTP.
#[derive(Debug, Clone, Default)]
pub struct HttpManagers(Fetch);

impl HttpManagers {
    async fn ask(&self, manager: &ManagerPlace, method: Method, path: &str) -> Result<Bytes, RpcError> {
        if manager.is_simulated {
            return Err(RpcError::Unreachable("its pod is simulated".into()));
        }
        let url = format!("{}{path}", manager.url);
        self.0.ask(&method, &url, &Body::default(), (TIMEOUT, REPORT_BYTES_MAX)).await
    }

    async fn get<T: DeserializeOwned>(&self, manager: &ManagerPlace, path: &str) -> Result<T, RpcError> {
        let bytes = self.ask(manager, Method::GET, path).await?;
        serde_json::from_slice(&bytes).map_err(|error| RpcError::Garbage(error.to_string()))
    }
}

impl ManagerClient for HttpManagers {
    fn progress<'a>(&'a self, manager: &'a ManagerPlace) -> BoxFuture<'a, Result<Progress, RpcError>> {
        Box::pin(self.get(manager, "/progress"))
    }

    fn report<'a>(&'a self, manager: &'a ManagerPlace) -> BoxFuture<'a, Result<Report, RpcError>> {
        Box::pin(self.get(manager, "/report"))
    }

    fn dismiss<'a>(&'a self, manager: &'a ManagerPlace) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async move { self.ask(manager, Method::POST, "/end").await.map(|_| ()) })
    }
}
