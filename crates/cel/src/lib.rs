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
//! ```
//! use mainstay_cel::{Limits, Program, Type, Value, compile};
//!
//! let checked = compile("x.all(i, i > 0)", &[("x", Type::list(Type::Int))]).unwrap();
//! let program = Program::new(&checked).unwrap();
//! let list = Value::list(vec![Value::Int(1), Value::Int(2)]);
//! let evaluation = program.evaluate(&[list], Limits::cost(1000));
//! assert_eq!(evaluation.result, Ok(Value::Bool(true)));
//! assert_eq!(evaluation.cost, 12);
//! ```
//!
//! Expressions can come from anybody, so everything has a bound:
//!
//! - The length and the depth of an expression ([`syntax::TEXT_CHARACTERS_MAX`], [`syntax::DEPTH_MAX`]). Code
//!   that walks trees recurses; optimised, it needs less than a megabyte of stack for the deepest.
//! - The cost, the memory and the work of an evaluation ([`Limits`], [`EvaluateError::CostExceeded`]).
//! - The highest cost that an expression can have is known before it is evaluated ([`estimate`]).
//! - An evaluation can be cancelled from another thread ([`Limits::cancelled`]).
//!
//! The crate knows no schemas, no objects and no API server. Callers declare the types of variables and give
//! their values. It has no `authorizer`.

pub mod ast;
mod check;
mod errors;
pub mod estimate;
mod evaluate;
mod format;
mod functions;
pub mod go_regex;
pub mod go_url;
#[cfg(test)]
mod properties;
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
