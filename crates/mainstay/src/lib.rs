//! An operator is one function: a snapshot of a parent and its children in, desired children and status out.

pub mod clock;
mod kind;
mod replicas;

pub use kind::{Key, Kind, ObjectRef, Scope};
pub use replicas::{Fence, Identity, InvalidReplicas, Keeper, Lost, Permit, Replicas, Shard, Standing, Turn, Waiting};
