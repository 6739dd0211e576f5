//! What operators written with `mainstay` do, on the embedded and the real cluster: one module per topic, and the kinds
//! that all of them use.

mod bad_input;
mod children;
mod conflict;
mod defects;
mod down;
mod effects;
mod events;
mod finalize;
mod fixtures;
mod immutable;
mod kinds;
mod kinds_at_run_time;
mod memory;
mod own_kinds;
mod own_writes;
mod parents;
mod permissions;
mod plan;
mod policies;
mod queue;
mod rbac;
mod registrations;
mod related;
mod replicas;
mod revoked;
mod seam;
mod serving;
mod shutdown;
mod stale;
mod status;
mod strategies;
mod sync;
mod unstable;
