//! An operator with Rust types: every `WebApp` gets a Deployment, a Service and a `ConfigMap`.
//!
//! ```text
//! WebAppSpec ─▶ WebAppConfig ─▶ children (ConfigMap, Deployment, Service)
//!  (kinds)        (config)  └─▶ status (readyReplicas, conditions) ◀─ the Deployment as it is
//! ```

mod children;
pub mod config;
pub mod kinds;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use mainstay::conditions::Conditions;
use mainstay::readiness::Readiness;
use mainstay::{Controller, Error, Kind, OperatorBuilder, SyncRequest, SyncResponse};

use crate::config::WebAppConfig;
use crate::kinds::{WebApp, WebAppStatus};

/// The operator's name in the cluster.
pub const NAME: &str = "webapp";

/// All that the operator consists of.
pub fn configure(operator: OperatorBuilder) -> OperatorBuilder {
    let controller = Controller::of::<WebApp>().owns::<ConfigMap>().owns::<Deployment>().owns::<Service>();
    operator.controller(controller.sync(sync))
}

/// What should exist for one `WebApp`.
pub fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let app: WebApp = request.parent()?;
    let config = WebAppConfig::from(app.spec);
    SyncResponse::from_status(status(request, &config)?)?
        .with_child(children::config_map(request.name(), &config))?
        .with_child(children::deployment(request.name(), &config))?
        .with_child(children::service(request.name()))
}

/// How it stands, from what is there.
fn status(request: &SyncRequest, config: &WebAppConfig) -> Result<WebAppStatus, Error> {
    let kind = Kind::of::<Deployment>();
    let live = request.children_of(&kind).get(request.name());
    let is_ready = live.is_some_and(|deployment| deployment.readiness() == Readiness::Ready);
    let deployment: Option<Deployment> = live.map(|deployment| deployment.parse()).transpose()?;
    let ready_replicas = deployment.and_then(|live| live.status?.ready_replicas).unwrap_or(0);

    let mut conditions = Conditions::of_status(&request.parent_json()["status"]);
    let reason = if is_ready { "RolledOut" } else { "RollingOut" };
    let message = format!("{ready_replicas} of {} pods are ready", config.replicas);
    let generation = Some(request.generation());
    conditions.set("Ready", is_ready.into(), reason, &message, generation, request.now())?;
    Ok(WebAppStatus { ready_replicas, conditions: conditions.into(), ..WebAppStatus::default() })
}
