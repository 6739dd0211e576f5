//! The `mainstay` command.
//!
//! ```text
//! arguments ─▶ command ─▶ what it found ─▶ output ─▶ stdout, exit code
//!                 └─▶ Failure, printed once: what failed, why, what is unchanged, what to do
//! ```
//!
//! | command | about | reaches |
//! |---|---|---|
//! | `up` | a cluster on this machine | nothing |
//! | `run` | systems at work | the cluster |
//! | `crds`, `rbac`, `install` | what a cluster needs, to be applied | nothing |
//! | `uninstall` | what is left of a system, to be removed | the cluster |
//! | `plan` | what would be written, and why | the cluster |
//! | `explain` | what was written, and why | the cluster, and the operator that runs |
//! | `status` | what there is, and whether it does its work | the cluster |
//! | `check` | whether systems can work here | the cluster |
//! | `streams` | streams of all classes | the cluster |
//! | `networks` | networks of peers, and simulations of them | the cluster |
//! | `simulate` | systems where everything goes wrong | nothing |
//! | `runner` | programs that run in pods | what they like |
//! | `completion` | a script for a shell | nothing |
//!
//! `systems` is the one list of what these commands are about, `cluster` the one way to a cluster, `output` the one place
//! that prints. Data goes to stdout and narration to stderr, so that a command's output can be piped while a person reads
//! along. Exit codes, as `kubectl diff` has them: 0 all is well, 1 something differs, is not ready or was found, 2 it failed or
//! was called wrongly.
//!
//! Absent here: how Kubernetes behaves (`mainstay-apiserver`), and any reconciling.

mod check;
mod cluster;
mod explain;
mod failure;
mod fields;
mod home;
mod input;
mod manifests;
mod networks;
mod output;
mod plan;
mod run;
mod runner;
mod simulate;
mod status;
mod streams;
mod systems;
mod token;
mod uninstall;
mod up;

use clap::{CommandFactory as _, Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::{Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// Declare what should exist; Mainstay makes it so and keeps it so, on this machine or on any cluster.
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
    /// Have systems work in the cluster of the kubeconfig, until Ctrl-C.
    Run(run::Options),
    /// Print the definitions of the systems' kinds, to be applied.
    Crds(manifests::Crds),
    /// Print the least permissions that systems need, to be applied.
    Rbac(manifests::Rbac),
    /// Print all that runs systems in a cluster, to be applied.
    Install(manifests::Install),
    /// Show what is left of a system in the cluster, and remove it with --yes.
    Uninstall(uninstall::Options),
    /// Show what a system would write now, and why.
    Plan(plan::Options),
    /// Show what a running system did for an object, and why.
    Explain(explain::Options),
    /// Show objects with all that is made for them, and whether it is ready.
    Status(status::Options),
    /// Examine whether systems can work here: kubeconfig, server, clock, webhooks, kinds, permissions.
    Check(check::Options),
    /// Look at streams, suspend, restart and backfill them, and see what a change would do to them.
    Streams(streams::Options),
    /// Look at networks of peers, draw them, and read what simulations found.
    Networks(networks::Options),
    /// Let everything go wrong for a built-in system, at every place, in simulated worlds.
    Simulate(simulate::Options),
    /// Run a program that is made for pods.
    Runner(runner::Options),
    /// Print a script that completes mainstay's arguments in a shell.
    Completion {
        /// The shell that is to run the script.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(shown) = log(&arguments.command) {
        let lines = tracing_subscriber::fmt::layer().with_target(false).with_writer(std::io::stderr);
        tracing_subscriber::registry().with(lines.with_filter(shown)).init();
    }
    match run(&arguments.command) {
        Ok(code) => code,
        Err(failure) => {
            output::say(&failure.render());
            ExitCode::from(2)
        }
    }
}

/// What of the log is shown.
fn log(command: &Command) -> Option<Targets> {
    match command {
        // These say themselves what they could not read; and what goes wrong in a simulated world is no warning to anyone.
        Command::Uninstall(_)
        | Command::Plan(_)
        | Command::Explain(_)
        | Command::Status(_)
        | Command::Check(_)
        | Command::Streams(_)
        | Command::Networks(_)
        | Command::Runner(_)
        | Command::Simulate(_) => None,
        // What it writes is what it is run for. What it waits for is narrated, with what helps.
        Command::Run(_) => {
            let narrated = ["mainstay::cache", "mainstay::operator", "mainstay::runner::active"];
            let narrated = narrated.map(|target| (target, Level::WARN));
            // Whoever gets the error tells of it.
            let shown = Targets::new().with_default(Level::INFO).with_target("kube_client", LevelFilter::OFF);
            Some(shown.with_targets(narrated))
        }
        _ => Some(Targets::new().with_default(Level::WARN)),
    }
}

/// Waits for a command that reaches a cluster.
fn wait<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Runtime::new();
    runtime.map_err(|error| Failure::new(error).context("cannot start"))?.block_on(work)
}

fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(options) => wait(run::run(options)),
        Command::Crds(options) => manifests::crds(options),
        Command::Rbac(options) => manifests::rbac(options),
        Command::Install(options) => manifests::install(options),
        Command::Uninstall(options) => wait(uninstall::run(options)),
        Command::Plan(options) => wait(plan::run(options)),
        Command::Explain(options) => wait(explain::run(options)),
        Command::Status(options) => wait(status::run(options)),
        Command::Check(options) => wait(check::run(options)),
        Command::Streams(options) => wait(streams::run(options)),
        Command::Networks(options) => wait(networks::run(options)),
        Command::Runner(options) => wait(runner::run(options)),
        Command::Up(options) => up::run(options).map(|()| ExitCode::SUCCESS),
        Command::Simulate(options) => simulate::run(options),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "mainstay", &mut script);
            output::print(&String::from_utf8_lossy(&script)).map(|()| ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_names_every_command() {
        let readme =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
        for command in Arguments::command().get_subcommands() {
            let name = command.get_name();
            assert!(readme.contains(&format!("`mainstay {name}")), "{name}");
        }
    }

    #[test]
    fn arguments_are_declared_without_contradiction() {
        Arguments::command().debug_assert();
    }
}
