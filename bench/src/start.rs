//! How long the built `mainstay up` takes from its start to being ready: API, controllers, scheduler, node and systems.
//!
//! Ready is when it prints the path of its kubeconfig: everything is served, and the controllers have seen what there is.

use crate::report::{Aim, Better, Row, render};
use anyhow::{Context as _, Result, ensure};
use mainstay_testkit::process::dies_with_us;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

const RUNS: usize = 9;
const AIM_MS: f64 = 300.0;

/// Measures and prints it.
pub(crate) async fn measure() -> Result<()> {
    let binary = binary()?;
    let mut fresh = Vec::new();
    let mut again = Vec::new();
    for _ in 0..RUNS {
        let directory = tempfile::tempdir()?;
        fresh.push(start(&binary, directory.path()).await?);
        again.push(start(&binary, directory.path()).await?);
    }
    let row = |what: &str, times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        let ours = times[times.len() / 2];
        Row { what: what.into(), unit: "ms", real: None, ours, better: Better::Less, aim: Aim::Below(AIM_MS) }
    };
    let rows = [
        row("mainstay up: start to ready, new directory", &mut fresh),
        row("mainstay up: start to ready, killed before", &mut again),
    ];
    print!("{}", render(&rows));
    println!("\nthe median of {RUNS}; at worst {:.0} and {:.0} ms", fresh[RUNS - 1], again[RUNS - 1]);
    Ok(())
}

/// The command that was built beside this one.
fn binary() -> Result<PathBuf> {
    let binary = std::env::current_exe()?.with_file_name("mainstay");
    ensure!(binary.is_file(), "{} is not there: cargo build --release -p mainstay-cli", binary.display());
    Ok(binary)
}

/// Starts it, waits until it is ready, and kills it.
async fn start(binary: &Path, directory: &Path) -> Result<f64> {
    let begun = Instant::now();
    let mut child = Command::from(dies_with_us(binary))
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(directory.join("state"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().context("its output")?;
    let line = BufReader::new(stdout).lines().next_line().await?;
    let took = begun.elapsed().as_secs_f64() * 1e3;
    line.context("mainstay up ended before it was ready")?;
    child.kill().await?;
    Ok(took)
}
