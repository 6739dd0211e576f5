//! The Kubernetes API in one process.

#![allow(dead_code)] // scaffold: removed when the service uses every module

mod builtin;
mod field;
mod protobuf;
mod schema;
mod status;
