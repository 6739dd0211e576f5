//! What came of a simulation, as text and as JSON. Pure.

use crate::failure::Failure as CommandFailure;
use crate::output;
use crate::systems::System;
use mainstay_testkit::simulation::{Failure, Part, Report, Row, Trace};
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;

/// The systems, one a line.
pub(super) fn list(systems: &[System]) -> String {
    let width = systems.iter().map(|system| system.name.len()).max().unwrap_or_default();
    systems.iter().fold(String::new(), |mut text, System { name, about, .. }| {
        let _ = writeln!(text, "{name:<width$}   {about}");
        text
    })
}

/// The systems for a program.
pub(super) fn list_json(systems: &[System]) -> Result<String, CommandFailure> {
    output::json(&listed(systems))
}

/// The same in YAML.
pub(super) fn list_yaml(systems: &[System]) -> Result<String, CommandFailure> {
    output::yaml(&listed(systems))
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    about: &'static str,
}

fn listed(systems: &[System]) -> Vec<Listed> {
    systems.iter().map(|System { name, about, .. }| Listed { name, about }).collect()
}

/// What was tried and what was found, for a person.
pub(super) fn table(report: &Report) -> String {
    let Report { program, steps, writes, reads, events, .. } = report;
    let mut text =
        format!("{program}: {steps} steps, {writes} writes, {reads} reads, {events} events without faults\n");
    text.push_str(&report.table());
    let pruned: usize = report.rows.iter().map(|row| row.pruned).sum();
    let _ = writeln!(text, "{:<16}{:>8}{pruned:>8}{:>8}", "total", report.worlds(), report.failed());
    for left_out in &report.left_out {
        let _ = writeln!(text, "left out: {left_out}");
    }
    for failure in &report.failures {
        let _ = write!(text, "\n{}", failure.story);
    }
    text
}

/// The same for a program.
pub(super) fn json(report: &Report, trace: &Trace) -> Result<String, CommandFailure> {
    output::json(&Simulation::new(report, trace))
}

/// The same in YAML.
pub(super) fn yaml(report: &Report, trace: &Trace) -> Result<String, CommandFailure> {
    output::yaml(&Simulation::new(report, trace))
}

/// How fast it went.
pub(super) fn speed(report: &Report) -> String {
    let speed = per_second(report.worlds(), report.took);
    format!("{} in {:.1} s, {speed} a second\n", worlds(report.worlds()), report.took.as_secs_f64())
}

/// So many worlds.
pub(super) fn worlds(count: usize) -> String {
    output::count(count, "world")
}

/// Whole worlds per second.
pub(super) fn per_second(worlds: usize, took: Duration) -> u128 {
    worlds as u128 * 1000 / took.as_millis().max(1)
}

/// The seeds of combined faults.
#[derive(Clone, Copy)]
pub(super) struct Seeds {
    pub(super) first: u64,
    pub(super) count: u64,
}

impl Seeds {
    fn end(self) -> u64 {
        self.first.wrapping_add(self.count)
    }
}

/// Which seeds are tried.
pub(super) fn seeds(system: &str, seeds: Seeds) -> String {
    format!("{system}: seeds {} to {}\n", seeds.first, seeds.end().wrapping_sub(1))
}

/// What is useful next.
pub(super) fn next(report: &Report, system: &str, seeds: Seeds, is_traced: bool) -> String {
    let Some(failure) = report.failures.first() else {
        return match seeds {
            _ if report.worlds() == 1 => format!("next: mainstay simulate {system}\n"),
            // Somebody who chose where to begin goes on where this ended.
            Seeds { first, count } if first != 1 => {
                format!("next: mainstay simulate {system} --seeds {count} --first-seed {}\n", seeds.end())
            }
            _ => String::new(),
        };
    };
    match replay(failure, system) {
        Some(command) if failure.part != Part::Replay => format!("next: {command}\n"),
        Some(command) if !is_traced => format!("next: {command} --trace\n"),
        _ => String::new(),
    }
}

