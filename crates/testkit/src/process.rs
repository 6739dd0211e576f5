//! Child processes that cannot outlive us, however we end: a panic, an interrupt, `kill -9`.
//!
//! - [`Process`] is for servers, which any thread may start: a shell between us and the program watches a pipe.
//! - [`dies_with_us`] is for programs that a test talks to and sends signals: the kernel kills them with our thread.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

/// The shell holds the reading end of a pipe whose writing end only we have. The pipe ends when we close it and also when
/// we die; the shell then kills the program. It is in a process group of its own, so that a signal to ours does not end it.
///
/// `$1` is a directory to remove once the program is gone (empty: none). With `$2` = `sweep`, so is every process whose
/// environment names that directory, and every mount below it. The rest is the command.
const SUPERVISE: &str = r#"
directory=$1; sweep=$2; shift 2
exec 3<&0
"$@" 3<&- </dev/null & program=$!
{ read -r _ <&3; kill -KILL "$program"; } 2>/dev/null & watcher=$!
exec 3<&-
wait "$program"; code=$?
kill "$watcher" 2>/dev/null
if [ -n "$sweep" ]; then
  for process in /proc/[0-9]*; do
    if grep -qsF -- "$directory" "$process/environ"; then kill -KILL "${process#/proc/}" 2>/dev/null; fi
  done
  while read -r _ mounted _; do
    case $mounted in "$directory"/*) umount -l "$mounted" ;; esac
  done </proc/mounts
fi
if [ -n "$directory" ]; then rm -rf -- "$directory"; fi
exit "$code"
"#;

/// As much of a log as is shown when something goes wrong.
const LAST_WORDS_BYTES: u64 = 16 * 1024;
const LAST_WORDS_LINES: usize = 15;

/// A supervised program. Dropping it kills the program and waits until it is gone.
#[derive(Debug)]
pub struct Process {
    supervisor: Child,
    /// Held only for its end: closing it is the order to kill.
    pipe: Option<ChildStdin>,
    log: PathBuf,
}

impl Process {
    /// Starts `program` with its output in the file `log`. With `remove`, the supervisor removes that
    /// directory at the end, which also happens when nothing of us is left to do it.
    pub fn spawn<A: AsRef<OsStr>>(
        program: &Path,
        arguments: &[A],
        log: PathBuf,
        remove: Option<&Path>,
    ) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISE, "supervise"]);
        command.arg(remove.unwrap_or(Path::new(""))).arg("").arg(program).args(arguments);
        // Servers of a test live for a minute: memory is cheaper than collecting it. Only programs written in Go know this.
        command.env("GOGC", "400");
        Self::start(command, log)
    }

    /// Starts a program whose temporary files are all in `directory`. At the end the supervisor also kills what the
    /// program has left running: every process whose environment names that directory.
    pub fn spawn_in(directory: &Path, command: &Command, log: PathBuf) -> io::Result<Self> {
        let mut supervised = Command::new("sh");
        supervised.args(["-c", SUPERVISE, "supervise"]).arg(directory).arg("sweep");
        // Not in the environment of the shell, which must not find itself.
        let mut temporary = std::ffi::OsString::from("TMPDIR=");
        temporary.push(directory);
        supervised.arg("env").arg(temporary).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => supervised.env(name, value),
                None => supervised.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            supervised.current_dir(folder);
        }
        Self::start(supervised, log)
    }

    fn start(mut command: Command, log: PathBuf) -> io::Result<Self> {
        let output = File::create(&log)?;
        let mut supervisor = command
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        let pipe = supervisor.stdin.take();
        Ok(Self { supervisor, pipe, log })
    }

    /// Whether the program has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.supervisor.try_wait(), Ok(None))
    }

    /// Waits until the program has ended. What it left behind is gone by then.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.supervisor.wait()
    }

    /// Where its output is.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines that it wrote.
    pub fn last_words(&self) -> String {
        let text = tail(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_WORDS_LINES)..].join("\n")
    }
}

/// The end of a file that may be large.
fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // Nothing sensible can be done about a supervisor that cannot be waited for.
        let _ = self.supervisor.wait();
    }
}

/// A command that is killed when the thread that starts it ends, and so when this process does. The thread must last until the
/// program has begun. Elsewhere than on Linux, or without `setpriv` of util-linux, it is a plain command.
pub fn dies_with_us(program: impl AsRef<OsStr>) -> Command {
    const SETPRIV: &str = "/usr/bin/setpriv";
    if !fs::exists(SETPRIV).unwrap_or(false) {
        return Command::new(program);
    }
    let mut command = Command::new(SETPRIV);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

#[cfg(test)]
mod tests;
