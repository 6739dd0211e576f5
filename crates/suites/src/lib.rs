//! The suites that hold the framework and the embedded API server to their promises, on the embedded and on a real cluster.
//!
//! | module of `tests` | what it shows |
//! |---|---|
//! | `cel` | generated expressions, evaluated by us and by Kubernetes' own libraries |
//! | `dependencies` | licences and versions of what we depend on |
//! | `differential` | the same requests to both servers, every answer compared |
//! | `go_clients` | typed and other clients of client-go, informers, leader election, events |
//! | `kube_rs` | unmodified kube-rs clients |
//! | `kubectl` | scripts of kubectl with their output |
//! | `operator` | operators written with `mainstay`, one module per topic |
//! | `operator_webhooks` | webhooks that an operator serves |
//! | `readme` | the examples of the README |
//! | `simulation` | faulty operators, and that simulation finds what is wrong with them |
//! | `tidy` | files, links and documents of this repository |
//! | `webhooks` | webhooks as the API server calls them |
//!
//! They are a crate of their own so that they are compiled without optimisation, while what simulations spend their time in
//! is optimised: `Cargo.toml` of the workspace says which crates that are.
