//! What documents point to.

use super::{Files, ending};
use regex::Regex;
use std::collections::BTreeSet;

/// Relative links in Markdown files whose file or heading is not there.
pub(super) fn broken(files: &Files) -> Vec<String> {
    let link = Regex::new(r"\[[^\]\n]*\]\(([^)\s]+)\)").unwrap();
    let mut broken = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| ending(path) == "md") {
        for found in link.captures_iter(&without_code(text)) {
            let target = &found[1];
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { resolve(path, file) };
            let folder = format!("{file}/");
            let there = match files.get(&file) {
                Some(text) => heading.is_empty() || headings(text).contains(heading),
                None => files.keys().any(|other| other.starts_with(&folder)),
            };
            if !there {
                broken.push(format!("{path}: {target}"));
            }
        }
    }
    broken
}

/// Texts between backticks that are paths from the repository's root.
pub(super) fn quoted_paths(text: &str) -> BTreeSet<String> {
    let quoted = Regex::new(r"`((?:crates|bench|examples|hack|\.ci)/[A-Za-z0-9_./-]*)`").unwrap();
    quoted.captures_iter(text).map(|found| found[1].trim_end_matches('/').to_owned()).collect()
}

/// Words that are paths from the repository's root.
pub(super) fn named_paths(text: &str) -> BTreeSet<String> {
    let path = Regex::new(r"(?m)(?:^|[\s@])((?:crates|bench|examples|hack)/[A-Za-z0-9_./-]+)").unwrap();
    path.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

/// The Rust code that a document shows.
pub(super) fn rust_blocks(text: &str) -> Vec<String> {
    let blocks = text.split("```rust\n").skip(1);
    blocks.filter_map(|rest| rest.split_once("```")).map(|(block, _)| block.trim().to_owned()).collect()
}

fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn without_code(text: &str) -> String {
    let mut inside = false;
    let outside = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    outside.collect::<Vec<_>>().join("\n")
}

/// The anchors that GitHub gives a document's headings.
fn headings(text: &str) -> BTreeSet<String> {
    let lines = without_code(text);
    let titles =
        lines.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    titles
        .map(|title| {
            let kept = title.to_lowercase().replace(' ', "-");
            kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
        })
        .collect()
}

#[test]
fn links_are_followed_from_the_file_that_has_them() {
    let files = Files::from([
        ("a/b.md".into(), "[x](../c.md#two-words) [y](d.md) [z](https://there) [w](#gone)\n".into()),
        ("c.md".into(), "# Two words\n".into()),
    ]);
    assert_eq!(broken(&files), ["a/b.md: d.md", "a/b.md: #gone"]);
}
