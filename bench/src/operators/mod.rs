//! An operator of ours beside the same one written with kube's `Controller`.
//!
//! ```text
//! this process: makes shops, watches them, asks both for their counts, reads /proc
//!   ├─ the API server: embedded, over HTTP; or the real one       one of its own for each contender
//!   └─ contender: ours or with_kube, with a client that counts    same children, same default settings
//! ```
//!
//! [`shop`] says what shall exist, [`scenarios`] what both go through, [`stores`] what the caches alone take.

pub(crate) mod contender;
mod ours;
mod progress;
mod scenarios;
mod shop;
pub(crate) mod stores;
mod table;
mod tally;
mod with_kube;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use mainstay_testkit::binaries::Binaries;
use mainstay_testkit::real::{RealControlPlane, RealOptions};

pub(crate) use contender::Which;
use scenarios::{Run, Stage};
use stores::Grown;
pub(crate) use stores::Store;
use table::Table;

use crate::child::{self, Server};
use crate::process;

/// How much there is to do.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Sizes {
    /// How many parents there are on the embedded server.
    #[arg(long, default_value_t = Sizes::default().parents)]
    parents: usize,
    /// How many there are on the real one.
    #[arg(long, default_value_t = Sizes::default().real_parents)]
    real_parents: usize,
    /// Leaves the real control plane out.
    #[arg(long)]
    without_real: bool,
    /// Only this contender, and only the embedded server.
    #[arg(long)]
    only: Option<Which>,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { parents: 10_000, real_parents: 1_000, without_real: false, only: None }
    }
}

impl Sizes {
    /// The usual ones, with or without the real control plane.
    pub(crate) fn usual(without_real: bool) -> Self {
        Self { without_real, ..Self::default() }
    }
}

/// Runs everything and prints the table.
pub(crate) async fn compare(sizes: Sizes) -> Result<()> {
    let started = Instant::now();
    let mut table = Table::new();
    if let Some(only) = sizes.only {
        let run = on_embedded(only, sizes.parents).await?;
        table.add_runs("embedded", sizes.parents, &run, &run);
        print!("{}", table.render());
        return Ok(());
    }
    let kube = on_embedded(Which::Kube, sizes.parents).await?;
    let ours = on_embedded(Which::Ours, sizes.parents).await?;
    table.add_runs("embedded", sizes.parents, &kube, &ours);
    if !sizes.without_real {
        let kube = on_real(Which::Kube, sizes.real_parents).await?;
        let ours = on_real(Which::Ours, sizes.real_parents).await?;
        table.add_runs("real", sizes.real_parents, &kube, &ours);
    }
    add_stores(&mut table).await?;
    print!("{}", table.render());
    let cores = std::thread::available_parallelism()?;
    println!(
        "\n{} parents on the embedded server, {} on the real one; {cores} cores, {:.0} s in all",
        sizes.parents,
        sizes.real_parents,
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

async fn on_embedded(which: Which, shops: usize) -> Result<Run> {
    eprintln!("{}: {shops} parents on the embedded server", which.name());
    let server = Server::start(None, true).await?;
    let kubeconfig = server.kubeconfig();
    Stage { kubeconfig: &kubeconfig, servers: vec![server.pid()?], shops }.run(which).await
}

async fn on_real(which: Which, shops: usize) -> Result<Run> {
    eprintln!("{}: {shops} parents on the real server", which.name());
    let binaries = Binaries::find().context("without them only `--without-real` works")?;
    let options = RealOptions { fsync: true, ..RealOptions::default() };
    let real = RealControlPlane::start(&binaries, &options).await?;
    let kubeconfig = real.kubeconfig();
    let started = process::started_in(kubeconfig.parent().context("a directory")?);
    let servers = started.into_iter().filter(|(program, _)| program == "kube-apiserver");
    let servers = servers.map(|(_, pid)| pid).collect();
    Stage { kubeconfig: &kubeconfig, servers, shops }.run(which).await
}

async fn add_stores(table: &mut Table) -> Result<()> {
    eprintln!("caches of {} pods", stores::PODS);
    let server = Server::start(None, true).await?;
    let kubeconfig = server.kubeconfig();
    let json_bytes = stores::fill(&kubeconfig).await?;
    let kube = grown(Store::Kube, &kubeconfig).await?;
    let kube_pruned = grown(Store::KubePruned, &kubeconfig).await?;
    let ours = grown(Store::Ours, &kubeconfig).await?;
    table.add_stores(json_bytes, kube, kube_pruned, ours);
    Ok(())
}

async fn grown(store: Store, kubeconfig: &Path) -> Result<u64> {
    let grown: Grown = child::ask(&["hold", store.name(), &kubeconfig.display().to_string()]).await?;
    Ok(grown.heap_bytes)
}
