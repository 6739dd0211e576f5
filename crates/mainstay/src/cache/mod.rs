//! The shared cache of Kubernetes objects.

mod object;
mod parts;
mod prune;
mod scope;
mod selector;
mod shelf;
mod uid;
mod wire;

pub use object::{Object, Owner, ParseError};
pub use prune::{Prune, PruneError};
pub use scope::{Options, WatchScope};
pub use selector::{Selector, SelectorError};
pub use shelf::{Change, Departure};
pub use wire::Unreadable;
