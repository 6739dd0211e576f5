//! What the system knows of a process: how much memory it holds.

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
