//! The Kubernetes API in one process.

#![allow(dead_code)] // scaffold: removed when the service uses every module

mod discovery;
mod field;
mod jsonpath;
mod openapi;
mod patch;
mod schema;
mod selectors;
mod status;
mod table;
