//! Registers what is wanted, by server-side apply, and only what is not there already.

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::{Change, Registration, plan_change};

/// Registering failed.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Looking at what is registered failed.
    #[error("reading {0}")]
    Read(String, #[source] kube::Error),
    /// Writing it failed.
    #[error("applying {0}")]
    Apply(String, #[source] kube::Error),
    /// Removing what is wanted no longer failed.
    #[error("deleting {0}")]
    Delete(String, #[source] kube::Error),
    /// The definition of a kind that is converted is not there.
    #[error("{0} is not there yet")]
    Missing(String),
}

/// Makes one object as it is wanted and gives it as it is then. With `may_write` off it is only looked at.
pub(crate) async fn execute_registration(
    client: &kube::Client,
    manager: &str,
    registration: &Registration,
    may_write: bool,
) -> Result<Option<Value>, RegisterError> {
    let api = api(client, registration);
    let name = registration.name.as_str();
    let called = || format!("{} {name}", registration.kind.kind());
    let live = api.get_opt(name).await.map_err(|error| RegisterError::Read(called(), error))?;
    let live = live.and_then(|object| serde_json::to_value(object).ok());
    match plan_change(registration, live.as_ref()) {
        Change::Wait => Err(RegisterError::Missing(called())),
        Change::Apply if may_write => {
            tracing::info!(object = called(), "registering webhooks");
            // Whoever else set these fields, the author of the operator asked for them to be so.
            let params = PatchParams::apply(manager).force();
            let applied = api.patch(name, &params, &Patch::Apply(&registration.wanted)).await;
            let applied = applied.map_err(|error| RegisterError::Apply(called(), error))?;
            Ok(serde_json::to_value(applied).ok())
        }
        Change::Delete if may_write => {
            tracing::info!(object = called(), "removing webhooks that are no more");
            let uid = live.as_ref().and_then(|live| live["metadata"]["uid"].as_str()).map(str::to_owned);
            let params =
                DeleteParams::default().preconditions(Preconditions { uid, ..Preconditions::default() });
            match api.delete(name, &params).await {
                Ok(_) => Ok(None),
                // Gone already, or another one by now, which the next look decides about.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
                Err(error) => Err(RegisterError::Delete(called(), error)),
            }
        }
        _ => Ok(live),
    }
}

fn api(client: &kube::Client, registration: &Registration) -> Api<DynamicObject> {
    let kind = &registration.kind;
    let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), kind.kind());
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&gvk, kind.plural()))
}
