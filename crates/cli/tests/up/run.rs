//! A run of the `mainstay` binary.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Generous, because it is only ever used up by a test that fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running command. It is killed when this is dropped.
pub(crate) struct Run {
    child: Child,
    stdout: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// The lines that had not been read before.
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: String,
}

/// The binary, with nothing of the caller's in its environment.
pub(crate) fn mainstay(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command.args(arguments).env_clear();
    command
}

impl Run {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (lines, stdout) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        let mut errors = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        });
        Run { child, stdout, stderr: Some(stderr) }
    }

    /// Starts `mainstay up` and waits until it serves; gives the kubeconfig's path too.
    pub(crate) fn up(arguments: &[&str]) -> (Self, PathBuf) {
        Self::up_with(mainstay(&[&["up", "--listen", "127.0.0.1:0"], arguments].concat()))
    }

    pub(crate) fn up_with(command: Command) -> (Self, PathBuf) {
        let mut run = Self::start(command);
        match run.stdout.recv_timeout(PATIENCE) {
            Ok(line) => (run, line.into()),
            Err(RecvTimeoutError::Disconnected) => panic!("it did not serve: {:?}", run.end()),
            Err(RecvTimeoutError::Timeout) => panic!("it does not serve, nor end"),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, `TERM` or `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.end();
    }

    /// Waits until it has ended.
    pub(crate) fn end(&mut self) -> Ended {
        let mut stdout = Vec::new();
        // Its end closes its stdout.
        loop {
            match self.stdout.recv_timeout(PATIENCE) {
                Ok(line) => stdout.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end"),
            }
        }
        let code = self.child.wait().unwrap().code();
        Ended { code, stdout, stderr: self.stderr.take().unwrap().join().unwrap() }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
