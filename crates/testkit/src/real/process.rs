//! A child process that cannot outlive us.
//!
//! Between us and the program stands a shell that holds the reading end of a pipe whose writing end only
//! we have. The pipe ends when we close it and also when we die, however that happens; the shell then
//! kills the program. So neither a panic, nor `kill -9`, nor a static that is never dropped leaves one behind.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// `$1` is a directory to remove once the program is gone (empty: none); the rest is the command. Killed, not asked:
/// nothing in a control plane made for tests is worth a graceful end. The program doesn't get the pipe, and a
/// background command of a non-interactive shell ignores an interrupt from the terminal, which is ours to handle.
const SUPERVISE: &str = r#"
directory=$1; shift
exec 3<&0
"$@" 3<&- </dev/null & program=$!
{ read -r _ <&3; kill -KILL "$program"; } 2>/dev/null & watcher=$!
exec 3<&-
wait "$program"; code=$?
kill "$watcher" 2>/dev/null
if [ -n "$directory" ]; then rm -rf -- "$directory"; fi
exit "$code"
"#;

/// A supervised program. Dropping it kills the program and waits until it is gone.
#[derive(Debug)]
pub(super) struct Process {
    supervisor: Child,
    /// Held only for its end: closing it is the order to kill.
    pipe: Option<ChildStdin>,
    log: PathBuf,
}

impl Process {
    /// Starts `program` with its output in the file `log`. With `remove`, the supervisor removes that
    /// directory at the end, which also happens when nothing of us is left to do it.
    pub(super) fn spawn<A: AsRef<OsStr>>(
        program: &Path,
        arguments: &[A],
        log: PathBuf,
        remove: Option<&Path>,
    ) -> io::Result<Self> {
        let output = File::create(&log)?;
        let mut supervisor = Command::new("sh")
            .args(["-c", SUPERVISE, "supervise"])
            .arg(remove.unwrap_or(Path::new("")))
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        let pipe = supervisor.stdin.take();
        Ok(Self { supervisor, pipe, log })
    }

    /// Whether the program has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.supervisor.try_wait(), Ok(None))
    }

    /// The last lines that it wrote.
    pub(super) fn last_words(&self) -> String {
        const LINES: usize = 15;
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // Nothing sensible can be done about a supervisor that cannot be waited for.
        let _ = self.supervisor.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_process_kills_the_program_and_removes_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let (log, work) = (directory.path().join("log"), directory.path().join("work"));
        fs::create_dir(&work).unwrap();
        let script = ["-c", "echo pid $$; exec sleep 600"];
        let process = Process::spawn(Path::new("sh"), &script, log, Some(&work)).unwrap();
        let pid = loop {
            if let Some((_, pid)) = process.last_words().split_once("pid ") {
                break pid.to_string();
            }
            std::thread::yield_now();
        };
        assert!(Path::new("/proc").join(&pid).exists());
        drop(process);
        assert!(!Path::new("/proc").join(&pid).exists());
        assert!(!work.exists());
    }
}
