//! Measurements in processes of their own, so that each starts cold and its memory is its own.
//!
//! The parent starts this same program with a hidden command; the child prints one line of JSON.

use crate::caller::{Address, Target};
use crate::measure::{self, as_f64};
use crate::micro::{self, Rate};
use crate::operators::{self, Sizes, Store, Which, contender, stores};
use crate::process::own_heap;
use crate::worlds;
use anyhow::{Context as _, Result, ensure};
use clap::Subcommand;
use mainstay_apiserver::ApiServer;
use mainstay_testkit::process::dies_with_us;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// How many servers share a process when the cost of one more is measured.
pub(crate) const IDLE_SERVERS: u64 = 200;
/// How many objects are in memory when their cost is measured.
pub(crate) const HELD: u64 = 20_000;

/// What a child does.
#[derive(Subcommand)]
pub(crate) enum Task {
    /// Serves over HTTPS until its standard input ends.
    #[command(hide = true)]
    Serve {
        /// Where the kubeconfig is written.
        kubeconfig: PathBuf,
        /// Where the state is kept; without it, in memory.
        directory: Option<PathBuf>,
        /// Over plain HTTP instead.
        #[arg(long)]
        http: bool,
    },
    /// Compares an operator with the same one written with kube, and prints only that table.
    Operators(Sizes),
    /// Runs simulated worlds on one thread, and prints only that table.
    Worlds,
    /// Starts `mainstay up` a few times, and prints only that table.
    Start,
    /// Has two thousand streams begin at once, and prints only that table.
    Streams,
    /// How the time until pods run grows with their number.
    Pods,
    /// Has a network of a thousand peers assembled and mended, and prints only that table.
    Networks,
    /// Does the same at 1×, 4× and 16×, and prints only that table.
    Growth,
    /// Runs one of these operators.
    #[command(hide = true)]
    Contender { which: Which, kubeconfig: PathBuf, shops: usize },
    /// Fills a cache with pods.
    #[command(hide = true)]
    Hold { store: Store, kubeconfig: PathBuf },
    /// Starts one server, cold.
    #[command(hide = true)]
    Ready,
    /// Creates by function calls.
    #[command(hide = true)]
    Creates {
        /// Where the state is kept; without it, in memory.
        directory: Option<PathBuf>,
    },
    /// Fills one server's memory.
    #[command(hide = true)]
    Memory,
    /// Reads a table of this number of pods.
    #[command(hide = true)]
    Table { rows: usize },
    /// Starts many servers.
    #[command(hide = true)]
    Idle,
    /// Times each kind of write, in process on one thread.
    Micro {
        /// Only those whose `kind/operation` contains this.
        #[arg(default_value = "")]
        filter: String,
        /// Each exactly so often, for profiles that count instructions.
        #[arg(long)]
        times: Option<u64>,
    },
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Served {
    pub url: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Ready {
    pub ms: f64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Creates {
    pub one: f64,
    pub sixteen: f64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Memory {
    /// By how much the process grew.
    pub heap_bytes: u64,
    /// What the objects measure as JSON.
    pub json_bytes: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Idle {
    pub ms_each: f64,
    pub bytes_each: f64,
}

/// Does what the parent asks, and prints the result.
pub(crate) async fn run(task: Task) -> Result<()> {
    match task {
        Task::Serve { kubeconfig, directory, http } => serve(kubeconfig, directory, http).await,
        Task::Operators(sizes) => operators::compare(sizes).await,
        Task::Worlds => {
            worlds::measure();
            Ok(())
        }
        Task::Start => crate::start::measure().await,
        Task::Streams => crate::streams::measure().await,
        Task::Pods => crate::pods::measure().await,
        Task::Networks => crate::networks::measure().await,
        Task::Growth => crate::growth::measure().await,
        Task::Contender { which, kubeconfig, shops } => contender::run(which, &kubeconfig, shops).await,
        Task::Hold { store, kubeconfig } => print(&stores::hold(store, &kubeconfig).await?),
        Task::Ready => print(&ready().await?),
        Task::Creates { directory } => {
            let target = Target::InProcess(build(directory)?);
            measure::make_namespace(&target).await?;
            let one = measure::create_rate(&target, 1).await?;
            let sixteen = measure::create_rate(&target, 16).await?;
            print(&Creates { one, sixteen })
        }
        Task::Memory => print(&memory().await?),
        Task::Table { rows } => print(&crate::table::measure(rows).await?),
        Task::Idle => print(&idle().await?),
        Task::Micro { filter, times } => {
            for Rate { subject, operation, per_second } in micro::run(&filter, times).await? {
                println!("{subject:16} {operation:16} {per_second:8.0} per second");
            }
            Ok(())
        }
    }
}

fn build(directory: Option<PathBuf>) -> Result<ApiServer> {
    let builder = ApiServer::builder();
    Ok(match directory {
        Some(directory) => builder.directory(directory).build()?,
        None => builder.build()?,
    })
}

fn print(result: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(result)?);
    Ok(())
}

async fn serve(kubeconfig: PathBuf, directory: Option<PathBuf>, http: bool) -> Result<()> {
    let (server, address) = (build(directory)?, "127.0.0.1:0".parse()?);
    let served = if http { server.serve_http(address).await? } else { server.serve_https(address).await? };
    std::fs::write(kubeconfig, served.kubeconfig())?;
    print(&Served { url: served.url() })?;
    // The parent holds the other end for as long as it wants the server.
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
    Ok(())
}

async fn ready() -> Result<Ready> {
    let started = Instant::now();
    let mut caller = Target::InProcess(build(None)?).caller().await?;
    caller.get("/readyz").await?;
    caller.get("/api/v1/namespaces/default").await?;
    Ok(Ready { ms: started.elapsed().as_secs_f64() * 1e3 })
}

async fn memory() -> Result<Memory> {
    let target = Target::InProcess(build(None)?);
    measure::make_namespace(&target).await?;
    // What is read once per process is not the objects'.
    measure::fill(&target, 100).await?;
    let before = own_heap()?;
    measure::fill(&target, 100 + HELD).await?;
    // The controllers keep something of each object, too, once they have seen it.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let heap_bytes = own_heap()?.saturating_sub(before);
    let page = target.caller().await?.get("/api/v1/namespaces/bench/configmaps?limit=1000").await?;
    let json_bytes = u64::try_from(page.len())? * HELD / 1000;
    Ok(Memory { heap_bytes, json_bytes })
}

async fn idle() -> Result<Idle> {
    let mut servers = Vec::new();
    let one = async || {
        let target = Target::InProcess(build(None)?);
        target.caller().await?.get("/api/v1/namespaces/default").await?;
        anyhow::Ok(target)
    };
    // The first one pays for the tables.
    servers.push(one().await?);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let (before, started) = (own_heap()?, Instant::now());
    for _ in 0..IDLE_SERVERS {
        servers.push(one().await?);
    }
    let elapsed = started.elapsed();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let grown = own_heap()?.saturating_sub(before);
    Ok(Idle {
        ms_each: elapsed.as_secs_f64() * 1e3 / as_f64(IDLE_SERVERS),
        bytes_each: as_f64(grown) / as_f64(IDLE_SERVERS),
    })
}

pub(crate) fn command(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::from(dies_with_us(std::env::current_exe()?));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

/// Runs a child to its end and reads its result.
pub(crate) async fn ask<R: DeserializeOwned>(arguments: &[&str]) -> Result<R> {
    let output = command(arguments)?.stderr(Stdio::inherit()).output().await?;
    serde_json::from_slice(&output.stdout).with_context(|| format!("{arguments:?} failed: {}", output.status))
}

/// Runs a child to its end and lets it print.
pub(crate) async fn have(arguments: &[&str]) -> Result<()> {
    let status = command(arguments)?.stdout(Stdio::inherit()).status().await?;
    ensure!(status.success(), "{arguments:?} failed: {status}");
    Ok(())
}

/// A child that serves, until this is dropped.
pub(crate) struct Server {
    child: Child,
    files: TempDir,
    started: Instant,
}

impl Server {
    pub(crate) async fn start(directory: Option<PathBuf>, http: bool) -> Result<Server> {
        let files = tempfile::tempdir()?;
        let mut arguments = vec!["serve".to_owned(), files.path().join(KUBECONFIG).display().to_string()];
        arguments.extend(directory.map(|path| path.display().to_string()));
        arguments.extend(http.then(|| "--http".to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let started = Instant::now();
        let mut child = command(&arguments)?.spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("no output")?;
        BufReader::new(stdout).read_line(&mut line).await?;
        let _: Served = serde_json::from_str(&line).context("the server did not start")?;
        Ok(Server { child, files, started })
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.files.path().join(KUBECONFIG)
    }

    /// Where it is, and how many milliseconds passed from starting the process to its first answer over HTTPS.
    pub(crate) async fn ready(&self) -> Result<(Address, f64)> {
        let address = Address::from_kubeconfig(&self.kubeconfig()).await?;
        address.connect().await?.get("/readyz").await?;
        Ok((address, self.started.elapsed().as_secs_f64() * 1e3))
    }

    pub(crate) fn pid(&self) -> Result<u32> {
        self.child.id().context("the server ended")
    }
}

const KUBECONFIG: &str = "kubeconfig";
