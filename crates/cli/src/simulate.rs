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
use std::hash::{BuildHasher as _, RandomState};
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
    /// The first seed; the others follow it. `random` picks one, and it is printed.
    #[arg(long, value_name = "N|random", default_value = "1", value_parser = first_seed)]
    first_seed: u64,
    /// Only worlds in which several things go wrong at once, not each fault alone.
    #[arg(long, conflicts_with = "only")]
    combined: bool,
    /// Only these faults, in one world: "crash after write 7, cut before event 9".
    #[arg(long, value_name = "FAULTS", conflicts_with_all = ["seeds", "first_seed", "combined", "only"])]
    replay: Option<Faults>,
    /// The seed of the world to replay.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "replay")]
    seed: u64,
    /// Print everything that happens in one world: the one to replay, or the one without faults.
    #[arg(long, conflicts_with_all = ["seeds", "first_seed", "combined", "only"])]
    trace: bool,
    /// On so many threads [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// How to print what came of it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(REPORTS))]
    output: Format,
}

/// Random seeds are this small, so that people can copy them.
const RANDOM_SEED_MAX: u64 = 1_000_000_000;

fn first_seed(text: &str) -> Result<u64, String> {
    match text {
        "random" => Ok(RandomState::new().hash_one("seed") % RANDOM_SEED_MAX + 1),
        number => number.parse().map_err(|_| "it is neither a number nor `random`".to_owned()),
    }
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
    let seeds = render::Seeds { first: options.first_seed, count: options.seeds };
    if options.first_seed != 1 {
        say(&render::seeds(system.name, seeds));
    }
    let trace = if options.trace { check.trace() } else { Trace::default() };
    let report = simulate(check, system.name);
    print(&match options.output {
        Format::Json => render::json(&report, &trace)?,
        Format::Yaml => render::yaml(&report, &trace)?,
        _ if options.trace => format!("{trace}\n{}", render::table(&report)),
        _ => render::table(&report),
    })?;
    say(&render::speed(&report));
    say(&render::next(&report, system.name, seeds, options.replay.is_some() && options.trace));
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
    let check = check.seeds(options.seeds).first_seed(options.first_seed);
    if options.combined {
        return check;
    }
    let families: BTreeSet<Family> =
        if options.only.is_empty() { Family::ALL.into() } else { options.only.iter().copied().collect() };
    families.into_iter().fold(check, Check::every)
}

fn simulate(check: Check, system: &str) -> Report {
    let bar = Arc::new(Bar::new(system));
    let told = Arc::clone(&bar);
    let report = check.progress(move |progress| told.tell(progress)).report();
    bar.clear();
    report
}
