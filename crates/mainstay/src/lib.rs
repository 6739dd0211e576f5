//! An operator is one function: a snapshot of a parent and its children in, desired children and status out.

pub mod clock;
mod kind;
pub mod webhook;

pub use kind::{Key, Kind, ObjectRef, Scope};
