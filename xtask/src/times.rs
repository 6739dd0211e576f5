//! The table in docs/testing.md: what each suite costs. It is written by `xtask test --times`, and read to start the longest
//! suites first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::run::Done;
use crate::suite::Suite;

const BEGIN: &str = "<!-- times: written by make test-times -->\n";
const END: &str = "<!-- end of times -->\n";

/// Sorts suites so that those come first that took longest when the page was written, and before them those it does not have.
pub(crate) fn longest_first(all: &mut [Suite], page: &str) {
    let known: BTreeMap<String, Duration> = page
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            let (suite, wall) = (cells.next()?, cells.next()?);
            let wall = Duration::try_from_secs_f64(wall.trim().parse().ok()?).ok()?;
            Some((suite.trim().to_owned(), wall))
        })
        .collect();
    all.sort_by_key(|suite| Reverse(known.get(&suite.to_string()).copied().unwrap_or(Duration::MAX)));
}

/// Puts the table of this run into the page.
pub(crate) fn write(path: &Path, done: &[Done]) -> Result<()> {
    let page = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let page =
        with_table(&page, &table(done)).with_context(|| format!("{} has no place for it", path.display()))?;
    std::fs::write(path, page).with_context(|| format!("writing {}", path.display()))
}

fn with_table(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{table}{END}{after}"))
}

fn table(done: &[Done]) -> String {
    let mut rows: Vec<_> = done.iter().collect();
    rows.sort_by_key(|(suite, outcome)| (Reverse(outcome.cpu.max(outcome.wall)), suite.to_string()));
    let mut text = String::from("| suite | wall time, s | CPU time, s | tests |\n|---|---:|---:|---:|\n");
    let row = |text: &mut String, name: &str, wall: f64, cpu: f64, tests: usize| {
        let _ = writeln!(text, "| {name} | {wall:.1} | {cpu:.1} | {tests} |");
    };
    let (mut wall, mut cpu, mut tests) = (0.0, 0.0, 0);
    for (suite, outcome) in rows {
        let (took, used) = (outcome.wall.as_secs_f64(), outcome.cpu.as_secs_f64());
        row(&mut text, &suite.to_string(), took, used, outcome.passed);
        (wall, cpu, tests) = (wall + took, cpu + used, tests + outcome.passed);
    }
    row(&mut text, "**all, one after the other**", wall, cpu, tests);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::suite::What;
    use expect_test::expect;

    fn suite(topic: &str) -> Suite {
        Suite { package: "mainstay".into(), topic: topic.into(), what: What::Documentation }
    }

    #[test]
    fn the_table_is_sorted_by_cost_and_orders_the_next_run() {
        let outcome = |seconds| Outcome {
            passed: 2,
            wall: Duration::from_secs(seconds),
            cpu: Duration::from_millis(500),
            ..Outcome::default()
        };
        let page = format!("# Tests\n{BEGIN}old\n{END}more\n");
        let table = table(&[(suite("short"), outcome(1)), (suite("long"), outcome(30))]);
        let page = with_table(&page, &table).unwrap();
        expect![[r#"
            # Tests
            <!-- times: written by make test-times -->
            | suite | wall time, s | CPU time, s | tests |
            |---|---:|---:|---:|
            | mainstay long | 30.0 | 0.5 | 2 |
            | mainstay short | 1.0 | 0.5 | 2 |
            | **all, one after the other** | 31.0 | 1.0 | 4 |
            <!-- end of times -->
            more
        "#]]
        .assert_eq(&page);
        let mut all = [suite("short"), suite("long"), suite("new")];
        longest_first(&mut all, &page);
        assert_eq!(all.map(|suite| suite.topic), ["new", "long", "short"]);
    }
}
