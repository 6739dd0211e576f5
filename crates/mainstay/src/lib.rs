//! An operator is one function: a snapshot of a parent and its children in, desired children and status out.

pub mod cache;
pub mod clock;
pub mod conditions;
pub mod config;
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
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod serve;
mod snapshot;
pub mod stability;
mod termination;
pub mod webhook;

pub use config::Config;
pub use controller::{ChildKind, Controller, ControllerBuilder, Rolling, Strategy};
pub use handler::{
    AsyncFinalize, AsyncHandler, Child, Children, Error, ErrorKind, Finalize, Finalized, Handler, Related,
    SyncRequest, SyncResponse, TypedChildren,
};
pub use kind::{Key, Kind, ObjectRef, Scope};
pub use operator::{BuildError, Operator, OperatorBuilder, PlanError, RunError, StepError, Stepped, Stepper};
pub use rbac::Rbac;
pub use record::{Recording, ReplayError};
pub use runner::{ControllerState, DeletionBudget, ParentReport, PastSync, Trigger};
pub use termination::termination;
