//! Programs that run in pods of a network, as `mainstay runner …`.

pub mod bootstrap;
mod environment;
pub mod peer;
pub mod simulate;

pub use environment::WrongVariable;
