//! The rules as a table, for the documentation.

use std::fmt::Write;

use super::rules::RULES;

/// The rules as a Markdown table.
pub fn render_table() -> String {
    let mut table = String::from(
        "|   | Rule | What is there | When | What is done | Phase |\n|---|---|---|---|---|---|\n",
    );
    for (index, rule) in RULES.iter().enumerate() {
        let (name, from, when, then, phase) = (rule.name, rule.from, rule.when, rule.then, rule.phase);
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {} | `{name}` | {from} | {when} | {then} | {phase} |", index + 1);
    }
    table
}
