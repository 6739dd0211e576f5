//! An operator is one function: a snapshot of a parent and its children in, desired children and status out.

pub mod cache;
pub mod clock;
pub mod conditions;
mod controller;
pub mod diff;
mod handler;
mod kind;
pub mod metrics;
pub mod plan;
pub mod queue;
pub mod readiness;
pub mod serve;
mod snapshot;

pub use controller::{ChildKind, Controller, ControllerBuilder, Rolling, Strategy};
pub use handler::{
    AsyncFinalize, AsyncHandler, Child, Children, Error, ErrorKind, Finalize, Finalized, Handler, Related, SyncRequest,
    SyncResponse, TypedChildren,
};
pub use kind::{Key, Kind, ObjectRef, Scope};
