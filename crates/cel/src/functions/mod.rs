//! The functions of the language: what is declared, and what each computes.

mod conversions;
mod dates;
pub(crate) mod declarations;
mod formatting;
pub mod kinds;
mod lists;
mod names;
mod net;
mod operators;
mod signatures;
mod strings;
pub(crate) mod text;
mod values;

pub use declarations::{Overload, overloads};

use crate::evaluate::{EvaluateError, Machine, Outcome};
use crate::value::Value;

/// Computes a call. Types of arguments may still be wrong: those of `dyn` are known only now.
pub(crate) type Function = fn(&mut Machine<'_>, &[Value]) -> Outcome;

/// The function of a name.
pub(crate) fn function(name: &str) -> Option<Function> {
    operators::function(name)
        .or_else(|| conversions::function(name))
        .or_else(|| strings::function(name))
        .or_else(|| lists::function(name))
        .or_else(|| dates::function(name))
        .or_else(|| net::function(name))
        .or_else(|| values::function(name))
}

/// An error with a text.
fn failed<T>(message: impl Into<String>) -> Result<T, EvaluateError> {
    Err(EvaluateError::Failed(message.into()))
}

/// The error of arguments that no overload takes.
fn mismatch<T>() -> Result<T, EvaluateError> {
    Err(EvaluateError::no_such_overload())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declared_function_is_implemented() {
        let elsewhere = ["_&&_", "_||_", "_?_:_", "_[_]", "_[?_]", "or", "orValue"];
        for line in signatures::SIGNATURES.trim().lines() {
            let name = line.split(' ').next().unwrap();
            assert!(elsewhere.contains(&name) || function(name).is_some(), "{name}");
        }
    }
}
