//! The Common Expression Language as Kubernetes speaks it.
//!
//! ```text
//! text ─parse─▶ Ast ─check─▶ Checked ─evaluate─▶ Value, cost
//! ```
//!
//! The dialect is that of a Kubernetes 1.36 API server: cel-go with the libraries for strings, lists, sets,
//! regular expressions, URLs, quantities, IP addresses, CIDRs, versions, formats and optional values. Parsing,
//! types, results, texts of errors and costs follow it, so a rule means here what it means there.
//!
//! Expressions come from strangers, hence everything has a bound:
//!
//! - The length and the depth of an expression ([`syntax::TEXT_CHARACTERS_MAX`], [`syntax::DEPTH_MAX`]).
//!
//! What the crate does not do: it knows no schemas, no objects and no API server. Callers declare the types of
//! variables and give their values.

pub mod ast;
mod check;
mod errors;
pub mod estimate;
mod evaluate;
mod format;
mod functions;
pub mod go_regex;
pub mod go_url;
pub mod syntax;
pub mod time;
mod types;
mod value;

pub use check::{Checked, Reference, Variables, check};
pub use errors::{CompileError, Issue};
pub use evaluate::{EvaluateError, Evaluation, Limits, PlanError, Program};
pub use functions::kinds;
pub use functions::{Overload, overloads};
pub use types::{ObjectType, Type};
pub use value::{Identity, Key, List, Map, Value};

/// Parses and checks an expression.
pub fn compile(text: &str, variables: &Variables<'_>) -> Result<Checked, CompileError> {
    check(syntax::parse(text)?, variables)
}
