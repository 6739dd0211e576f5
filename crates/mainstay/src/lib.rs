//! An operator is one function: a snapshot of a parent and its children in, desired children and status out.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use mainstay::{Controller, Error, Operator, SyncRequest, SyncResponse};
//! use serde_json::json;
//! # use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
//! # use kube::api::{Api, ListParams, PostParams};
//! # use kube::CustomResourceExt as _;
//!
//! // What users write: a kind of your own, by kube's derive. (A kind can be plain JSON as well: `Controller::for_kind`.)
//! #[derive(Clone, Debug, kube::CustomResource, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Team", namespaced, status = "TeamStatus")]
//! struct TeamSpec {
//!     members: Vec<String>,
//! }
//!
//! #[derive(Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
//! #[serde(rename_all = "camelCase")]
//! struct TeamStatus {
//!     size: usize,
//!     observed_generation: Option<i64>, // filled in by the framework
//! }
//!
//! // What should exist for a Team: a ConfigMap with its members.
//! fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
//!     let team: Team = request.parent()?;
//!     SyncResponse::from_status(json!({"size": team.spec.members.len()}))?.with_child(json!({
//!         "apiVersion": "v1",
//!         "kind": "ConfigMap",
//!         "metadata": {"name": request.name()},
//!         "data": {"members": team.spec.members.join(",")},
//!     }))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // An API server in this process; `kube::Client::try_default().await?` is a real one.
//! let client = kube::Client::new(mainstay_apiserver::ApiServer::builder().build()?, "default");
//! # let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
//! # definitions.create(&PostParams::default(), &Team::crd()).await?;
//! # let teams: Api<Team> = Api::default_namespaced(client.clone());
//! # // A definition is served a moment after it was created.
//! # while teams.list(&ListParams::default()).await.is_err() {
//! #     tokio::time::sleep(std::time::Duration::from_millis(1)).await;
//! # }
//! # let spec = TeamSpec { members: vec!["ada".into(), "grace".into()] };
//! # teams.create(&PostParams::default(), &Team::new("compilers", spec)).await?;
//! let operator = Operator::builder("teams", client.clone())
//!     .controller(Controller::of::<Team>().owns::<ConfigMap>().sync(sync))
//!     .build()?;
//!
//! // A program runs it until it is told to end: operator.run(mainstay::termination()).await?
//! // A test takes steps until there is nothing left to do:
//! operator.stepper()?.settle().await?;
//!
//! let maps: Api<ConfigMap> = Api::default_namespaced(client);
//! assert_eq!(maps.get("compilers").await?.data.unwrap()["members"], "ada,grace");
//! let status = teams.get("compilers").await?.status.unwrap();
//! assert_eq!((status.size, status.observed_generation), (2, Some(1)));
//! # Ok(())
//! # }
//! ```
//!
//! # How a change becomes a write
//!
//! ```text
//!  API server ─▶ cache ─▶ queue ─▶ snapshot ─▶ your function ─▶ plan ─▶ execute ─▶ API server
//!                  ▲     whose turn,   one parent,  pure          steps with     │
//!                  │     and why       its children               their reasons  │
//!                  └─────────────────── answers to own writes ───────────────────┘
//! ```
//!
//! A plan is data. The same code that reconciles also tells what would happen ([`Operator::plan`]), what happened and why
//! ([`Operator::explain`], `/debug/parents`), and decides again what was recorded ([`Operator::record`]).
//!
//! # The few words
//!
//! | word | meaning |
//! |---|---|
//! | parent | an object that users write; the operator is about its kind |
//! | child | an object that the operator makes for a parent: it has an owner reference to it, and goes with it |
//! | [`Handler`] | your function. Whatever it does not return and exists is deleted; whatever field it does not name is left alone |
//! | sync | one call of the handler for one parent, and the writes that follow from it |
//! | [`Controller`] | a parent kind, its [child kinds](ChildKind) with a [`Strategy`] each, and the handler |
//! | [`Operator`] | controllers that share one identity, one cache of each kind and one queue |
//! | related object | one that a handler [asks for](SyncRequest::get) without owning it; when it changes, the sync runs again |
//! | [`Plan`](plan::Plan) | the steps of a sync, each with its reason, down to the fields |
//! | [`Waiting`](plan::Waiting) | why something is not as it should be and nothing is done about it |
//! | shard | the parents that one lease covers; with a [single shard](Replicas::leader) this is leader election |
//!
//! # What you can rely on
//!
//! - **Converged means no writes**, also after a restart. What the server itself makes of a child (defaults, canonical
//!   quantities, a webhook's changes) is not fought.
//! - **Own writes are seen.** No decision is made on a world before the operator's last write, and no change by others is
//!   swallowed.
//! - **Errors delete nothing.** An error, a panic or an answer that cannot be acted on leaves everything as it was. Deletions
//!   have a [budget](DeletionBudget) and hit only the very object that was decided on.
//! - **Nothing is stolen.** An object that is not the parent's is not touched, unless it may be
//!   [adopted](ChildKind::adopt); the conflict is told on the parent.
//! - **One parent harms no other.** A slow, failing or panicking handler delays its own parent only (a plain one needs a runtime
//!   of several threads for that). Each has its own backoff.
//! - **Children first, then the status**, which is computed from what the writes made, and carries `observedGeneration`.
//! - **Loops end.** A value that differs at every sync, or that somebody else keeps changing back, is reported with its field
//!   paths and left alone for a while.
//! - **Replicas do not overlap.** A write begins only while its lease is sure to last until it has ended.
//! - **Problems are told where people look:** as the condition [`Reconciled`](plan::RECONCILED) and an event on the parent (a
//!   handler's error is an event only: it changes nothing), in the log, in [metrics](Operator::metrics) and on `/debug/parents`, in the same words.
//!
//! # What is absent
//!
//! There are no create, update and delete calls to write: only a desired state. No order among children of one parent but the one
//! in which they are returned. No children of a namespaced parent in other namespaces, because Kubernetes would not delete
//! them with it. No finalizer unless the controller [needs one](ControllerBuilder::finalize). No threads of its own, no clock
//! and no randomness that cannot be passed in.
//!
//! # Modules
//!
//! | to write an operator | |
//! |---|---|
//! | this one | [`Operator`], [`Controller`], [`Handler`], [`SyncRequest`], [`SyncResponse`], [`Finalize`], [`Replicas`], [`Rbac`] |
//! | [`conditions`], [`readiness`] | for a status: conditions in the standard shape; whether a child does its work |
//! | [`config`] | from a spec with optional fields to a config without, with the origin of every value |
//! | [`webhook`] | admission and conversion in the same process, with certificates that it keeps itself |
//! | [`replicas`] | leader election and sharding: one mechanism |
//!
//! | to understand one | |
//! |---|---|
//! | [`plan`] | what a sync does and why; what it waits for |
//! | [`serve`], [`metrics`], [`events`] | health, numbers, and what `kubectl describe` shows; the crate `mainstay-otlp` exports spans |
//! | [`diff`], [`stability`] | how objects are compared; when repetition is a loop |
//! | [`cache`], [`queue`] | what is known of the cluster, and whose turn it is; of use by themselves |
//! | [`clock`] | the time of what is written |
//!
//! Tests of an operator are a few lines with `mainstay-testkit`. Complete ones to copy from are in the repository:
//! `examples/echo-server` (plain JSON) and `examples/webapp` (Rust types, conditions, defaults).

pub mod cache;
pub mod clock;
pub mod conditions;
pub mod config;
mod connections;
mod controller;
pub mod diff;
pub mod events;
mod execute;
mod handler;
mod kind;
pub mod metrics;
mod operator;
pub mod plan;
pub mod queue;
mod rbac;
pub mod readiness;
mod record;
pub mod replicas;
mod runner;
pub mod serve;
mod snapshot;
pub mod stability;
mod termination;
mod typed;
pub mod webhook;

pub use config::Config;
pub use controller::{ChildKind, Controller, ControllerBuilder, Rolling, Strategy};
pub use handler::{
    AsyncFinalize, AsyncHandler, Child, Children, Effect, Error, ErrorKind, Finalize, Finalized, Handler,
    Registered, RegisteredState, Registration, Related, SyncRequest, SyncResponse, TypedChildren,
};
pub use kind::{Key, Kind, ObjectRef, Scope};
pub use operator::{BuildError, Operator, OperatorBuilder, PlanError, RunError, StepError, Stepped, Stepper};
pub use rbac::Rbac;
pub use record::{Recording, ReplayError};
pub use replicas::Replicas;
pub use runner::{ControllerState, DeletionBudget, ParentReport, PastSync, Trigger};
pub use termination::termination;
