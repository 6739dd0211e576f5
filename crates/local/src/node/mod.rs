//! A node: it runs the pods that are bound to it, and says how they are.

pub mod rules;
pub mod runtime;
