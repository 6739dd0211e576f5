//! The `mainstay` binary as a person runs it.
//!
//! One binary, one module for each suite:
//!
//! - `commands`: scripts of commands with their output, on both clusters
//! - `networks`: networks of real processes, on both clusters
//! - `simulate`: `mainstay simulate`
//! - `up`: `mainstay up`

mod commands;
mod networks;
mod simulate;
mod up;
