//! Which files belong to a crate, and which data its sources use.

use super::{Files, ending};
use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// `mod name;`, with the path it may be given.
static DECLARATION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)^\s*(?:#\[path = "([^"]+)"\]\s*)?(?:pub(?:\([^)]*\))? )?mod (\w+);"#).unwrap()
});

/// The folders of the workspace's crates.
fn crates(files: &Files) -> impl Iterator<Item = &str> {
    files.keys().filter_map(|path| path.strip_suffix("/Cargo.toml"))
}

/// Source files that no crate's root leads to.
pub(super) fn orphans(files: &Files) -> Vec<String> {
    let mut reached = BTreeSet::new();
    for folder in crates(files) {
        files
            .keys()
            .filter(|path| is_root(folder, path))
            .for_each(|path| reach(files, path, true, &mut reached));
    }
    let sources = files.keys().filter(|path| ending(path) == "rs");
    sources.filter(|path| !reached.contains(*path)).cloned().collect()
}

/// Whether Cargo compiles a file without being told.
fn is_root(folder: &str, path: &str) -> bool {
    let Some(inside) = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) else {
        return false;
    };
    let parts: Vec<&str> = inside.split('/').collect();
    match parts.as_slice() {
        ["src", "bin", file] | ["tests" | "examples" | "benches", file] => ending(file) == "rs",
        ["src", file] => matches!(*file, "lib.rs" | "main.rs"),
        ["src", "bin", _, file] | ["tests" | "examples" | "benches", _, file] => *file == "main.rs",
        _ => inside == "build.rs",
    }
}

/// Adds a file and all that it declares. Modules of a root or a `mod.rs` are beside it, those of `a.rs` in `a/`.
fn reach(files: &Files, path: &str, is_root: bool, reached: &mut BTreeSet<String>) {
    if !reached.insert(path.to_owned()) {
        return;
    }
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let beside = is_root || file == "mod.rs";
    let home = if beside { folder.to_owned() } else { path.trim_end_matches(".rs").to_owned() };
    for found in DECLARATION.captures_iter(&files[path]) {
        let candidates = match found.get(1) {
            Some(named) => vec![format!("{folder}/{}", named.as_str())],
            None => vec![format!("{home}/{}.rs", &found[2]), format!("{home}/{}/mod.rs", &found[2])],
        };
        for candidate in candidates.iter().filter(|candidate| files.contains_key(*candidate)) {
            reach(files, candidate, false, reached);
        }
    }
}

/// Data of a crate that none of its sources names: by its file name, by a folder that is read whole, or by
/// its name without ending beside its folder, as macros do.
pub(super) fn unused_data(files: &Files) -> Vec<String> {
    let mut unused = Vec::new();
    for folder in crates(files) {
        let below = format!("{folder}/");
        let own = || files.iter().filter(|(path, _)| path.starts_with(&below));
        let sources: Vec<&String> =
            own().filter(|(path, _)| ending(path) == "rs").map(|(_, text)| text).collect();
        for (path, _) in own().filter(|(path, _)| !matches!(ending(path), "rs" | "toml" | "md")) {
            let inside = &path[below.len()..];
            if !sources.iter().any(|source| uses(source, inside)) {
                unused.push(path.clone());
            }
        }
    }
    unused
}

fn uses(source: &str, path: &str) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.split('.').next().unwrap_or(file);
    let nearest = folder.rsplit('/').next().unwrap_or(folder);
    let mut ancestors = path.match_indices('/').map(|(at, _)| &path[..at]);
    source.contains(&format!("{file}\""))
        || (source.contains(&format!("\"{nearest}/")) && has_word(source, stem))
        || ancestors.any(|ancestor| ancestor.contains('/') && source.contains(&format!("{ancestor}\"")))
}

fn has_word(text: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word)
        .any(|(at, _)| !part(text[..at].chars().next_back()) && !part(text[at + word.len()..].chars().next()))
}

#[test]
fn a_file_is_used_by_name_by_folder_or_by_macro() {
    assert!(uses(r#"include_str!("golden/values.json")"#, "src/golden/values.json"));
    assert!(uses(r#"load("crates/suites/tests/traces")"#, "tests/traces/apply/a.yaml"));
    assert!(uses(r#"concat!("fixtures/", name, ".json") … tests![pods, nodes]"#, "src/fixtures/nodes.json"));
    assert!(!uses(r#"read("tests")"#, "tests/traces/a.yaml"));
    assert!(!uses(r#"include_str!("golden/other.json")"#, "src/golden/values.json"));
}
