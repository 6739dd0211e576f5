//! The built-in kinds: what kube-apiserver knows of them from its Go types.

pub(crate) mod quantity;
pub(crate) mod tables;
pub(crate) mod time;
//! The kinds that every Kubernetes API server has.

pub(crate) mod rules;
