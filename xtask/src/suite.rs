//! From programs of tests to suites: what is run, measured and reported as one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::compile::{Profile, Program};

/// What of a package a program tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Lib,
    Bin(String),
    Test(String),
}

impl Target {
    /// As `cargo test` is asked for it.
    pub(crate) fn argument(&self) -> String {
        match self {
            Self::Lib => "--lib".into(),
            Self::Bin(name) => format!("--bin {name}"),
            Self::Test(name) => format!("--test {name}"),
        }
    }
}

/// Tests that run in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suite {
    pub(crate) package: String,
    pub(crate) topic: String,
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// Some tests of a program.
    Tests {
        target: Target,
        profile: Profile,
        program: PathBuf,
        folder: PathBuf,
        names: Vec<String>,
        /// What this suite finds in its environment besides what all do.
        settings: Vec<(&'static str, String)>,
    },
    /// The examples in doc comments, which cargo compiles and runs itself.
    Documentation,
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.package, self.topic)
    }
}

impl Suite {
    /// The command that repeats one of its tests.
    pub(crate) fn repeat(&self, environment: &[(&'static str, String)], test: &str) -> String {
        let text = |settings: &[(&'static str, String)]| -> String {
            settings.iter().flat_map(|(name, value)| [name, "=", value, " "]).collect()
        };
        let mut settings = text(environment);
        match &self.what {
            What::Tests { target, profile, settings: own, .. } => {
                settings.push_str(&text(own));
                let (package, target) = (&self.package, target.argument());
                // What cargo takes by itself.
                let profile = if *profile == Profile::Test { "" } else { "--profile=dev " };
                format!("{settings}cargo test {profile}-p {package} {target} -- --exact {test}")
            }
            What::Documentation => {
                format!("{settings}cargo test --profile=dev --doc --workspace -- '{test}'")
            }
        }
    }
}

/// The names in what a program says to `--list --format terse`.
pub(crate) fn listed(output: &str) -> Vec<String> {
    output.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// A suite that is run a second time with operators on several threads.
const THREADED: &str = "operator";
/// On this many.
const THREADS: usize = 4;

/// The suites of a program whose tests have these names. Integration tests have one for each module at the top.
pub(crate) fn suites(program: &Program, names: Vec<String>) -> Vec<Suite> {
    let mut by_topic: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names {
        let topic = match &program.target {
            Target::Lib => "unit tests".to_owned(),
            Target::Bin(bin) => format!("unit tests of {bin}"),
            Target::Test(target) => {
                name.split_once("::").map_or(target.as_str(), |(module, _)| module).to_owned()
            }
        };
        by_topic.entry(topic).or_default().push(name);
    }
    let suite = |topic, names, settings| Suite {
        package: program.package.clone(),
        topic,
        what: What::Tests {
            target: program.target.clone(),
            profile: program.profile,
            program: program.path.clone(),
            folder: program.folder.clone(),
            names,
            settings,
        },
    };
    let again = by_topic.get(THREADED).map(|names| {
        let settings = vec![("MAINSTAY_TEST_THREADS", THREADS.to_string())];
        suite(format!("{THREADED} on {THREADS} threads"), names.clone(), settings)
    });
    let mut all: Vec<_> =
        by_topic.into_iter().map(|(topic, names)| suite(topic, names, Vec::new())).collect();
    all.extend(again);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(target: Target) -> Program {
        Program {
            package: "mainstay-streams".into(),
            target,
            profile: Profile::Dev,
            path: "suites-0f".into(),
            folder: "crates".into(),
        }
    }

    fn topics(target: Target, names: &[&str]) -> Vec<String> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        suites(&program(target), names).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn operators_are_tested_on_several_threads_too() {
        let names = vec!["operator::queue::a".to_owned(), "tidy::b".to_owned()];
        let all = suites(&program(Target::Test("suites".into())), names);
        let topics: Vec<_> = all.iter().map(|suite| suite.topic.as_str()).collect();
        assert_eq!(topics, ["operator", "tidy", "operator on 4 threads"]);
        let repeat = all[2].repeat(&[], "operator::queue::a");
        assert!(repeat.starts_with("MAINSTAY_TEST_THREADS=4 cargo test "), "{repeat}");
    }

    #[test]
    fn integration_tests_have_a_suite_for_each_module() {
        let names = ["suite::lives::a", "suite::wrong::b", "simulation::lives::a"];
        assert_eq!(
            topics(Target::Test("suites".into()), &names),
            ["mainstay-streams simulation", "mainstay-streams suite"]
        );
        assert_eq!(topics(Target::Test("steps".into()), &["a", "b"]), ["mainstay-streams steps"]);
    }

    #[test]
    fn unit_tests_are_one_suite() {
        assert_eq!(topics(Target::Lib, &["a::tests::b", "c::tests::d"]), ["mainstay-streams unit tests"]);
    }

    #[test]
    fn only_tests_are_listed() {
        assert_eq!(listed("a::b: test\nc: benchmark\n\n2 tests, 1 benchmark\n"), ["a::b"]);
    }

    #[test]
    fn a_test_is_repeated_with_its_settings() {
        let suite = &suites(&program(Target::Test("suites".into())), vec!["suite::a".into()])[0];
        assert_eq!(
            suite.repeat(&[("MAINSTAY_SEED", "7".into())], "suite::a"),
            "MAINSTAY_SEED=7 cargo test --profile=dev -p mainstay-streams --test suites -- --exact suite::a"
        );
    }
}
