//! A contender in a process of its own. Its parent speaks to it in lines: `report` asks for the counts, `resync` has
//! every shop looked at again. It ends when its input does.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use super::tally::{Counting, Counts, Tally};
use super::{ours, with_kube};
use crate::child;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    Ours,
    Kube,
}

impl Which {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Which::Ours => "ours",
            Which::Kube => "kube",
        }
    }
}

/// A client of the cluster that a kubeconfig names, with a layer around it that counts.
pub(crate) async fn client(kubeconfig: &Path, tally: &Arc<Tally>) -> Result<kube::Client> {
    // The process may have one already, and any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(ClientBuilder::try_from(config)?.with_layer(&Counting(tally.clone())).build())
}

/// The child's side.
pub(crate) async fn run(which: Which, kubeconfig: &Path, shops: usize) -> Result<()> {
    let tally = Tally::new();
    let client = client(kubeconfig, &tally).await?;
    let (resync, resyncs) = mpsc::channel(1);
    let told = tally.clone();
    tokio::spawn(async move {
        let ended = match which {
            Which::Ours => ours::run(client, told, shops, resyncs).await,
            Which::Kube => with_kube::run(client, told, resyncs).await,
        };
        eprintln!("{} ended: {ended:?}", which.name());
    });
    tokio::task::spawn_blocking(move || {
        for line in std::io::stdin().lines() {
            match line?.as_str() {
                "report" => println!("{}", serde_json::to_string(&tally.counts())?),
                "resync" => resync.blocking_send(()).context("the operator ended")?,
                other => bail!("unknown: {other}"),
            }
        }
        Ok(())
    })
    .await?
}

/// The parent's side. The child is killed when this is dropped.
pub(crate) struct Contender {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    started: Instant,
    measured: bool,
}

impl Contender {
    pub(crate) fn start(which: Which, kubeconfig: &Path, shops: usize) -> Result<Self> {
        let kubeconfig = kubeconfig.display().to_string();
        let started = Instant::now();
        let mut child =
            child::command(&["contender", which.name(), &kubeconfig, &shops.to_string()])?.spawn()?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?).lines();
        Ok(Self { child, input, output, started, measured: false })
    }

    pub(crate) fn pid(&self) -> Result<u32> {
        self.child.id().context("the operator ended")
    }

    pub(crate) async fn counts(&mut self) -> Result<Counts> {
        self.input.write_all(b"report\n").await?;
        let line = self.output.next_line().await?.context("the operator ended")?;
        Ok(serde_json::from_str(&line)?)
    }

    /// When it was started, unless that was asked before: the first scenario of a process begins with the process.
    pub(crate) fn fresh_since(&mut self) -> Option<Instant> {
        (!std::mem::replace(&mut self.measured, true)).then_some(self.started)
    }

    /// Kills it and waits until it is gone.
    pub(crate) async fn stop(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    pub(crate) async fn resync(&mut self) -> Result<()> {
        Ok(self.input.write_all(b"resync\n").await?)
    }
}
