//! The operator in a world where it dies before and after each of its writes. Beside it are the controllers of Jobs and a node whose pods do as their
//! template says; nothing goes wrong for these.

mod backfills;
mod classes;
mod lives;
mod outcomes;
mod plugin;
mod properties;
mod schedules;
mod surroundings;
mod world;
