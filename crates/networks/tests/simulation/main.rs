//! The operator in a world where it dies before and after each of its writes, dials included. Beside it are the controllers of workloads
//! and Jobs, and peers; nothing goes wrong for these.

mod lives;
mod peers;
mod properties;
mod world;
