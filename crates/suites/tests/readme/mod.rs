//! The examples of the README, word for word.

mod namespace;
mod operator;
