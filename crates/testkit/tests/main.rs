//! What a test gets from this crate.

mod cluster;
mod operator;
