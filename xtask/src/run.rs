//! Runs suites, several at one time, each a process with a temporary directory of its own.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use mainstay_testkit::process::Process;

use crate::changed;
use crate::compile::{Profile, Program, Workspace, cargo, own_variables, selection};
use crate::options::Options;
use crate::outcome::{self, Outcome};
use crate::report;
use crate::servers::Servers;
use crate::suite::{Suite, What, listed, suites};
use crate::times;

/// A suite that takes longer hangs.
const SUITE_TIME_MAX: Duration = Duration::from_mins(30);
/// Between two looks at a running suite.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Runs `$2…` and writes the CPU time of all that it waited for into the file `$1`.
const MEASURE: &str = r#"out=$1; shift; "$@"; code=$?; times >"$out"; exit "$code""#;

/// A suite and what came of it.
pub(crate) type Done = (Suite, Outcome);

/// Does what is asked for. Whether everything passed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    end_with_parent();
    let workspace = Workspace::read()?;
    let packages = match options.packages.as_slice() {
        [] if options.quick => changed::packages(&workspace, options.base.as_deref())?,
        [] => None,
        named => Some(named.to_vec()),
    };
    if packages.as_ref().is_some_and(Vec::is_empty) {
        eprintln!("nothing has changed");
        return Ok(true);
    }
    let mut all = find(&workspace, packages.as_deref())?;
    all.retain(|suite| {
        let name = suite.to_string();
        options.only.is_empty() || options.only.iter().any(|text| name.contains(text))
    });
    ensure!(!all.is_empty(), "no suite has {} in its name", options.only.join(" or "));
    let page = workspace.root.join("docs/testing.md");
    times::longest_first(&mut all, &fs::read_to_string(&page).unwrap_or_default());
    let servers = if options.quick { Servers::none() } else { Servers::start()? };
    let mut fine = true;
    for round in 0..options.rounds.get() {
        let seed = options.first_seed().wrapping_add(u64::try_from(round)?);
        let done = round_of(options, &workspace, &servers, &all, seed, packages.as_deref())?;
        fine &= done.iter().all(|(_, outcome)| outcome.is_fine());
        if options.times {
            times::write(&page, &done)?;
        }
    }
    Ok(fine)
}

/// Whoever started us may be killed, which nobody tells us. Our end is the end of everything that we started.
fn end_with_parent() {
    let parent = parent_id();
    std::thread::spawn(move || {
        while parent_id() == parent {
            std::thread::sleep(Duration::from_millis(200));
        }
        std::process::exit(2);
    });
}

/// All suites of some packages, or of all.
fn find(workspace: &Workspace, packages: Option<&[String]>) -> Result<Vec<Suite>> {
    let mut all = vec![Suite {
        package: "all crates".into(),
        topic: "examples in doc comments".into(),
        what: What::Documentation,
    }];
    for program in workspace.compile(packages)? {
        let names = names_of(&program)?;
        all.extend(suites(&program, names));
    }
    Ok(all)
}

/// The tests of a program but for those that other tests start.
fn names_of(program: &Program) -> Result<Vec<String>> {
    let list = |more: &[&str]| {
        let output = Command::new(&program.path).args(["--list", "--format", "terse"]).args(more).output();
        let output = output.with_context(|| format!("asking {} for its tests", program.path.display()))?;
        ensure!(output.status.success(), "{} does not list its tests", program.path.display());
        anyhow::Ok(listed(&String::from_utf8_lossy(&output.stdout)))
    };
    let (mut names, ignored) = (list(&[])?, list(&["--ignored"])?);
    names.retain(|name| !ignored.contains(name));
    Ok(names)
}

