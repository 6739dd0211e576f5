//! Tidiness is a test: what a reader of the repository relies on without thinking of it.

mod defects;
mod links;
mod modules;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a source file. A longer one usually has two jobs.
const LINES_MAX: usize = 500;

/// The repository's text files by their path in it, `/` between its parts.
type Files = BTreeMap<String, String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Everything but what version control or the compiler keeps.
fn files() -> Files {
    fn walk(folder: &Path, below: &str, files: &mut Files) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            if name == ".git" || path == "target" {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), &path, files);
            } else if let Ok(text) = String::from_utf8(fs::read(entry.path()).unwrap()) {
                files.insert(path, text);
            }
        }
    }
    let mut found = Files::new();
    walk(&root(), "", &mut found);
    found
}

/// What a path ends with: `rs`, `md`, `Makefile`.
fn ending(path: &str) -> &str {
    path.rsplit(['.', '/']).next().unwrap_or(path)
}

/// Fails with all findings at once.
fn check(what: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{what}:\n  {}\n", findings.join("\n  "));
}

#[test]
fn source_files_are_short() {
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    let mut findings = Vec::new();
    for (path, text) in
        files().iter().filter(|(path, _)| matches!(ending(path), "rs" | "go") && !is_test(path))
    {
        let lines = text.lines().count();
        if lines > LINES_MAX {
            findings.push(format!("{path} has {lines} lines, over {LINES_MAX}"));
        }
    }
    check("long files", &findings);
}

#[test]
fn nothing_is_put_off() {
    // In two parts each, so that this file does not hold them.
    let marks: Vec<String> =
        [("TO", "DO"), ("FIX", "ME"), ("XX", "X:"), ("todo", "!("), ("unimplemented", "!(")]
            .map(|(one, two)| format!("{one}{two}"))
            .into();
    let mut findings = Vec::new();
    for (path, text) in files()
        .iter()
        .filter(|(path, _)| matches!(ending(path), "rs" | "go" | "sh" | "toml" | "md" | "Makefile"))
    {
        for (number, line) in (1..).zip(text.lines()) {
            if marks.iter().any(|mark| line.contains(mark)) {
                findings.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    check("put off", &findings);
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    // In two parts each, so that this file does not hold them.
    let places: Vec<String> =
        [("/ho", "me/"), ("/ro", "ot/"), ("/Us", "ers/"), ("/tm", "p/"), ("/wo", "rk/")]
            .map(|(one, two)| format!("{one}{two}"))
            .into();
    // A place starts a path: in the middle of one it is a folder like any other.
    let names = |line: &str, place: &String| {
        line.match_indices(place).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && !"/._-})".contains(c))
        })
    };
    let mut findings = Vec::new();
    for (path, text) in &files() {
        for (number, line) in (1..).zip(text.lines()) {
            if places.iter().any(|place| names(line, place)) {
                findings
                    .push(format!("{path}:{number}: {}", line.trim().chars().take(120).collect::<String>()));
            }
        }
    }
    check("places on one machine", &findings);
}

#[test]
fn every_source_file_belongs_to_a_crate() {
    check("not reached from a crate's root", &modules::orphans(&files()));
}

#[test]
fn every_fixture_is_used() {
    check("used by no source file", &modules::unused_data(&files()));
}

#[test]
fn links_in_documents_lead_somewhere() {
    check("broken links", &links::broken(&files()));
}

#[test]
fn examples_in_documents_are_tests_too() {
    let files = files();
    let sources: Vec<_> = files.iter().filter(|(path, _)| ending(path) == "rs").collect();
    let mut findings = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| ending(path) == "md") {
        for example in links::rust_blocks(text) {
            if !sources.iter().any(|(_, source)| source.contains(&example)) {
                findings.push(format!("{path}: {}…", example.lines().next().unwrap_or_default()));
            }
        }
    }
    check("examples that no source file has word for word", &findings);
}

#[test]
fn the_code_map_is_complete_and_true() {
    let files = files();
    let map = &files["ARCHITECTURE.md"];
    let folders = files.keys().filter_map(|path| {
        let folder = path.strip_suffix("/Cargo.toml").or_else(|| path.strip_suffix("/go.mod"));
        folder.map(str::to_owned)
    });
    let mut findings: Vec<_> = folders
        .filter(|folder| !map.contains(&format!("`{folder}`")))
        .map(|folder| format!("ARCHITECTURE.md does not name `{folder}`"))
        .collect();
    findings.extend(missing("ARCHITECTURE.md", links::quoted_paths(map)));
    check("code map", &findings);
}

#[test]
fn scripts_that_commands_name_are_there() {
    let files = files();
    let commands = files.iter().filter(|(path, _)| matches!(path.as_str(), "Makefile" | ".ci/run"));
    let findings: Vec<_> =
        commands.flat_map(|(path, text)| missing(path, links::named_paths(text))).collect();
    check("missing scripts", &findings);
}

fn missing(document: &str, paths: BTreeSet<String>) -> impl Iterator<Item = String> {
    let gone = paths.into_iter().filter(|path| !root().join(path).exists());
    gone.map(move |path| format!("{document} names {path}, which is not there"))
}

#[test]
fn every_defect_of_others_has_a_test_that_exists() {
    check("docs/defects.md", &defects::findings(&files()));
}
