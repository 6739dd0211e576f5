//! The API server as its embedders and clients meet it.
//!
//! One binary, one module for each suite:
//!
//! - `durability`: `kill -9`, full disks and damaged files
//! - `first_five_minutes`: the example of the README
//! - `limits`: requests that ask for more memory, or stack, than they send
//! - `properties`: random requests against a model
//! - `seams`: what an embedder can put in: faults, delivery, time, subresources

mod durability;
mod first_five_minutes;
mod limits;
mod properties;
mod seams;
