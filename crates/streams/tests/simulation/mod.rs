//! The operator in worlds where it dies before and after each of its writes, and where all else goes wrong that can. In some, beside it are the controllers
//! of Jobs and a node whose pods do as their template says, for which nothing goes wrong. In the others the user's script tells how Jobs end: such a
//! world takes half of the time.

mod backfills;
mod classes;
mod lives;
mod outcomes;
pub(crate) mod plugin;
mod properties;
mod schedules;
mod surroundings;
mod world;
