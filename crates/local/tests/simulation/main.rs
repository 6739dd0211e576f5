//! Every controller in a world where everything goes wrong: each write, each read and each event of it once.

mod cron_job;
mod daemon_set;
mod deployment;
mod endpoints;
mod job;
mod node;
mod replica_set;
mod scheduler;
mod sets;
mod stateful_set;
mod storage;
