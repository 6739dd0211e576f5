//! The kinds that every Kubernetes API server has: their shapes, and what kube-apiserver does with them.

pub(crate) mod conform;
pub(crate) mod quantity;
pub(crate) mod rules;
pub(crate) mod tables;
pub(crate) mod time;
