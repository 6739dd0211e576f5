//! Every controller in a world where everything goes wrong: each write, each read and each event of it once.

mod daemon_set;
mod stateful_set;
mod endpoints;
mod cron_job;
mod job;
mod scheduler;
mod storage;
