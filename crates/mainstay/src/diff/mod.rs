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
//! - [`compare`] looks only at fields that are desired, list items matched as the schema says; it allocates
//!   nothing where nothing differs.
//! - [`Learned`] remembers what the server makes of what it is sent, so that it isn't fought. What anybody
//!   else changes is still seen.
//! - [`Ownership`] tells, from `managedFields`, whether a field is still as we applied it.
//! - [`difference`] tells everything that differs between two states of an object.
//!
//! ```
//! use mainstay::diff::{Learned, Rules, compare};
//! use serde_json::json;
//!
//! let desired = json!({"spec": {"replicas": 3}});
//! let live = json!({"spec": {"replicas": 2, "paused": false}});
//! let changes = compare(&desired, &live, &Rules::unknown(), &Learned::nothing());
//! assert_eq!(changes[0].to_string(), "spec.replicas: 2 → 3");
//! assert_eq!(changes.len(), 1);
//! ```

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

pub use canonical::content_hash;
pub(crate) use canonical::drop_nulls;
pub use change::Change;
pub use compare::compare;
pub use desired::{APPLIED, Desired, DesiredError};
pub use difference::{Extent, difference};
pub(crate) use document::CONDITIONS_GENERATION;
pub use document::{Document, DocumentError};
pub use learned::Learned;
pub use lists::{ListRule, MapKey, Rules};
pub use overlay::overlay;
pub use owned::Ownership;
pub use path::{FieldPath, Literal, Step};
pub use path_text::FieldPathError;
pub use quantity::quantity_in_billionths;
