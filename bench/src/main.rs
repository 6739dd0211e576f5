//! The embedded API server beside a real kube-apiserver with etcd, and an operator of ours beside the same one written
//! with kube's `Controller` ([`operators`]), each measured in one run; how many simulated [`worlds`]
//! there are to a second; how long `mainstay up` takes to [`start`]; two thousand [`streams`] that begin at once; how work grows with
//! the number of [`pods`]; a thousand peers of one of the [`networks`]; and how other work [grows](growth) with its size.
//!
//! Both are asked by the same client ([`caller`]) to do the same things ([`measure`]); both are processes
//! of their own ([`child`]), on the same machine, one after the other. What only ours can do (answering a
//! function call, a further server in the same process) stands beside. [`report`] makes one table of it.
//!
//! `README.md` tells how to read the numbers. There is no pass or fail: a busy machine is no defect.

mod caller;
mod child;
mod growth;
mod measure;
mod micro;
mod networks;
mod objects;
mod operators;
mod pods;
mod process;
mod report;
mod start;
mod streams;
mod table;
mod worlds;

use anyhow::{Context as _, Result};
use caller::{Address, Target};
use child::{Creates, Idle, Memory, Ready, Server, Task};
use clap::Parser;
use mainstay_testkit::binaries::Binaries;
use mainstay_testkit::real::{RealControlPlane, RealOptions};
use measure::{FanOut, Lists};
use operators::Sizes;
use report::{Aim, Better, Row};
use std::time::Instant;