/// The command that shows a failure again, if there is one. Changes of the spec are replayed by the code of the story.
fn replay(failure: &Failure, system: &str) -> Option<String> {
    let (seed, faults) = &failure.found_with;
    match failure.part {
        Part::SpecChanges => None,
        Part::Baseline => Some(format!("mainstay simulate {system} --trace")),
        _ => {
            let seed = if *seed == 0 { String::new() } else { format!(" --seed {seed}") };
            Some(format!("mainstay simulate {system} --replay \"{faults}\"{seed}"))
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Simulation<'a> {
    system: &'a str,
    without_faults: Baseline,
    parts: Vec<Tried>,
    worlds: usize,
    failed: usize,
    seconds: f64,
    failures: Vec<Found<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    left_out: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trace: Vec<String>,
}

impl<'a> Simulation<'a> {
    fn new(report: &'a Report, trace: &Trace) -> Self {
        Simulation {
            system: &report.program,
            without_faults: Baseline {
                steps: report.steps,
                writes: report.writes,
                reads: report.reads,
                events: report.events,
            },
            parts: report.rows.iter().map(Tried::from).collect(),
            worlds: report.worlds(),
            failed: report.failed(),
            seconds: report.took.as_secs_f64(),
            failures: report.failures.iter().map(|failure| Found::new(failure, &report.program)).collect(),
            left_out: &report.left_out,
            trace: trace.0.iter().map(|entry| entry.to_string().trim_start().to_owned()).collect(),
        }
    }
}

#[derive(Serialize)]
struct Baseline {
    steps: usize,
    writes: usize,
    reads: usize,
    events: usize,
}

#[derive(Serialize)]
struct Tried {
    part: String,
    worlds: usize,
    pruned: usize,
    failed: usize,
}

impl From<&Row> for Tried {
    fn from(row: &Row) -> Self {
        let Row { part, worlds, pruned, failed } = *row;
        Tried { part: part.to_string(), worlds, pruned, failed }
    }
}

#[derive(Serialize)]
struct Found<'a> {
    part: String,
    seed: u64,
    faults: String,
    violations: Vec<String>,
    story: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<String>,
}

impl<'a> Found<'a> {
    fn new(failure: &'a Failure, system: &str) -> Self {
        Found {
            part: failure.part.to_string(),
            seed: failure.seed,
            faults: failure.faults.to_string(),
            violations: failure.violations.iter().map(ToString::to_string).collect(),
            story: &failure.story,
            replay: replay(failure, system),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use mainstay_testkit::simulation::{Family, Violation};

    /// A report of a system that is not right, if a part is named.
    fn report(wrong: Option<(Part, u64)>) -> Report {
        let row = |part, worlds, failed| Row { part, worlds, pruned: 2, failed };
        let failures = wrong.map(|(part, seed)| Failure {
            part,
            seed: 0,
            faults: "crash after write 3".parse().unwrap(),
            found_with: (seed, "crash after write 7, hold event 9".parse().unwrap()),
            violations: vec![Violation::Lost { what: "secrets default/a".into(), by: "shop#2".into() }],
            trace: Trace::default(),
            story: "shop is not right\n".into(),
        });
        let failed = failures.iter().len();
        Report {
            program: "shop".into(),
            steps: 3,
            writes: 8,
            reads: 20,
            events: 25,
            rows: vec![row(Part::Baseline, 1, 0), row(Part::Each(Family::CrashPoints), 11, failed)],
            failures: failures.into_iter().collect(),
            left_out: vec!["webhooks down: there are none".into()],
            took: Duration::from_millis(1500),
        }
    }

    #[test]
    fn a_table_has_a_total_and_the_story_of_what_was_found() {
        expect![[r#"
            shop: 3 steps, 8 writes, 20 reads, 25 events without faults
                              worlds  pruned  failed
            without faults         1       2       0
            crash points          11       2       1
            total                 12       4       1
            left out: webhooks down: there are none

            shop is not right
        "#]]
        .assert_eq(&table(&report(Some((Part::Each(Family::CrashPoints), 0)))));
    }

    #[test]
    fn json_has_the_command_that_shows_a_failure_again() {
        expect![[r#"
            {
              "system": "shop",
              "withoutFaults": {
                "steps": 3,
                "writes": 8,
                "reads": 20,
                "events": 25
              },
              "parts": [
                {
                  "part": "without faults",
                  "worlds": 1,
                  "pruned": 2,
                  "failed": 0
                },
                {
                  "part": "crash points",
                  "worlds": 11,
                  "pruned": 2,
                  "failed": 1
                }
              ],
              "worlds": 12,
              "failed": 1,
              "seconds": 1.5,
              "failures": [
                {
                  "part": "combinations",
                  "seed": 0,
                  "faults": "crash after write 3",
                  "violations": [
                    "lost: secrets default/a, removed by shop#2"
                  ],
                  "story": "shop is not right\n",
                  "replay": "mainstay simulate shop --replay \"crash after write 7, hold event 9\" --seed 4"
                }
              ],
              "leftOut": [
                "webhooks down: there are none"
              ]
            }
        "#]]
        .assert_eq(&json(&report(Some((Part::Combinations, 4))), &Trace::default()).unwrap());
    }

    #[test]
    fn speed_is_in_whole_worlds() {
        assert_eq!(speed(&report(None)), "12 worlds in 1.5 s, 8 a second\n");
        assert_eq!(per_second(3, Duration::ZERO), 3000);
        assert_eq!(worlds(1), "1 world");
    }

    #[test]
    fn the_next_command_replays_the_whole_script_with_the_faults_it_was_found_with() {
        let seeds = Seeds { first: 1, count: 100 };
        let next = |part, seed, is_traced| next(&report(Some((part, seed))), "shop", seeds, is_traced);
        let faults = r#"--replay "crash after write 7, hold event 9""#;
        let crash = next(Part::Each(Family::CrashPoints), 0, false);
        assert_eq!(crash, format!("next: mainstay simulate shop {faults}\n"));
        let combined = next(Part::Combinations, 4, false);
        assert_eq!(combined, format!("next: mainstay simulate shop {faults} --seed 4\n"));
        let replayed = next(Part::Replay, 4, false);
        assert_eq!(replayed, format!("next: mainstay simulate shop {faults} --seed 4 --trace\n"));
        assert_eq!(next(Part::Replay, 4, true), "", "there is no more to see");
        assert_eq!(next(Part::Baseline, 0, false), "next: mainstay simulate shop --trace\n");
    }
}
