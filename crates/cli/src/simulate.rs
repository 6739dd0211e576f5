//! `mainstay simulate`: a built-in system in worlds where everything goes wrong that can.
//!
//! ```text
//! SYSTEM ─▶ systems ─▶ Check ─▶ Report ─▶ render ─▶ stdout
//!                        └─▶ progress ─▶ stderr
//! ```
//!
//! What is printed on stdout as a table is the same each time: worlds know no other time than their own. How long it
//! took is told on stderr.

mod progress;
mod render;
mod systems;

use crate::failure::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use mainstay_testkit::simulation::{Check, Family, Faults, Report, Trace};
use progress::Bar;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

/// How `mainstay simulate` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The system; without one, all are listed.
    system: Option<String>,
    /// So many worlds in which several things go wrong at once.
    #[arg(long, value_name = "N", default_value_t = 100)]
    seeds: u64,
    /// Only these kinds of faults, each alone and combined.
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', value_parser = family())]
    only: Vec<Family>,
    /// Only these faults, in one world: "crash after write 7, cut before event 9".
    #[arg(long, value_name = "FAULTS", conflicts_with_all = ["seeds", "only"])]
    replay: Option<Faults>,
    /// The seed of the world to replay.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "replay")]
    seed: u64,
    /// Print everything that happens in one world: the one to replay, or the one without faults.
    #[arg(long, conflicts_with_all = ["seeds", "only"])]
    trace: bool,
    /// On so many threads [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// How to print what came of it.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Table,
    Json,
}

fn family() -> impl clap::builder::TypedValueParser<Value = Family> {
    PossibleValuesParser::new(Family::ALL.map(Family::name)).try_map(|name| name.parse::<Family>())
}

/// Simulates, or lists what can be. The code is 1 if something was found.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let Some(name) = &options.system else {
        print(&match options.output {
            Output::Table => render::list(&systems::ALL),
            Output::Json => render::list_json(&systems::ALL)?,
        })?;
        say("next: mainstay simulate SYSTEM\n");
        return Ok(ExitCode::SUCCESS);
    };
    let system = systems::find(name)?;
    let check = prepare(system.check()?, options);
    let trace = if options.trace { check.trace() } else { Trace::default() };
    let report = simulate(check, system.name);
    print(&match options.output {
        Output::Table if options.trace => format!("{trace}\n{}", render::table(&report)),
        Output::Table => render::table(&report),
        Output::Json => render::json(&report, &trace)?,
    })?;
    say(&render::speed(&report));
    say(&render::next(&report, system.name, options.replay.is_some() && options.trace));
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// What is to go wrong.
fn prepare(mut check: Check, options: &Options) -> Check {
    if let Some(threads) = options.threads {
        check = check.threads(threads.into());
    }
    if let Some(faults) = &options.replay {
        return check.replay(options.seed, &faults.to_string());
    }
    if options.trace {
        return check;
    }
    let families: BTreeSet<Family> =
        if options.only.is_empty() { Family::ALL.into() } else { options.only.iter().copied().collect() };
    families.into_iter().fold(check, Check::every).seeds(options.seeds)
}

fn simulate(check: Check, system: &str) -> Report {
    let bar = Arc::new(Bar::new(system));
    let told = Arc::clone(&bar);
    let report = check.progress(move |progress| told.tell(progress)).report();
    bar.clear();
    report
}

fn print(text: &str) -> Result<(), Failure> {
    let printed = std::io::stdout().write_all(text.as_bytes());
    printed.map_err(|error| Failure::new(error).context("cannot print"))
}

fn say(text: &str) {
    // Nobody is left to tell when stderr is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
