//! The operator in worlds where it dies before and after each of its writes, dials and calls to managers included, and where all else goes wrong that can.
//! Beside it are the controllers of workloads, pods and peers; nothing goes wrong for these but what a story says.

mod lives;
mod load;
mod managers;
mod mischief;
mod partition;
mod peers;
mod pods;
mod properties;
mod walk;
mod world;
