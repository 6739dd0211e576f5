//! The Kubernetes API in one process.

#![allow(dead_code)] // scaffold: removed when the service uses every module

mod apply;
mod field;
mod schema;
mod status;
