//! What each built-in kind does with its objects beyond their shape: defaults, what the server fills in
//! or keeps when an object is written, and what it refuses.
//!
//! Everything here is pure: time and uids come in through [`Env`], other objects as arguments. The
//! functions expect objects that were already conformed to their schema (unknown fields dropped, types
//! right, quantities canonical), and never panic on ones that were not.
//!
//! The order in which a write uses them:
//!
//! ```text
//! create:  default ─▶ prepare_create ─▶ validate ─▶ store
//! update:  default ─▶ prepare_update ─▶ validate_update ─▶ store
//! status:  default ─▶ prepare_status ─▶ validate_status ─▶ store
//! ```
//!
//! `metadata` is checked by the caller for all kinds alike; a kind only says how its names must look.

pub(crate) mod checks;
pub(crate) mod json;
pub(crate) mod names;
pub(crate) mod objects;
pub(crate) mod pod;
mod printed;
mod unified_diff;
pub(crate) mod workloads;

use crate::field::FieldError;
use jiff::Timestamp;
use serde_json::Value;

/// What a write may know of the world beside the object itself.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    /// The time of the request.
    pub now: Timestamp,
    /// Gives a fresh uid at each call.
    pub uid: &'a (dyn Fn() -> String + Sync),
    /// Nothing will be stored.
    pub dry_run: bool,
}

/// The rules of one kind. Each is a no-op unless the kind says otherwise.
pub(crate) struct Rules {
    /// Fills in absent fields. Idempotent.
    pub default: fn(&mut Value),
    /// Drops what a creator may not set (usually `status`), and sets what the server owns.
    pub prepare_create: fn(&mut Value, &Env<'_>),
    /// `(new, old)`: restores what an update may not touch and bumps `metadata.generation` where the
    /// kind counts it.
    pub prepare_update: fn(&mut Value, &Value, &Env<'_>),
    /// `(new, old)`: restores what a write to `/status` may not touch.
    pub prepare_status: fn(&mut Value, &Value, &Env<'_>),
    /// Everything wrong with a new object, beside its metadata.
    pub validate: fn(&Value, &mut Vec<FieldError>),
    /// `(new, old)`: everything wrong with an update; includes the checks of `new` alone that the kind
    /// repeats on update.
    pub validate_update: fn(&Value, &Value, &mut Vec<FieldError>),
    /// `(new, old)`: everything wrong with a write to `/status`.
    pub validate_status: fn(&Value, &Value, &mut Vec<FieldError>),
    /// `(new, old)`: sentences for `Warning` headers; `old` is none on create.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// What is wrong with a text as `metadata.name`, one sentence each.
    pub name: fn(&str) -> Vec<String>,
}

impl Rules {
    /// No rules at all; kinds are written as `Rules { default, ..Rules::NONE }`.
    pub(crate) const NONE: Rules = Rules {
        default: |_| {},
        prepare_create: |_, _| {},
        prepare_update: |_, _, _| {},
        prepare_status: |_, _, _| {},
        validate: |_, _| {},
        validate_update: |_, _, _| {},
        validate_status: |_, _, _| {},
        warnings: |_, _| Vec::new(),
        name: |_| Vec::new(),
    };
}

/// The rules of a built-in kind, at the version that is stored.
pub(crate) fn rules(group: &str, kind: &str) -> Option<&'static Rules> {
    workloads::rules(group, kind).or_else(|| objects::rules(group, kind))
}
