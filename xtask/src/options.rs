//! What can be asked for, and the environment that suites get for it.

use std::num::NonZeroUsize;

/// Developer commands of this repository.
#[derive(Debug, clap::Parser)]
#[command(name = "xtask", disable_help_subcommand = true)]
pub(crate) enum Arguments {
    /// Compile and run tests.
    Test(Options),
}

/// How tests are run.
#[expect(clippy::struct_excessive_bools, reason = "a switch of the command line each")]
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Only suites whose name contains one of these texts, as the summary shows it.
    pub(crate) only: Vec<String>,
    /// Only this package; can be given several times.
    #[arg(short, long = "package", value_name = "NAME", conflicts_with = "quick")]
    pub(crate) packages: Vec<String>,
    /// Only crates that changed, and their dependents; no real cluster; of simulations only crash points.
    #[arg(long, conflicts_with = "campaign")]
    pub(crate) quick: bool,
    /// The commit that --quick compares with [default: the upstream branch, or the last commit].
    #[arg(long, value_name = "REV", requires = "quick")]
    pub(crate) base: Option<String>,
    /// Fresh seeds, and more of them.
    #[arg(long)]
    pub(crate) campaign: bool,
    /// The seed of everything random [default: 1; with --campaign a new one each time].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Tests in the order that the seed decides, instead of by name.
    #[arg(long)]
    pub(crate) shuffle: bool,
    /// Threads of each suite [default: one per core].
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Suites that run at one time [default: one more than there are cores].
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// All of it this many times, with another seed each time.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) rounds: NonZeroUsize,
    /// Write what each suite costs into docs/testing.md. One suite at a time, so that the times are its own.
    #[arg(long, conflicts_with_all = ["quick", "campaign", "jobs"])]
    pub(crate) times: bool,
}

impl Options {
    /// Suites at one time.
    pub(crate) fn jobs(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.jobs.map_or(if self.times { 1 } else { cores + 1 }, NonZeroUsize::get)
    }

    /// The seed of the first round.
    pub(crate) fn first_seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| if self.campaign { u64::from(fastrand::u32(1..)) } else { 1 })
    }

    /// What suites find in their environment. It is part of the command that repeats a test.
    pub(crate) fn environment(&self, seed: u64) -> Vec<(&'static str, String)> {
        let mut all = vec![("PROPTEST_RNG_SEED", seed.to_string())];
        if seed != 1 {
            all.push(("MAINSTAY_SEED", seed.to_string()));
        }
        if self.quick {
            all.push(("MAINSTAY_SIMULATION", "crash-points".into()));
            all.push(("MAINSTAY_TEST_CLUSTER", "embedded".into()));
        }
        if self.campaign {
            all.push(("MAINSTAY_SIMULATION", "campaign".into()));
            all.push(("PROPTEST_CASES", "2000".into()));
        }
        all
    }
}
