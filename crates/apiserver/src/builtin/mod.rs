//! The built-in kinds: what kube-apiserver knows of them from its Go types.

pub(crate) mod conform;
pub(crate) mod quantity;
pub(crate) mod tables;
pub(crate) mod time;
