//! The table of defects: each row names tests, and each of them is there.

use super::Files;
use regex::Regex;

const TABLE: &str = "docs/defects.md";

/// What is wrong with the table.
pub(super) fn findings(files: &Files) -> Vec<String> {
    let Some(table) = files.get(TABLE) else { return vec![format!("{TABLE} is missing")] };
    let name = Regex::new(r"`((?:operator|mainstay)(?:::[a-z0-9_]+)+)`").unwrap();
    let mut findings = Vec::new();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    for row in rows.filter(|row| !row.contains("| shown ")) {
        let named: Vec<_> = name.captures_iter(row).map(|found| found[1].to_owned()).collect();
        if named.is_empty() {
            findings.push(format!("no test: {row}"));
        }
        findings.extend(named.into_iter().filter(|test| !exists(files, test)));
    }
    findings
}

/// Whether there is such a test: a function with an attribute that makes it one.
fn exists(files: &Files, test: &str) -> bool {
    let folder = match test.split("::").next() {
        Some("operator") => "crates/suites/tests/operator",
        _ => "crates/mainstay/src",
    };
    let Some((module, function)) = test.split_once("::").and_then(|(_, rest)| rest.rsplit_once("::")) else {
        return false;
    };
    let file = format!("{folder}/{}", module.replace("::", "/"));
    let text = files.get(&format!("{file}.rs")).or_else(|| files.get(&format!("{file}/mod.rs")));
    let attribute = format!(r"#\[(tokio::)?test(\([^\]]*\))?\]\s+(async )?fn {function}\(");
    text.is_some_and(|text| Regex::new(&attribute).unwrap().is_match(text))
}
