//! Replicas of an operator, and which of them may write: leader election and sharding are one mechanism.
//!
//! An operator has a number of shards; one is leader election. Each shard is a `coordination.k8s.io/v1` Lease, and a
//! parent belongs to the shard that its uid hashes to. Whoever holds the lease of a shard may write for its parents, as
//! long as the [`Fence`] says so. With more than one shard, each replica also keeps a member lease, from which the
//! others know how many shares there are; shards move when replicas come and go, as few as possible.
//!
//! ```text
//! list ─▶ ledger ─▶ decide (pure) ─▶ steps ─▶ keeper writes ─▶ ledger ─▶ fence ◀─ begin, permit
//! ```
//!
//! | module | |
//! |---|---|
//! | `options` | what the author chooses |
//! | `shard` | which shard a parent belongs to |
//! | `record` | leases as objects |
//! | `ledger` | what one replica has seen, and what it holds |
//! | `balance`, `decide` | what to do about it, pure |
//! | `fence` | what is asked before each write |
//! | `keeper` | requests and timers, nothing else |
//!
//! What it rests on: the API server carries out updates with a version only on that version, lists show every
//! write that was answered before they began, and the monotonic clocks of the replicas go at the same speed, but for
//! what the safety margin covers. Wall clocks may be wrong.

mod balance;
mod decide;
mod fence;
mod keeper;
mod ledger;
mod moment;
mod options;
mod record;
mod shard;
mod sync;
#[cfg(test)]
mod tests;
mod work;

pub use decide::Waiting;
pub use fence::{Fence, Lost, Permit, Standing, Turn};
pub use keeper::Keeper;
pub use options::{InvalidReplicas, Replicas};
pub use shard::{Identity, Shard};
