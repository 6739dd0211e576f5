//! What came of a check.

use std::fmt::{self, Write as _};
use std::time::Duration;

use super::family::Family;
use super::fault::Faults;
use super::trace::Trace;
use super::violation::Violation;

/// A part of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Part {
    /// The run without faults.
    Baseline,
    /// A family of faults, one at a time.
    Each(Family),
    /// Several at once.
    Combinations,
    /// Changes of the spec.
    SpecChanges,
    /// What was asked to be replayed.
    Replay,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Baseline => f.pad("without faults"),
            Part::Each(family) => family.fmt(f),
            Part::Combinations => f.pad("combinations"),
            Part::SpecChanges => f.pad("spec changes"),
            Part::Replay => f.pad("replay"),
        }
    }
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// In which part.
    pub part: Part,
    /// Worlds of it that have ended.
    pub done: usize,
    /// Worlds of it in all.
    pub total: usize,
    /// Of those that have ended, how many were not as they should be.
    pub failed: usize,
}

/// One line of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What was tried.
    pub part: Part,
    /// How many worlds were run.
    pub worlds: usize,
    /// How many more would have come to the same and were not.
    pub pruned: usize,
    /// How many were not as they should be.
    pub failed: usize,
}

/// A run that was not as it should be, as short as it could be made.
#[derive(Clone, Debug)]
pub struct Failure {
    /// In which part.
    pub part: Part,
    /// The seed.
    pub seed: u64,
    /// What went wrong.
    pub faults: Faults,
    /// Seed and faults before they were shortened. With the whole script they show it again, which those of the short
    /// course do with its own script only.
    pub found_with: (u64, Faults),
    /// What came of it.
    pub violations: Vec<Violation>,
    /// Everything that happened.
    pub trace: Trace,
    /// It, told for people, with the code that replays it.
    pub story: String,
}

/// What came of a check.
#[derive(Clone, Debug)]
pub struct Report {
    /// The program under test.
    pub program: String,
    /// How many steps the script has.
    pub steps: usize,
    /// How many writes it made without faults.
    pub writes: usize,
    /// How many reads.
    pub reads: usize,
    /// How many events it was told.
    pub events: usize,
    /// What was tried.
    pub rows: Vec<Row>,
    /// What was found: the first of each part, shortened.
    pub failures: Vec<Failure>,
    /// What could not be tried, and why.
    pub left_out: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// How many worlds were run, those for shortening not counted.
    pub fn worlds(&self) -> usize {
        self.rows.iter().map(|row| row.worlds).sum()
    }

    /// How many were not as they should be.
    pub fn failed(&self) -> usize {
        self.rows.iter().map(|row| row.failed).sum()
    }

    /// What was tried, as a table.
    pub fn table(&self) -> String {
        let mut text = format!("{:<16}{:>8}{:>8}{:>8}\n", "", "worlds", "pruned", "failed");
        for row in &self.rows {
            let Row { part, worlds, pruned, failed } = row;
            let _ = writeln!(text, "{part:<16}{worlds:>8}{pruned:>8}{failed:>8}");
        }
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} steps, {} writes, {} reads, {} events without faults",
            self.program, self.steps, self.writes, self.reads, self.events
        )?;
        f.write_str(&self.table())?;
        for failure in &self.failures {
            write!(f, "\n{}", failure.story)?;
        }
        for left_out in &self.left_out {
            writeln!(f, "left out: {left_out}")?;
        }
        Ok(())
    }
}
