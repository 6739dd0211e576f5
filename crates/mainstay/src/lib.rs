//! An operator is one function: a snapshot of a parent and its children in, desired children and status out.

pub mod clock;
pub mod conditions;
pub mod config;
pub mod events;
mod kind;
pub mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod serve;

pub use config::Config;
pub use kind::{Key, Kind, ObjectRef, Scope};
