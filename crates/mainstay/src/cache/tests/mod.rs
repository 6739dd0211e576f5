//! Caches against the API server in process, with faults between them.

mod memory;
mod schedules;
mod sharing;
mod watching;
mod world;
