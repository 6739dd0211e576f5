//! A server in a process of its own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mainstay_apiserver::ApiServer;

use crate::durability::client::Client;

const DIRECTORY: &str = "MAINSTAY_TEST_DIRECTORY";

/// A running server. It is killed when this is dropped.
pub(crate) struct Child {
    process: std::process::Child,
    client: Client,
}

impl Child {
    /// Starts a server on a directory, or says why it refused.
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
        Child::spawn(Command::new(this_binary()), directory)
    }

    /// The same with this much memory and no more.
    pub(crate) fn start_within(directory: &Path, megabytes: u32) -> Result<Self, String> {
        let mut shell = Command::new("sh");
        let limited = format!("ulimit -v {} && exec \"$0\" \"$@\"", megabytes * 1024);
        shell.args(["-c", &limited]).arg(this_binary());
        // Each of glibc's arenas takes 64 MB of addresses at once, whether or not it needs them.
        shell.env("MALLOC_ARENA_MAX", "2");
        Child::spawn(shell, directory)
    }

    fn spawn(mut command: Command, directory: &Path) -> Result<Self, String> {
        let mut process = command
            .args([
                "--ignored",
                "--exact",
                "durability::child::serves_the_directory_until_killed",
                "--nocapture",
            ])
            .env(DIRECTORY, directory)
            // Held until it is killed, or we are.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this binary starts");
        let output = process.stdout.take().expect("piped");
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(served) = line.strip_prefix("SERVED ") {
                let (address, token) = served.split_once(' ').expect("an address and a token");
                let client = Client::new(address.parse().expect("an address"), token);
                return Ok(Child { process, client });
            }
            if let Some(refused) = line.strip_prefix("REFUSED ") {
                let refused = refused.to_owned();
                let _ = process.wait();
                return Err(refused);
            }
        }
        let output = process.wait_with_output().expect("it has ended");
        Err(format!("it died: {}", String::from_utf8_lossy(&output.stderr)))
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Whether it has not ended.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Kills it, and gives the warnings and errors that it logged.
    pub(crate) fn log(mut self) -> String {
        self.kill();
        let mut log = String::new();
        let stderr = self.process.stderr.take().expect("piped");
        BufReader::new(stderr).read_to_string(&mut log).expect("text");
        log
    }
}

fn this_binary() -> PathBuf {
    std::env::current_exe().expect("this binary")
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Child({})", self.process.id())
    }
}

#[test]
#[ignore = "what child processes run; started by the other tests"]
fn serves_the_directory_until_killed() {
    let directory = std::env::var_os(DIRECTORY).expect("a directory");
    let log = tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::WARN);
    log.with_ansi(false).with_writer(std::io::stderr).init();
    let server = match ApiServer::builder().directory(directory).build() {
        Ok(server) => server,
        Err(error) => {
            let first: &dyn std::error::Error = &error;
            let causes = std::iter::successors(Some(first), |cause| cause.source());
            let causes: Vec<_> = causes.map(|cause| cause.to_string().replace('\n', " ")).collect();
            println!("\nREFUSED {}", causes.join(": "));
            return;
        }
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let listening = server.serve_http(([127, 0, 0, 1], 0).into()).await.expect("a socket");
        println!("\nSERVED {} {}", listening.address(), listening.credentials().token);
        // Nobody writes, so this ends when the one who started us does.
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let _ = ended.await;
    });
}
