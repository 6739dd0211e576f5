//! Desired and live objects, compared.
//!
//! Everything here is pure. Data flows like this:
//!
//! ```text
//! handler's child ─▶ Desired ──┐
//!                              ├─▶ compare ─▶ changes ─▶ a plan's reasons
//! cached object ───────────────┤
//! OpenAPI Document ─▶ Rules ───┤
//! response to an apply ─▶ Learned, or after a restart Ownership
//! ```
//!
//! - [`compare`] looks only at fields that are desired, list items matched as the schema says; it allocates nothing
//!   where nothing differs.
//! - [`Learned`] remembers what the server makes of what it is sent, so that it isn't fought. What anybody else
//!   changes is still seen.
//! - [`Ownership`] tells, from `managedFields`, whether a field is still as we applied it.
//! - [`difference`] tells everything that differs between two states of an object.

mod canonical;
mod change;
mod compare;
mod desired;
mod difference;
mod document;
mod learned;
mod lists;
mod overlay;
mod owned;
mod path;
mod path_text;
mod quantity;
#[cfg(test)]
mod tests;

pub use change::Change;
pub use compare::compare;
pub use desired::{APPLIED, Desired, DesiredError};
pub use difference::{Extent, difference};
pub use document::{Document, DocumentError};
pub use learned::Learned;
pub use lists::{ListRule, MapKey, Rules};
pub use overlay::overlay;
pub use owned::Ownership;
pub use path::{FieldPath, Literal, Step};
pub use path_text::FieldPathError;
