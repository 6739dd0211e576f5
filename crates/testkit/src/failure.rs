//! What a test that fails on a cluster leaves for whoever looks into it: the command that repeats it, and logs.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cluster::ClusterKind;

/// Where logs of failed tests go, if not to `test-logs` in the target directory.
pub(crate) const LOGS: &str = "MAINSTAY_TEST_LOGS";

/// Variables that change what a test does. Whatever is set belongs to the command that repeats it.
const SEEDS: [&str; 4] = ["MAINSTAY_SEED", "MAINSTAY_SIMULATION", "PROPTEST_RNG_SEED", "PROPTEST_CASES"];

/// Logs of servers as a real control plane names them.
const SERVERS: [&str; 3] = ["etcd.log", "kube-apiserver.log", "kube-controller-manager.log"];

/// Prints how to repeat the running test, and where the logs are that this keeps: its requests, and those of the servers,
/// which are in `servers`.
pub(crate) fn report(kind: ClusterKind, requests: &str, servers: Option<&Path>) {
    let run = Run::here();
    let mut text = format!("the test failed on the {kind} cluster\n  repeat: {}\n", run.command(kind));
    match keep(&run.logs(kind), requests, servers) {
        Ok(folder) => {
            let _ = writeln!(text, "  logs: {}", folder.display());
        }
        Err(error) => {
            let _ = writeln!(text, "  logs could not be kept: {error}");
        }
    }
    eprint!("{text}");
}

fn keep(folder: &Path, requests: &str, servers: Option<&Path>) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("requests.log"), requests)?;
    for server in SERVERS {
        if let Some(log) = servers.map(|servers| servers.join(server)).filter(|log| log.is_file()) {
            fs::copy(log, folder.join(server))?;
        }
    }
    Ok(folder.to_owned())
}

/// Which test runs, as far as a library can know.
struct Run {
    package: String,
    /// The program of tests, by its path.
    program: PathBuf,
    /// None: the test runs on the main thread, which has no name of its own.
    test: Option<String>,
    settings: Vec<(&'static str, String)>,
}

impl Run {
    fn here() -> Self {
        let test = std::thread::current().name().filter(|name| *name != "main").map(str::to_owned);
        Self {
            package: env::var("CARGO_PKG_NAME").unwrap_or_default(),
            program: env::current_exe().unwrap_or_default(),
            test,
            settings: SEEDS.into_iter().filter_map(|name| Some((name, env::var(name).ok()?))).collect(),
        }
    }

    /// `suites` of `…/suites-0123456789abcdef`.
    fn target(&self) -> &str {
        let name = self.program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.rsplit_once('-').map_or(name, |(target, _)| target)
    }

    fn command(&self, kind: ClusterKind) -> String {
        let mut command = format!("MAINSTAY_TEST_CLUSTER={kind} ");
        for (name, value) in &self.settings {
            let _ = write!(command, "{name}={value} ");
        }
        command.push_str("cargo test");
        if !self.package.is_empty() {
            let _ = write!(command, " -p {}", self.package);
        }
        let target = self.target();
        if target == self.package.replace('-', "_") {
            command.push_str(" --lib");
        } else {
            let _ = write!(command, " --test {target}");
        }
        if let Some(test) = &self.test {
            let _ = write!(command, " -- --exact {test}");
        }
        command
    }

    fn logs(&self, kind: ClusterKind) -> PathBuf {
        let test = self.test.as_deref().unwrap_or("main").replace("::", ".");
        let folder = env::var_os(LOGS).filter(|folder| !folder.is_empty()).map_or_else(
            // Programs of tests are in `target/PROFILE/deps`.
            || self.program.ancestors().nth(3).unwrap_or(Path::new(".")).join("test-logs"),
            PathBuf::from,
        );
        folder.join(format!("{}.{}.{test}.{kind}", self.package, self.target()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(program: &str, test: Option<&str>) -> Run {
        Run {
            package: "mainstay-streams".into(),
            program: program.into(),
            test: test.map(str::to_owned),
            settings: vec![("MAINSTAY_SEED", "7".into())],
        }
    }

    #[test]
    fn the_command_names_cluster_seed_and_test() {
        let suites = run("/t/debug/deps/suites-0f", Some("suite::lives::it_runs"));
        assert_eq!(
            suites.command(ClusterKind::Real),
            "MAINSTAY_TEST_CLUSTER=real MAINSTAY_SEED=7 cargo test -p mainstay-streams --test suites -- --exact \
             suite::lives::it_runs"
        );
        let unit = run("/t/debug/deps/mainstay_streams-0f", None);
        assert_eq!(
            unit.command(ClusterKind::Embedded),
            "MAINSTAY_TEST_CLUSTER=embedded MAINSTAY_SEED=7 cargo test -p mainstay-streams --lib"
        );
    }

    #[test]
    fn requests_and_the_logs_of_servers_are_kept() {
        let (servers, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(servers.path().join("etcd.log"), "it began").unwrap();
        let folder = keep(&kept.path().join("a.test"), "GET /version → 200\n", Some(servers.path())).unwrap();
        assert_eq!(fs::read_to_string(folder.join("requests.log")).unwrap(), "GET /version → 200\n");
        assert_eq!(fs::read_to_string(folder.join("etcd.log")).unwrap(), "it began");
        assert!(!folder.join("kube-apiserver.log").exists());
    }
}
