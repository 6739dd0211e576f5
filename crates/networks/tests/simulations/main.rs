//! Simulations in a world where the operator dies before and after each of its writes, calls to peers and managers included. Beside it are the controllers
//! of workloads; nothing goes wrong for these.

mod lives;
mod load;
mod world;
