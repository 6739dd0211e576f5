//! What came of a suite, read from what its process wrote.

use std::time::Duration;

/// What came of a suite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) passed: usize,
    pub(crate) failed: Vec<String>,
    /// What was not tried, and why.
    pub(crate) skipped: Vec<String>,
    /// Why the suite as a whole failed: it crashed, or took too long.
    pub(crate) broken: Option<String>,
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
}

impl Outcome {
    pub(crate) fn is_fine(&self) -> bool {
        self.failed.is_empty() && self.broken.is_none()
    }
}

/// Reads the log of a process of tests that ended with this code.
pub(crate) fn read(log: &str, code: Option<i32>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut results = 0;
    let mut in_failures = false;
    for line in log.lines() {
        if let Some(skipped) = line.strip_prefix("SKIPPED: ") {
            outcome.skipped.push(skipped.to_owned());
        } else if line == "failures:" {
            in_failures = true;
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            results += 1;
            in_failures = false;
            outcome.passed += count(counts, "passed");
        } else if let Some(name) =
            line.strip_prefix("    ").filter(|name| in_failures && !name.starts_with(' '))
        {
            let name = name.trim().to_owned();
            if !outcome.failed.contains(&name) {
                outcome.failed.push(name);
            }
        } else if in_failures && !line.is_empty() {
            // The first list of failures has their output, which may look like anything.
            in_failures = false;
        }
    }
    if results == 0 {
        outcome.broken = Some(format!("it ended without a result, with {}", ending(code)));
    } else if code != Some(0) && outcome.failed.is_empty() {
        outcome.broken = Some(format!("it ended with {}", ending(code)));
    }
    outcome
}

fn ending(code: Option<i32>) -> String {
    code.map_or("a signal".into(), |code| format!("code {code}"))
}

/// The number before a word in `ok. 3 passed; 0 failed; …`.
fn count(text: &str, what: &str) -> usize {
    let before = text.split(what).next().unwrap_or_default().trim_end();
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// The CPU time of a shell's children, from what `times` prints: the second of two lines of user and system time.
pub(crate) fn cpu(times: &str) -> Option<Duration> {
    let children = times.lines().nth(1)?;
    children.split_whitespace().map(minutes_and_seconds).sum()
}

/// `1m2.345s`.
fn minutes_and_seconds(text: &str) -> Option<Duration> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    let seconds: f64 = seconds.parse().ok()?;
    let minutes: u32 = minutes.parse().ok()?;
    Some(Duration::try_from_secs_f64(seconds).ok()? + Duration::from_mins(u64::from(minutes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &str = "\
running 3 tests
test a ... ok
test b::c ... FAILED

SKIPPED: networks of real peers: no ipfs

failures:

---- b::c stdout ----
thread 'b::c' panicked at src/lib.rs:1:1:
    not a name

failures:
    b::c

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn failures_and_skips_are_named() {
        let outcome = read(FAILED, Some(101));
        assert_eq!(outcome.passed, 2);
        assert_eq!(outcome.failed, ["b::c"]);
        assert_eq!(outcome.skipped, ["networks of real peers: no ipfs"]);
        assert_eq!(outcome.broken, None);
    }

    #[test]
    fn several_results_are_added_up() {
        let log = "test result: ok. 2 passed; 0 failed\n\ntest result: ok. 3 passed; 0 failed\n";
        assert_eq!(read(log, Some(0)).passed, 5);
    }

    #[test]
    fn a_process_without_a_result_is_broken() {
        let outcome = read("running 3 tests\ntest a ... ok\n", None);
        assert_eq!(outcome.broken.as_deref(), Some("it ended without a result, with a signal"));
        assert!(!outcome.is_fine());
        let log = "test result: ok. 2 passed; 0 failed\n";
        assert_eq!(read(log, Some(3)).broken.as_deref(), Some("it ended with code 3"));
    }

    #[test]
    fn cpu_time_is_that_of_the_children() {
        assert_eq!(cpu("0m0.01s 0m0.00s\n1m2.50s 0m0.25s\n"), Some(Duration::from_millis(62_750)));
        assert_eq!(cpu(""), None);
    }
}
