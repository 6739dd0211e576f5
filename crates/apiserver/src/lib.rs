//! The Kubernetes API in one process.

#![allow(dead_code)] // scaffold: removed when the service uses every module

mod builtin;
mod decode;
mod apply;
mod field;
mod gotext;
mod jsonpath;
mod patch;
mod schema;
mod selectors;
mod status;
mod store;
