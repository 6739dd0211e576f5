//! Operators in simulated worlds: correct ones, which pass everything, and broken ones, each of which is caught.

mod kube_rs;
mod oracles;
mod patterns;
mod roperator;
mod worked_example;
