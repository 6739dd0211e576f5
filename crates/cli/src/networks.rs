//! `mainstay networks`: what a protocol engineer does with networks all day.
//!
//! ```text
//! Networks ─▶ find ─┬─▶ list, describe, topology, plan (read the cluster)
//!                   └─▶ simulations: what they found
//! FILE ─▶ render (reads nothing else)
//! ```

mod describe;
mod find;
mod list;
mod render;
mod simulations;
mod topology;

use crate::cluster::{Connection, Selection};
use crate::failure::Failure;
use crate::output::{Format, OBJECTS};
use crate::plan;
use std::process::ExitCode;

/// How `mainstay networks` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List networks.
    List(list::Options),
    /// Show all there is to know of one network.
    Describe(describe::Options),
    /// Show how the peers of a network shall be connected, and how they are.
    Topology(topology::Options),
    /// Show which objects would be written for networks now, and which peers would be connected.
    Plan(PlanOptions),
    /// Print all that a network would consist of, without a cluster.
    Render(render::Options),
    /// Look at simulations and what they found.
    Simulations(simulations::Options),
}

/// How `mainstay networks plan` is called.
#[derive(Debug, clap::Args)]
struct PlanOptions {
    /// Which network [default: all].
    name: Option<String>,
    /// How to print it; name prints those for whom something would be written.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of(OBJECTS))]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Does what is asked.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    match &options.verb {
        Verb::List(options) => list::run(options).await,
        Verb::Describe(options) => describe::run(options).await,
        Verb::Topology(options) => topology::run(options).await,
        Verb::Plan(options) => {
            let objects = Selection::named(options.name.clone());
            plan::of("Network", &objects, options.output, &options.connection).await
        }
        Verb::Render(options) => render::run(options),
        Verb::Simulations(options) => simulations::run(options).await,
    }
}
