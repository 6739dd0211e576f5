//! `mainstay runner simulate`: the manager and the workers of a simulation of a network.

use std::process::ExitCode;
use std::sync::Arc;

use mainstay_networks::rpc::HttpRpc;
use mainstay_networks::runner::WrongVariable;
use mainstay_networks::runner::simulate::settings::{ManagerSettings, WorkerSettings};
use mainstay_networks::runner::simulate::{USAGE, manager, worker};

use crate::failure::Failure;
use crate::output::{print, say};

/// What of it is run.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Part {
    /// Wait for workers, have them begin together, and collect what they find, as SIMULATE_* variables say.
    Manager,
    /// Put load on one peer, as SIMULATE_* variables say.
    Worker,
}

/// Runs the program. The code is the program's own.
pub(crate) async fn run(part: &Part) -> ExitCode {
    let environment = |name: &str| std::env::var(name).ok();
    // A log that nobody keeps is no reason to end.
    let tell = |line: &str| drop(print(&format!("{line}\n")));
    let outcome = async {
        Ok(match part {
            Part::Manager => manager::run(ManagerSettings::read(environment)?, tell).await,
            Part::Worker => {
                worker::run(WorkerSettings::read(environment)?, Arc::new(HttpRpc::new()), tell).await
            }
        })
    };
    let outcome: Result<u8, WrongVariable> = tokio::select! {
        outcome = outcome => outcome,
        // Asked to end, as a pod is that is deleted.
        () = mainstay::termination() => Ok(INTERRUPTED),
    };
    match outcome {
        Ok(code) => code.into(),
        Err(error) => {
            say(&Failure::new(error).context("cannot run a part of a simulation").render());
            USAGE.into()
        }
    }
}

/// The exit code of a program that SIGTERM ends.
const INTERRUPTED: u8 = 143;
