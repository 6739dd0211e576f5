//! The handler of networks: what there is becomes a situation, [`decide`] decides, and the decision becomes objects, dials and a status.
//!
//! ```text
//! pods ─▶ pods (pure) ─▶ observe: asks peers ─▶ decide (pure) ─▶ objects, status ─▶ execute: dials
//! ```

pub mod decide;
pub(crate) mod execute;
mod handler;
mod monitors;
pub mod observe;
pub mod pods;
pub mod reason;
pub mod tell;
#[cfg(test)]
mod tests;

pub(crate) use handler::controller;
pub(crate) use monitors::controller as monitors;
