//! The load of a simulation: one manager, and a worker for each peer.
//!
//! ```text
//! worker 0 ─┐ POST /register       GET /progress ─▶ Running     POST /report
//! worker 1 ─┼──────────────▶ manager ─────────────▶ all begin ─────────────▶ manager ─▶ GET /report ◀─ operator
//! worker 2 ─┘                                                                       ◀── POST /end
//! ```
//!
//! Nobody here has rights in the cluster. Programs end with 0 if all went as it should, with 1 if the run cannot be carried out, and with 2 if they were
//! started wrongly. Failing peers are what is measured, and no failure of the program.

pub mod manager;
pub mod settings;
pub mod wire;
pub mod worker;

#[cfg(test)]
mod tests;

/// The exit code of a program that was started wrongly.
pub const USAGE: u8 = 2;
/// The exit code of a program whose run cannot be carried out.
pub const FAILED: u8 = 1;
