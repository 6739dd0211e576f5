//! What the system knows of a process: how much memory it holds, and how long it has run.

use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

/// A line of `/proc/PID/status` in bytes.
fn status(pid: &str, field: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)).context("no such line")?;
    let kibibytes: u64 = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes * 1024)
}

/// All resident memory of a process.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    status(&pid.to_string(), "VmRSS")
}

/// The most that a process ever had resident.
pub(crate) fn resident_peak(pid: u32) -> Result<u64> {
    status(&pid.to_string(), "VmHWM")
}

/// Lets this process's peak of resident memory be what it has now.
pub(crate) fn forget_peak() -> Result<()> {
    fs::write("/proc/self/clear_refs", "5").context("the peak cannot be reset")
}

/// The time that a process has spent on processors, in user mode and in the kernel.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64> {
    /// Linux tells all programs that it has so many, whatever it has.
    const TICKS_PER_SECOND: f64 = 100.0;
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses, which may contain anything.
    let (_, fields) = text.rsplit_once(')').context("no name")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
    Ok(ticks.map(|ticks| ticks.map(f64::from)).sum::<Result<f64, _>>()? / TICKS_PER_SECOND)
}

/// This process's resident memory that is not a file's: heap and stacks.
pub(crate) fn own_heap() -> Result<u64> {
    status("self", "RssAnon")
}

/// The processes whose command line names a directory, with the names of their programs. Their
/// supervising shells name it too and are left out.
pub(crate) fn started_in(directory: &Path) -> Vec<(String, u32)> {
    let wanted = directory.display().to_string();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(line) = fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line);
        let program = line.split('\0').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        if line.contains(&wanted) && program != "sh" {
            found.push((program.to_owned(), pid));
        }
    }
    found.sort();
    found
}
