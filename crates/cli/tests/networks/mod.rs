//! Networks whose peers, jobs, managers and workers are processes of this machine, on the embedded and the real cluster, and the commands
//! that look at them.

#![cfg(target_os = "linux")]

mod commands;
mod life;
mod looks;
mod peers;
mod world;
mod wrong;
