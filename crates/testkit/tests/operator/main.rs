//! What operators written with `mainstay` do, on the embedded and the real cluster: one module per topic, and the kinds
//! that all of them use.

mod bad_input;
mod children;
mod conflict;
mod defects;
mod events;
mod finalize;
mod gate;
mod kinds;
mod own_kinds;
mod rbac;
mod replicas;
mod serving;
mod shutdown;
mod status;
mod strategies;
mod sync;
mod unstable;
mod wire;
