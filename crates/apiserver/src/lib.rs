//! The Kubernetes API in one process.

#![allow(dead_code)] // scaffold: removed when the service uses every module

mod admission;
mod apply;
mod builtin;
mod decode;
mod field;
mod gotext;
mod jsonpath;
mod patch;
mod schema;
mod selectors;
mod status;
mod store;

pub use admission::ServiceResolver;
