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

use crate::failure::Failure;
use crate::output::{Format, REPORTS, print, say};
use crate::systems;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use mainstay_testkit::simulation::{Check, Family, Faults, Report, Trace};
use progress::Bar;
use std::collections::BTreeSet;
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
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(REPORTS))]
    output: Format,
}

fn family() -> impl clap::builder::TypedValueParser<Value = Family> {
    PossibleValuesParser::new(Family::ALL.map(Family::name)).try_map(|name| name.parse::<Family>())
}

/// Simulates, or lists what can be. The code is 1 if something was found.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let Some(name) = &options.system else {
        print(&match options.output {
            Format::Json => render::list_json(&systems::ALL)?,
            Format::Yaml => render::list_yaml(&systems::ALL)?,
            Format::Table | Format::Name => render::list(&systems::ALL),
        })?;
        say("next: mainstay simulate SYSTEM\n");
        return Ok(ExitCode::SUCCESS);
    };
    let system = systems::find(name, "simulate")?;
    let check = prepare(system.check()?, options);
    let trace = if options.trace { check.trace() } else { Trace::default() };
    let report = simulate(check, system.name);
    print(&match options.output {
        Format::Json => render::json(&report, &trace)?,
        Format::Yaml => render::yaml(&report, &trace)?,
        _ if options.trace => format!("{trace}\n{}", render::table(&report)),
        _ => render::table(&report),
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
