//! The `mainstay` command.
//!
//! ```text
//! arguments ─▶ command (up, simulate, completion) ─▶ exit code
//!                   └─▶ Failure, printed once: what failed, why, what is unchanged, what to do
//! ```
//!
//! Data goes to stdout and narration to stderr, so that a command's output can be piped while a person
//! reads along. Exit codes: 0 all is well, 1 a simulation found something, 2 it failed or was called wrongly.
//!
//! Absent here: how Kubernetes behaves (`mainstay-apiserver`), and any reconciling.

mod failure;
mod home;
mod simulate;
mod up;

use clap::{CommandFactory as _, Parser, Subcommand};
use failure::Failure;
use std::io::Write as _;
use std::process::ExitCode;

/// A Kubernetes API on this machine, in one process.
#[derive(Debug, Parser)]
#[command(name = "mainstay", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the Kubernetes API until Ctrl-C, and write a kubeconfig for it.
    Up(up::Options),
    /// Let everything go wrong for a built-in system, at every place, in simulated worlds.
    Simulate(simulate::Options),
    /// Print a script that completes mainstay's arguments in a shell.
    Completion {
        /// The shell that is to run the script.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // What goes wrong in a simulated world is no warning to anyone; its trace has it.
    if !matches!(arguments.command, Command::Simulate(_)) {
        tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr).init();
    }
    match run(&arguments.command) {
        Ok(code) => code,
        Err(failure) => {
            // Nobody is left to tell when stderr is closed.
            let _ = std::io::stderr().write_all(failure.render().as_bytes());
            ExitCode::from(2)
        }
    }
}

fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Up(options) => up::run(options).map(|()| ExitCode::SUCCESS),
        Command::Simulate(options) => simulate::run(options),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "mainstay", &mut script);
            let printed = std::io::stdout().write_all(&script);
            printed.map_err(|error| Failure::new(error).context("cannot print")).map(|()| ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_declared_without_contradiction() {
        Arguments::command().debug_assert();
    }
}