/// Compares the embedded API server with the real one, and our operators with kube's.
#[derive(Parser)]
struct Arguments {
    /// Leaves the real control plane out.
    #[arg(long)]
    without_real: bool,
    #[command(subcommand)]
    task: Option<Task>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut runtime = match arguments.task {
        Some(Task::Micro { .. } | Task::Memory | Task::Table { .. } | Task::Idle | Task::Ready) => {
            tokio::runtime::Builder::new_current_thread()
        }
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    match arguments.task {
        Some(task) => runtime.block_on(child::run(task)),
        None => runtime.block_on(async {
            compare(arguments.without_real).await?;
            println!();
            operators::compare(Sizes::usual(arguments.without_real)).await?;
            println!();
            worlds::measure();
            println!();
            start::measure().await?;
            println!();
            streams::measure().await?;
            println!();
            pods::measure().await?;
            println!();
            // In a process of its own: its peak memory is in the table.
            child::have(&["networks"]).await?;
            println!();
            child::have(&["growth"]).await
        }),
    }
}

/// What is measured of a served API.
struct Measured {
    ready_ms: f64,
    one: f64,
    sixteen: f64,
    lists: Option<Lists>,
    fan_out: Option<FanOut>,
    resident_mib: f64,
}

async fn compare(without_real: bool) -> Result<()> {
    let started = Instant::now();
    let real = if without_real { None } else { Some(measure_real().await?) };
    say("ours: in memory, over HTTPS");
    let memory = measure_ours(false).await?;
    say("ours: durable, over HTTPS");
    let durable = measure_ours(true).await?;
    say("ours: in process");
    let ready: Ready = child::ask(&["ready"]).await?;
    let creates: Creates = child::ask(&["creates"]).await?;
    let directory = tempfile::tempdir()?;
    let durable_creates: Creates = child::ask(&["creates", &directory.path().display().to_string()]).await?;
    say("ours: memory per object, further servers");
    let held: Memory = child::ask(&["memory"]).await?;
    let idle: Idle = child::ask(&["idle"]).await?;
    let rows = rows(real.as_ref(), &memory, &durable, &ready, &creates, &durable_creates, &held, &idle);
    print!("{}", report::render(&rows));
    let cores = std::thread::available_parallelism()?;
    println!("\n{cores} cores, {:.0} s in all", started.elapsed().as_secs_f64());
    Ok(())
}

async fn measure_real() -> Result<Measured> {
    say("real: starting etcd, kube-apiserver, kube-controller-manager");
    let binaries = Binaries::find().context("without them only `--without-real` works")?;
    let started = Instant::now();
    let options = RealOptions { fsync: true, ..RealOptions::default() };
    let real = RealControlPlane::start(&binaries, &options).await?;
    let ready_ms = started.elapsed().as_secs_f64() * 1e3;
    let kubeconfig = real.kubeconfig();
    let address = Address::from_kubeconfig(&kubeconfig).await?;
    say("real: over HTTPS, durable");
    let pids = process::started_in(kubeconfig.parent().context("a directory")?);
    let pids = pids.into_iter().filter(|(program, _)| program == "etcd" || program == "kube-apiserver");
    measure_served(address, ready_ms, pids.map(|(_, pid)| pid).collect(), true).await
}

async fn measure_ours(durable: bool) -> Result<Measured> {
    let directory = tempfile::tempdir()?;
    let server = Server::start(durable.then(|| directory.path().join("state")), false).await?;
    let (address, ready_ms) = server.ready().await?;
    measure_served(address, ready_ms, vec![server.pid()?], !durable).await
}

async fn measure_served(address: Address, ready_ms: f64, pids: Vec<u32>, reads: bool) -> Result<Measured> {
    let target = Target::Served(address.clone());
    measure::make_namespace(&target).await?;
    let one = measure::create_rate(&target, 1).await?;
    let sixteen = measure::create_rate(&target, 16).await?;
    let (mut lists, mut fan_out) = (None, None);
    let mut resident_mib = 0.0;
    if reads {
        measure::clear(&target).await?;
        measure::fill(&target, measure::LISTED).await?;
        lists = Some(measure::lists(&target).await?);
        for pid in pids {
            resident_mib += measure::as_f64(process::resident(pid)?) / MIB;
        }
        fan_out = Some(measure::fan_out(&address).await?);
    }
    Ok(Measured { ready_ms, one, sixteen, lists, fan_out, resident_mib })
}

const MIB: f64 = 1024.0 * 1024.0;

#[expect(clippy::too_many_arguments, reason = "one row after the other, in the order of the table")]
fn rows(
    real: Option<&Measured>,
    memory: &Measured,
    durable: &Measured,
    ready: &Ready,
    creates: &Creates,
    durable_creates: &Creates,
    held: &Memory,
    idle: &Idle,
) -> Vec<Row> {
    let of = |read: fn(&Measured) -> f64| real.map(read);
    let lists = |read: fn(&Lists) -> f64| move |m: &Measured| m.lists.as_ref().map_or(0.0, read);
    let fan_out = |read: fn(&FanOut) -> f64| move |m: &Measured| m.fan_out.as_ref().map_or(0.0, read);
    let mut rows = Vec::new();
    let mut row = |what: &str, unit, real, ours, better, aim| {
        rows.push(Row { what: what.to_owned(), unit, real, ours, better, aim });
    };
    row("ready, in process", "ms", of(|m| m.ready_ms), ready.ms, Better::Less, Aim::Below(10.0));
    row("ready, a process with HTTPS", "ms", of(|m| m.ready_ms), memory.ready_ms, Better::Less, Aim::None);
    let rates = [
        ("in memory, HTTPS", memory.one, memory.sixteen, 10.0),
        ("in memory, in process", creates.one, creates.sixteen, 10.0),
        ("durable, HTTPS", durable.one, durable.sixteen, 1.0),
        ("durable, in process", durable_creates.one, durable_creates.sixteen, 1.0),
    ];
    for (how, one, sixteen, aim) in rates {
        let what = |clients: &str| format!("creates, {clients}, {how}");
        row(&what("1 client"), "1/s", of(|m| m.one), one, Better::More, Aim::Times(aim));
        row(&what("16 clients"), "1/s", of(|m| m.sixteen), sixteen, Better::More, Aim::Times(aim));
    }
    let full = lists(|l| l.full_ms);
    row("list of 10,000, whole", "ms", real.map(full), full(memory), Better::Less, Aim::None);
    let paged = lists(|l| l.paged_ms);
    row("list of 10,000, by 500", "ms", real.map(paged), paged(memory), Better::Less, Aim::None);
    let deliveries = fan_out(|f| f.deliveries_per_second);
    row("100 watchers, deliveries", "1/s", real.map(deliveries), deliveries(memory), Better::More, Aim::None);
    let middle = fan_out(|f| f.p50_ms);
    row("100 watchers, delay p50", "ms", real.map(middle), middle(memory), Better::Less, Aim::None);
    let late = fan_out(|f| f.p99_ms);
    row("100 watchers, delay p99", "ms", real.map(late), late(memory), Better::Less, Aim::None);
    let resident = of(|m| m.resident_mib);
    row("memory with 10,000 objects", "MiB", resident, memory.resident_mib, Better::Less, Aim::None);
    let ratio = measure::as_f64(held.heap_bytes) / measure::as_f64(held.json_bytes);
    row("memory per byte of JSON", "B", None, ratio, Better::Less, Aim::Below(2.5));
    row("a further idle server, time", "ms", None, idle.ms_each, Better::Less, Aim::Below(2.0));
    row("a further idle server, memory", "MiB", None, idle.bytes_each / MIB, Better::Less, Aim::Below(2.0));
    rows
}

fn say(what: &str) {
    eprintln!("{what}");
}
