//! Label and field selectors: reading them from a query, and deciding which objects they select.
//!
//! Parsing and wording follow kube-apiserver to the letter, because a refused selector is a 400 whose
//! message people search for. Matching works on an object's JSON and allocates nothing for the common
//! operators.

mod fields;
mod kinds;
mod labels;
mod parse;
#[cfg(test)]
mod tests;

pub(crate) use fields::{FieldFilter, FieldSelector};
pub(crate) use kinds::FieldSupport;
pub(crate) use labels::LabelSelector;
