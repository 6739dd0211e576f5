//! `mainstay runner`: programs that run in pods. On a cluster of `mainstay up`, images called `mainstay:*` are this very command, so
//! that what is shown there needs no other program.

use crate::failure::Failure;
use crate::output::{print, say};
use feed_plugin::program::{self, Context, USAGE};
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
}

/// Runs the program. The code is the program's own.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let Program::Feed = options.program;
    let context = match Context::read(|name| std::env::var(name).ok()) {
        Ok(context) => context,
        Err(error) => {
            say(&Failure::new(error).context("cannot run a feed").render());
            return Ok(USAGE.into());
        }
    };
    // A log that nobody keeps is no reason to end.
    let tell = |line: &str| drop(print(&format!("{line}\n")));
    Ok(program::run(&context, tell, mainstay::termination()).await.into())
}
