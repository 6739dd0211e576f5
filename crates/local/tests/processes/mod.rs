//! Containers as real processes: what they are given, what becomes of them, and what is left of them.
#![cfg(target_os = "linux")]

mod environment;
mod lifetimes;
mod logs;
mod probes;
mod volumes;
mod world;
