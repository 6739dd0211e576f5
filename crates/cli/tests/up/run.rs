//! A run of the `mainstay` binary.

use mainstay_testkit::process::dies_with_us;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Generous, because it is only ever used up by a test that fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long it has to end its pods and itself when a test is over.
const GRACE: Duration = Duration::from_secs(20);

/// A running command. When this is dropped it is asked to end, with all that it runs, and killed if it does not.
pub(crate) struct Run {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    /// What was read of its stderr.
    said: String,
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
    let mut command = dies_with_us(env!("CARGO_BIN_EXE_mainstay"));
    command.args(arguments).env_clear();
    command
}

impl Run {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = lines_of(child.stdout.take().unwrap());
        let stderr = lines_of(child.stderr.take().unwrap());
        Run { child, stdout, stderr, said: String::new() }
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

    /// Waits until it has said a line with this text, and gives all that it has said until then.
    pub(crate) fn hear(&mut self, text: &str) -> &str {
        let deadline = Instant::now() + PATIENCE;
        while !self.said.lines().any(|line| line.contains(text)) {
            match self.stderr.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.said += &(line + "\n"),
                Err(error) => panic!("{error}: it did not say {text:?}, but:\n{}", self.said),
            }
        }
        &self.said
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
        // Its end closes both.
        let stdout = rest_of(&self.stdout);
        let mut stderr = std::mem::take(&mut self.said);
        stderr.extend(rest_of(&self.stderr).into_iter().map(|line| line + "\n"));
        Ended { code: self.child.wait().unwrap().code(), stdout, stderr }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let deadline = Instant::now() + GRACE;
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = Command::new("kill").args(["-s", "TERM", &self.child.id().to_string()]).status();
        }
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines as they come. They are taken whether or not anybody reads them, so that nobody waits to print.
fn lines_of(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (lines, read) = channel();
    let from = BufReader::new(from);
    std::thread::spawn(move || from.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    read
}

fn rest_of(lines: &Receiver<String>) -> Vec<String> {
    let mut rest = Vec::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => rest.push(line),
            Err(RecvTimeoutError::Disconnected) => return rest,
            Err(RecvTimeoutError::Timeout) => panic!("it does not end; it said {rest:?}"),
        }
    }
}
