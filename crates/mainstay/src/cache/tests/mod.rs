//! Caches against the API server in process, with faults between them.

mod memory;
mod sharing;
mod watching;
mod world;
