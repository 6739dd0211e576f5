//! From text to syntax tree.
//!
//! The grammar is that of cel-go, with its limits: an expression has at most [`TEXT_CHARACTERS_MAX`]
//! characters, and nests at most [`DEPTH_MAX`] levels deep. Chains of `&&` and `||` become balanced trees, so
//! their length is no depth. Because depth is bounded, everything that walks a tree may recurse.

mod lexer;
mod macros;
mod parser;
mod unescape;
mod values;

#[cfg(test)]
mod tests;

pub use parser::parse;

/// How many characters an expression may have.
pub const TEXT_CHARACTERS_MAX: usize = 100_000;

/// How many levels an expression may nest.
pub const DEPTH_MAX: usize = 250;

/// The variable that holds the result of a macro's loop so far. No expression can name it.
pub const ACCUMULATOR: &str = "@result";

/// The variable of a loop that runs zero times and serves to bind its accumulator.
pub const UNUSED_VARIABLE: &str = "#unused";
