//! A plugin for streams as a data team ships it: a kind, a class, templates, and the program that they run.
//!
//! ```text
//! crd.yaml ─▶ class.yaml ─▶ templates.yaml ─▶ feeds.yaml: one object per stream
//!                                └─▶ a container that runs `mainstay runner feed`, which is [`program`]
//! ```
//!
//! A plugin needs no code of its own but the program, which can be written in anything: it reads its environment and ends with a code.
//! This one is part of the `mainstay` command only because `mainstay up` runs that command in pods of `mainstay:*`.

pub mod program;

/// The kind `Feed`, to be applied first.
pub const CRD: &str = include_str!("../crd.yaml");
/// The class and the templates.
pub const PLUGIN: [&str; 2] = [include_str!("../class.yaml"), include_str!("../templates.yaml")];
/// What users write: feeds, a Secret of one, and a request for a backfill.
pub const FEEDS: [&str; 2] = [include_str!("../feeds.yaml"), include_str!("../backfill.yaml")];
/// What lets an installed operator look after feeds.
pub const RBAC: &str = include_str!("../rbac.yaml");

#[cfg(test)]
mod tests;
