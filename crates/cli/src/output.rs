//! Everything that commands print.
//!
//! ```text
//! what a command found ─▶ Table ─▶ text     ─┐
//!                     └─▶ json, yaml, names ─┴─▶ print (stdout)
//! narration, hints ─────────────────────────────▶ say (stderr)
//! work that takes time ─▶ patiently ─▶ Line ────▶ stderr, after a second
//! ```
//!
//! Data is on stdout and is the same for a terminal and a pipe but for its colours, which are there only on a terminal,
//! never with `NO_COLOR`, and never say anything that words do not.

mod age;
mod document;
mod paint;
mod progress;
mod table;
mod told;

use crate::failure::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::io::Write as _;

pub(crate) use age::age;
pub(crate) use document::{Manifest, json, manifests, name, yaml};
pub(crate) use paint::{Paint, Tone};
pub(crate) use progress::{Line, patiently};
pub(crate) use table::{Cell, Table};
pub(crate) use told::{conditions, events, happened};

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For a person.
    Table,
    Json,
    Yaml,
    /// Names alone, one a line, as `kubectl -o name` has them.
    Name,
}

impl Format {
    const ALL: [(&'static str, Format); 4] =
        [("table", Format::Table), ("json", Format::Json), ("yaml", Format::Yaml), ("name", Format::Name)];

    /// Of `-o`: one of these.
    pub(crate) fn of(formats: &'static [Format]) -> impl TypedValueParser<Value = Format> {
        let offered = Self::ALL.into_iter().filter(|(_, format)| formats.contains(format));
        PossibleValuesParser::new(offered.map(|(name, _)| name)).map(|chosen| {
            let known = Self::ALL.into_iter().find(|(name, _)| *name == chosen);
            // Nothing else is a possible value.
            known.map_or(Format::Table, |(_, format)| format)
        })
    }
}

/// For what people read.
pub(crate) const REPORTS: &[Format] = &[Format::Table, Format::Json, Format::Yaml];
/// For what people read, about objects.
pub(crate) const OBJECTS: &[Format] = &[Format::Table, Format::Json, Format::Yaml, Format::Name];
/// For what other programs take.
pub(crate) const MANIFESTS: &[Format] = &[Format::Yaml, Format::Json, Format::Name];

/// Puts data on stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // Whoever reads has enough, as `head` has.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(|error| Failure::new(error).context("cannot print")),
    }
}

/// Tells the person who watches.
pub(crate) fn say(text: &str) {
    // Nobody is left to tell when stderr is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// So many of something: `1 write`, `3 writes`.
pub(crate) fn count(number: usize, of: &str) -> String {
    format!("{number} {of}{}", if number == 1 { "" } else { "s" })
}

/// Words in a row: `a, b and c`.
pub(crate) fn listed(words: &[&str], last: &str) -> String {
    match words {
        [before @ .., end] if !before.is_empty() => format!("{} {last} {end}", before.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_listed_as_people_do() {
        let said = [&["a"][..], &["a", "b"], &["a", "b", "c"]].map(|words| listed(words, "or"));
        assert_eq!(said, ["a", "a or b", "a, b or c"]);
    }
}
