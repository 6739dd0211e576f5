//! `mainstay runner`: programs that run in pods. On a cluster of `mainstay up`, images called `mainstay:*` are this very command, so
//! that what is shown there needs no other program.

mod simulate;

use crate::failure::Failure;
use crate::output::{print, say};
use feed_plugin::program::{self, Context, USAGE};
use mainstay_networks::rpc::HttpRpc;
use mainstay_networks::runner::{bootstrap, peer};
use std::process::ExitCode;

/// How `mainstay runner` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    program: Program,
}

#[derive(Debug, clap::Subcommand)]
enum Program {
    /// Copy records, as a Feed of examples/feed-plugin asks for in STREAMCONTEXT__* variables.
    Feed,
    /// Be a peer of a Network, as the environment of its pod says.
    Peer,
    /// Connect the peers of a Network, as BOOTSTRAP_* variables say.
    Bootstrap,
    /// Put load on the peers of a Network, for a Simulation.
    Simulate {
        #[command(subcommand)]
        part: simulate::Part,
    },
}

/// Runs the program. The code is the program's own.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let environment = |name: &str| std::env::var(name).ok();
    // A log that nobody keeps is no reason to end.
    let tell = |line: &str| drop(print(&format!("{line}\n")));
    match &options.program {
        Program::Feed => Ok(feed(tell).await),
        Program::Peer => Ok(peer::run(environment, tell, mainstay::termination()).await.into()),
        Program::Simulate { part } => Ok(simulate::run(part).await),
        Program::Bootstrap => Ok(bootstrap::run(environment, &HttpRpc::new(), tell).await.into()),
    }
}

async fn feed(tell: impl Fn(&str)) -> ExitCode {
    let context = match Context::read(|name| std::env::var(name).ok()) {
        Ok(context) => context,
        Err(error) => {
            say(&Failure::new(error).context("cannot run a feed").render());
            return USAGE.into();
        }
    };
    program::run(&context, tell, mainstay::termination()).await.into()
}