/// Runs all suites once.
fn round_of(
    options: &Options,
    workspace: &Workspace,
    servers: &Servers,
    all: &[Suite],
    seed: u64,
    packages: Option<&[String]>,
) -> Result<Vec<Done>> {
    let logs = workspace.target_directory.join("test-logs");
    // Logs of an earlier run would be taken for this one's.
    let _ = fs::remove_dir_all(&logs);
    fs::create_dir_all(&logs)?;
    let settings = options.environment(seed);
    eprintln!("{} suites, {} at one time, seed {seed}", all.len(), options.jobs());
    let mut environment = servers.environment();
    environment.extend(settings.iter().cloned());
    let round = Round { options, logs, environment, settings, seed, packages };
    let queue: Mutex<VecDeque<&Suite>> = Mutex::new(all.iter().collect());
    let done = Mutex::new(Vec::new());
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs() {
            scope.spawn(|| {
                // Not in the condition of a loop, which would hold the lock while the suite runs.
                let next = || lock(&queue).pop_front();
                while let Some(suite) = next() {
                    let outcome = round.run(suite);
                    let mut done = lock(&done);
                    done.push((suite.clone(), outcome));
                    let (suite, outcome) = &done[done.len() - 1];
                    eprint!("{}", report::line(suite, outcome, (done.len(), all.len())));
                    if !outcome.is_fine() {
                        eprint!("{}", report::failure(suite, outcome, &round.log(suite), &round.settings));
                    }
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    print!("{}", report::summary(&done, &round.settings, began.elapsed()));
    Ok(done)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all suites of one round share.
struct Round<'a> {
    options: &'a Options,
    logs: PathBuf,
    environment: Vec<(&'static str, String)>,
    /// The part of the environment that a person would set.
    settings: Vec<(&'static str, String)>,
    seed: u64,
    packages: Option<&'a [String]>,
}

impl Round<'_> {
    fn log(&self, suite: &Suite) -> PathBuf {
        self.logs.join(format!("{}.log", suite.to_string().replace(' ', "-")))
    }

    fn run(&self, suite: &Suite) -> Outcome {
        let began = Instant::now();
        let log = self.log(suite);
        let mut outcome = self
            .try_run(suite, &log)
            .unwrap_or_else(|error| Outcome { broken: Some(format!("{error:#}")), ..Outcome::default() });
        outcome.wall = began.elapsed();
        outcome
    }

    fn try_run(&self, suite: &Suite, log: &Path) -> Result<Outcome> {
        // Removed by the supervisor, which outlives us if need be.
        let directory = tempfile::Builder::new().prefix("mainstay-suite-").tempdir()?.keep();
        let times = log.with_extension("times");
        let command = self.measured(suite, &times);
        let mut process = Process::spawn_in(&directory, &command, log.to_owned())?;
        let deadline = Instant::now() + SUITE_TIME_MAX;
        while !process.has_ended() {
            if Instant::now() > deadline {
                let last = process.last_words();
                return Ok(Outcome {
                    broken: Some(format!("it was killed after {SUITE_TIME_MAX:?}; its last words:\n{last}")),
                    ..Outcome::default()
                });
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let code = process.wait()?.code();
        let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
        let mut outcome = outcome::read(&text, code);
        outcome.cpu = outcome::cpu(&fs::read_to_string(&times).unwrap_or_default()).unwrap_or_default();
        // A file of the shell's, not of anybody who looks into a failure.
        let _ = fs::remove_file(times);
        Ok(outcome)
    }

    fn measured(&self, suite: &Suite, times: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", MEASURE, "measure"]).arg(times);
        for name in own_variables() {
            command.env_remove(name);
        }
        match &suite.what {
            What::Tests { program, folder, names, settings, .. } => {
                command.envs(settings.iter().map(|(name, value)| (name, value)));
                command.arg(program).arg("--exact").args(names).current_dir(folder);
                command.env("CARGO_PKG_NAME", &suite.package).env("CARGO_MANIFEST_DIR", folder);
                if self.options.shuffle {
                    // The library of tests takes unstable options only from those who say that they mean it.
                    command.args(["-Z", "unstable-options", "--shuffle-seed", &self.seed.to_string()]);
                    command.env("RUSTC_BOOTSTRAP", "1");
                }
                if let Some(threads) = self.options.threads {
                    command.args(["--test-threads", &threads.to_string()]);
                }
            }
            What::Documentation => {
                command.arg(cargo().get_program()).args(["test", "--doc", Profile::Dev.argument()]);
                command.args(selection(self.packages));
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("MAINSTAY_TEST_LOGS", &self.logs);
        command
    }
}
