//! The kinds that every Kubernetes API server has.

pub(crate) mod rules;
