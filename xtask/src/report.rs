//! What a person reads: a line for each suite, what helps with a failure, and the sum.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::outcome::Outcome;
use crate::run::Done;
use crate::suite::Suite;

/// Lines of a suite's log that are shown when it fails. The log itself has all.
const SHOWN_LINES_MAX: usize = 120;

/// A suite that has ended.
pub(crate) fn line(suite: &Suite, outcome: &Outcome, (done, all): (usize, usize)) -> String {
    let verdict = if outcome.is_fine() { "ok    " } else { "FAILED" };
    let mut text = format!(
        "{done:>3}/{all} {verdict} {:<48} {:>5} passed {:>6.1} s {:>6.1} s CPU",
        suite.to_string(),
        outcome.passed,
        outcome.wall.as_secs_f64(),
        outcome.cpu.as_secs_f64(),
    );
    if !outcome.skipped.is_empty() {
        let _ = write!(text, ", {} skipped", outcome.skipped.len());
    }
    text.push('\n');
    text
}

/// What a suite that failed wrote, and how to repeat it.
pub(crate) fn failure(
    suite: &Suite,
    outcome: &Outcome,
    log: &Path,
    settings: &[(&'static str, String)],
) -> String {
    let written = std::fs::read(log).unwrap_or_default();
    let written = String::from_utf8_lossy(&written);
    // The output of failed tests follows the first heading of this name.
    let shown = written.find("\nfailures:\n").map_or(written.as_ref(), |at| &written[at..]);
    let lines: Vec<_> = shown.lines().collect();
    let mut text = String::new();
    for line in &lines[..lines.len().min(SHOWN_LINES_MAX)] {
        let _ = writeln!(text, "      {line}");
    }
    if lines.len() > SHOWN_LINES_MAX {
        let _ = writeln!(text, "      … {} more lines", lines.len() - SHOWN_LINES_MAX);
    }
    let _ = writeln!(text, "      log: {}", log.display());
    text + &commands(suite, outcome, settings)
}

fn commands(suite: &Suite, outcome: &Outcome, settings: &[(&'static str, String)]) -> String {
    let mut text = String::new();
    for test in &outcome.failed {
        let _ = writeln!(text, "      repeat: {}", suite.repeat(settings, test));
    }
    if let Some(broken) = &outcome.broken {
        let _ = writeln!(text, "      {suite}: {broken}");
    }
    text
}

/// All of it. The last line has the form that continuous integration counts.
pub(crate) fn summary(done: &[Done], settings: &[(&'static str, String)], took: Duration) -> String {
    let mut text = String::new();
    let failures = done.iter().filter(|(_, outcome)| !outcome.is_fine());
    for (suite, outcome) in failures {
        let _ = writeln!(text, "FAILED {suite}");
        text += &commands(suite, outcome, settings);
    }
    for (suite, outcome) in done {
        for skipped in &outcome.skipped {
            let _ = writeln!(text, "skipped in {suite}: {skipped}");
        }
    }
    let cpu: Duration = done.iter().map(|(_, outcome)| outcome.cpu).sum();
    let _ = writeln!(
        text,
        "{} suites in {:.0} s, {:.0} s of CPU",
        done.len(),
        took.as_secs_f64(),
        cpu.as_secs_f64()
    );
    let sum = |count: fn(&Outcome) -> usize| done.iter().map(|(_, outcome)| count(outcome)).sum::<usize>();
    let failed = sum(|outcome| outcome.failed.len() + usize::from(outcome.broken.is_some()));
    let (passed, skipped) = (sum(|outcome| outcome.passed), sum(|outcome| outcome.skipped.len()));
    let _ = writeln!(text, "{passed} passed, {failed} failed, {skipped} skipped");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::What;
    use expect_test::expect;

    fn done(topic: &str, outcome: Outcome) -> Done {
        (Suite { package: "mainstay".into(), topic: topic.into(), what: What::Documentation }, outcome)
    }

    #[test]
    fn the_summary_counts_and_names_what_to_do() {
        let fine = Outcome {
            passed: 3,
            skipped: vec!["real peers: no ipfs".into()],
            cpu: Duration::from_secs(2),
            ..Outcome::default()
        };
        let failed = Outcome { passed: 1, failed: vec!["a::b".into()], ..Outcome::default() };
        let broken = Outcome { broken: Some("it ended with code 3".into()), ..Outcome::default() };
        let all = [done("one", fine), done("two", failed), done("three", broken)];
        expect![[r#"
            FAILED mainstay two
                  repeat: MAINSTAY_SEED=7 cargo test --profile=dev --doc --workspace -- 'a::b'
            FAILED mainstay three
                  mainstay three: it ended with code 3
            skipped in mainstay one: real peers: no ipfs
            3 suites in 5 s, 2 s of CPU
            4 passed, 2 failed, 1 skipped
        "#]]
        .assert_eq(&summary(&all, &[("MAINSTAY_SEED", "7".into())], Duration::from_secs(5)));
    }
}
