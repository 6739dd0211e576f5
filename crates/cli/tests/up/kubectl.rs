//! Stock kubectl, and a cluster to use it on.

use crate::up::run::{Run, mainstay};
use crate::up::text;
use mainstay_testkit::binaries::find_program;
use mainstay_testkit::cluster::report_missing;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A command that takes longer hangs. The waits of kubectl itself end before, and say what they waited for.
const PATIENCE: Duration = Duration::from_secs(100);
const WAIT: &str = "--timeout=80s";

/// Images `shell:*` are the shell of this machine.
const RULES: &str = "images:\n- {image: 'shell:*', command: [/bin/sh]}\n";

/// A cluster of its own, in a directory of its own. Whatever becomes of the test, no process of a pod is left.
pub(crate) struct World {
    run: Option<Run>,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    in_memory: bool,
    directory: TempDir,
}

impl World {
    /// None if there is no kubectl, which is told.
    pub(crate) fn start(what: &str) -> Option<Self> {
        Self::start_with(what, false)
    }

    /// One that keeps nothing. What it needs while it runs is in the directory all the same.
    pub(crate) fn start_in_memory(what: &str) -> Option<Self> {
        Self::start_with(what, true)
    }

    fn start_with(what: &str, in_memory: bool) -> Option<Self> {
        let kubectl = find_program("kubectl").map_err(|missing| report_missing(what, &missing)).ok()?;
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("rules.yaml"), RULES).unwrap();
        let mut world = World { run: None, kubectl, kubeconfig: PathBuf::new(), in_memory, directory };
        world.restart();
        Some(world)
    }

    /// Starts `up` on the directory, again if it was ended.
    pub(crate) fn restart(&mut self) {
        let rules = self.path().join("rules.yaml");
        let state = self.path().join("state");
        let kept = if self.in_memory { vec!["--memory"] } else { vec!["--data", text(&state)] };
        let mut command =
            mainstay(&[&["up", "--listen", "127.0.0.1:0", "--rules", text(&rules)], &kept[..]].concat());
        command.env("TMPDIR", self.path());
        // What pods run is found as it is by the user who runs them.
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let (run, kubeconfig) = Run::up_with(command);
        (self.run, self.kubeconfig) = (Some(run), kubeconfig);
    }

    /// The run of `up`, to be ended; [`restart`](Self::restart) starts another.
    pub(crate) fn take_run(&mut self) -> Run {
        self.run.take().unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.args(arguments).env_clear().env("KUBECONFIG", &self.kubeconfig).env("HOME", self.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs kubectl, which has to succeed, and gives what it prints.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let child = self.command(arguments).spawn().unwrap();
        finish(child, arguments).await
    }

    pub(crate) async fn apply(&self, manifest: &str) {
        let arguments = ["apply", "-f", "-"];
        let mut child = self.command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(manifest.as_bytes()).await.unwrap();
        finish(child, &arguments).await;
    }

    /// Waits until a field of an object has a value, both as in `kubectl wait --for=jsonpath=…`.
    pub(crate) async fn wait(&self, object: &str, field: &str, value: &str) {
        let wanted = format!("--for=jsonpath={{{field}}}={value}");
        self.kubectl(&["wait", object, &wanted, WAIT]).await;
    }

    pub(crate) async fn rollout(&self, object: &str) -> String {
        self.kubectl(&["rollout", "status", object, WAIT]).await
    }

    /// A field of an object, as `-o jsonpath` prints it.
    pub(crate) async fn field(&self, object: &str, field: &str) -> String {
        self.kubectl(&["get", object, "-o", &format!("jsonpath={{{field}}}")]).await
    }

    /// Follows a log.
    pub(crate) fn follow(&self, object: &str) -> Following {
        let mut child = self.command(&["logs", "-f", object]).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Following { _child: child, lines }
    }
}

/// `kubectl logs -f`.
pub(crate) struct Following {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    /// The next line; none when the log is at its end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        line.expect("neither a line nor the end").unwrap()
    }
}

async fn finish(child: Child, arguments: &[impl AsRef<OsStr> + std::fmt::Debug]) -> String {
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.unwrap_or_else(|_| panic!("{arguments:?} hangs")).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a process runs that is a pod's of the cluster in this directory. A number alone is soon another's.
pub(crate) fn is_running(pid: &str, directory: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&environment).contains(text(directory))
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.run.take());
        // What one that was killed has left, if no other came after it.
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for name in processes.filter_map(|entry| entry.file_name().into_string().ok()) {
            if name.parse::<u32>().is_ok() && is_running(&name, self.path()) {
                let _ = std::process::Command::new("kill").args(["-s", "KILL", &name]).status();
            }
        }
    }
}
