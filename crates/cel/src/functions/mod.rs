//! The functions of the language: what is declared, and what each computes.

pub(crate) mod declarations;
mod signatures;

pub use declarations::{Overload, overloads};
