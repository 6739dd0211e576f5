//! The Kubernetes API in one process.

#![allow(dead_code)] // scaffold: removed when the service uses every module

mod admission;
mod apply;
mod builtin;
mod decode;
mod discovery;
mod field;
mod gotext;
mod jsonpath;
mod patch;
mod protobuf;
mod schema;
mod selectors;
mod status;
mod store;
mod table;

pub use admission::ServiceResolver;
