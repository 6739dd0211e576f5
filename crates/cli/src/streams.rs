//! `mainstay streams`: what a team does with its streams all day.
//!
//! ```text
//! StreamClasses ─▶ kinds of streams ─▶ find: streams ─┬─▶ list, describe, plan (read)
//!                                                     └─▶ change: annotations; backfill: a request (write)
//! ```
//!
//! Nothing here writes a spec: whatever a command asks for is an annotation or an object of its own, so that it never fights with
//! whoever applies the streams.

mod backfill;
mod change;
mod describe;
mod downtime;
mod find;
mod list;
mod plan;
#[cfg(test)]
mod tests;

use crate::cluster::{Catalog, Cluster};
use crate::failure::Failure;
use crate::systems::{self, Parent, System};
use mainstay::Kind;
use std::process::ExitCode;

/// How `mainstay streams` is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List streams of all classes.
    List(list::Options),
    /// Show all there is to know of one stream.
    Describe(describe::Options),
    /// Have streams not run, until they are resumed.
    Suspend(change::Options),
    /// Have suspended streams run again.
    Resume(change::Options),
    /// Have streams run anew. It also ends a crash loop.
    Restart(change::Options),
    /// Have a stream backfilled, by a request that can be followed.
    Backfill(backfill::Options),
    /// Have many streams not run for a while, under a key that ends it again.
    Downtime(downtime::Options),
    /// Show which streams a changed class or template would restart, and why.
    Plan(plan::Options),
}

/// Does what is asked.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    match &options.verb {
        Verb::List(options) => list::run(options).await,
        Verb::Describe(options) => describe::run(options).await,
        Verb::Suspend(options) => change::suspend(options).await,
        Verb::Resume(options) => change::resume(options).await,
        Verb::Restart(options) => change::restart(options).await,
        Verb::Backfill(options) => backfill::run(options).await,
        Verb::Downtime(options) => downtime::run(options).await,
        Verb::Plan(options) => plan::run(options).await,
    }
}

/// The kinds of streams: those that classes name, as far as the cluster has them. Where streams are unknown there are none.
pub(crate) async fn kinds(cluster: &Cluster, catalog: &Catalog) -> Vec<Kind> {
    let classes = find::classes(cluster).await.unwrap_or_default();
    classes.iter().map(|class| class.kind.clone()).filter(|kind| catalog.serves(kind)).collect()
}

/// The kind of streams that is called so.
pub(crate) async fn kind_called(cluster: &Cluster, name: &str) -> Option<(&'static System, Parent)> {
    let catalog = cluster.catalog().await.ok()?;
    let kind = catalog.find(name)?.kind.clone();
    let is_stream = kinds(cluster, &catalog).await.contains(&kind);
    let system = systems::find(mainstay_streams::NAME, "look at").ok()?;
    is_stream.then(|| (system, Parent::plain(kind)))
}
