//! Every controller in a world where everything goes wrong: each write, each read and each event of it once.

mod cron_job;
mod daemon_set;
mod endpoints;
mod job;
mod scheduler;
mod storage;
mod sets;
mod stateful_set;
mod node;
