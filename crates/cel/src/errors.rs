//! Errors of parsing and of type checking, and how they are shown.

use crate::ast::Source;
use std::fmt;

/// How many errors are shown.
const SHOWN_MAX: usize = 100;
/// A line longer than this is not shown, in bytes.
const SNIPPET_BYTES_MAX: usize = 16_384;

/// One error, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Line, from 1; absent for errors about the whole expression.
    pub line: Option<usize>,
    /// Column, from 0, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// Why an expression does not compile. It is shown as cel-go shows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct CompileError {
    /// The errors by their place.
    pub issues: Vec<Issue>,
    text: String,
}

impl CompileError {
    /// Issues with offsets in characters; none for the whole expression.
    pub(crate) fn new(source: &Source, issues: Vec<(Option<usize>, String)>) -> Self {
        let place = |(offset, message): (Option<usize>, String)| match offset {
            Some(offset) => {
                let (line, column) = source.place(offset);
                Issue { line: Some(line), column, message }
            }
            None => Issue { line: None, column: 0, message },
        };
        let mut issues: Vec<Issue> = issues.into_iter().map(place).collect();
        issues.sort_by_key(|issue| (issue.line, issue.column));
        CompileError { issues, text: source.text.clone() }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().take(SHOWN_MAX).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            self.issue(f, issue)?;
        }
        match self.issues.len().checked_sub(SHOWN_MAX) {
            Some(more) if more > 0 => write!(f, "\n{more} more errors were truncated"),
            _ => Ok(()),
        }
    }
}

impl CompileError {
    fn issue(&self, f: &mut fmt::Formatter<'_>, issue: &Issue) -> fmt::Result {
        let Some(line) = issue.line else {
            return write!(f, "ERROR: <input>:-1:0: {}", issue.message);
        };
        write!(f, "ERROR: <input>:{line}:{}: {}", issue.column + 1, issue.message)?;
        let snippet = self.text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
        if snippet.len() > SNIPPET_BYTES_MAX {
            return Ok(());
        }
        write!(f, "\n | {}\n | ", snippet.replace('\t', " "))?;
        let wide = |character: char| character.len_utf8() > 1;
        for character in snippet.chars().take(issue.column) {
            f.write_str(if wide(character) { "\u{ff0e}" } else { "." })?;
        }
        let marks_wide = snippet.chars().nth(issue.column).is_some_and(wide);
        f.write_str(if marks_wide { "\u{ff3e}" } else { "^" })
    }
}
