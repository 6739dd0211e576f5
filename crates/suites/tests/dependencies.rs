//! Every dependency has a licence that deny.toml allows, and comes in one version, or is listed there with a reason. Whatever
//! is built, dependencies have the same features.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The packages that this platform's builds use: their names, versions and licences.
fn packages() -> Vec<(String, String, String)> {
    let version = output("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let arguments = ["metadata", "--format-version=1", "--locked", "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&output(env!("CARGO"), &arguments)).unwrap();
    let used: BTreeSet<_> =
        metadata["resolve"]["nodes"].as_array().unwrap().iter().map(|node| &node["id"]).map(text).collect();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .filter(|package| used.contains(&text(&package["id"])))
        .map(|package| (text(&package["name"]), text(&package["version"]), text(&package["license"])))
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

/// The first quoted text of every line of one list in deny.toml.
fn listed(section: &str, key: &str) -> BTreeSet<String> {
    let file = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let (_, section) = file.split_once(&format!("[{section}]")).unwrap();
    let (_, list) = section.split_once(&format!("{key} = [")).unwrap();
    let list = list.split("\n]").next().unwrap_or_default();
    list.lines().filter_map(|line| line.split('"').nth(1)).map(ToString::to_string).collect()
}

/// Whether an SPDX expression can be fulfilled with allowed licences. A slash is an old way to write OR.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.replace('/', " OR ");
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let (fulfilled, rest) = any_of(&words, allowed);
    fulfilled && rest.is_empty()
}

fn any_of<'w, 's>(words: &'w [&'s str], allowed: &BTreeSet<String>) -> (bool, &'w [&'s str]) {
    let (mut fulfilled, mut rest) = all_of(words, allowed);
    while let ["OR", after @ ..] = rest {
        let (other, after) = all_of(after, allowed);
        (fulfilled, rest) = (fulfilled | other, after);
    }
    (fulfilled, rest)
}

fn all_of<'w, 's>(words: &'w [&'s str], allowed: &BTreeSet<String>) -> (bool, &'w [&'s str]) {
    let (mut fulfilled, mut rest) = one(words, allowed);
    while let ["AND", after @ ..] = rest {
        let (other, after) = one(after, allowed);
        (fulfilled, rest) = (fulfilled & other, after);
    }
    (fulfilled, rest)
}

fn one<'w, 's>(words: &'w [&'s str], allowed: &BTreeSet<String>) -> (bool, &'w [&'s str]) {
    match words {
        ["(", inner @ ..] => match any_of(inner, allowed) {
            (fulfilled, [")", rest @ ..]) => (fulfilled, rest),
            _ => (false, &[]),
        },
        [licence, "WITH", exception, rest @ ..] => {
            (allowed.contains(&format!("{licence} WITH {exception}")), rest)
        }
        [licence, rest @ ..] => (allowed.contains(*licence), rest),
        [] => (false, &[]),
    }
}

#[test]
fn every_licence_is_allowed() {
    let allowed = listed("licenses", "allow");
    let refused: Vec<_> =
        packages().into_iter().filter(|(_, _, licence)| !is_allowed(licence, &allowed)).collect();
    assert!(refused.is_empty(), "not allowed by deny.toml: {refused:#?}");
}

#[test]
fn every_dependency_comes_in_one_version() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in packages() {
        versions.entry(name).or_default().insert(version);
    }
    let several: BTreeMap<_, _> = versions.into_iter().filter(|(_, versions)| versions.len() > 1).collect();
    let listed = listed("bans", "skip");
    let unlisted: Vec<_> = several.iter().filter(|(name, _)| !listed.contains(*name)).collect();
    assert!(unlisted.is_empty(), "in several versions, and not listed in deny.toml: {unlisted:?}");
    let stale: Vec<_> = listed.iter().filter(|name| !several.contains_key(*name)).collect();
    assert!(stale.is_empty(), "listed in deny.toml, but in one version only: {stale:?}");
}

/// Each dependency of a selection of packages with the features it has there. One that is also used by macros can have two sets.
fn features(selection: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let arguments = ["tree", "--locked", "--prefix=none", "--format={p}|{f}"];
    let tree = output(env!("CARGO"), &[&arguments, selection].concat());
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // Our own packages are told with their folder.
    for (package, features) in
        tree.lines().filter(|line| !line.contains("(/")).filter_map(|it| it.split_once('|'))
    {
        let package = package.trim_end_matches(" (proc-macro)");
        all.entry(package.to_owned()).or_default().insert(features.trim_end_matches(" (*)").to_owned());
    }
    all
}

#[test]
fn every_selection_of_packages_has_the_same_features() {
    /// Those with the fewest dependencies, and those with the most.
    const PACKAGES: [&str; 5] =
        ["feed-plugin", "mainstay-otlp", "mainstay-apiserver", "mainstay-streams", "mainstay-cli"];
    let whole = features(&["--workspace"]);
    let mut differences = BTreeSet::new();
    let mut compare = |selection: &[&str]| {
        for (package, sets) in features(selection) {
            for set in sets.difference(&whole[&package]) {
                differences.insert(format!("{package} has only {set:?} in {}", selection.join(" ")));
            }
        }
    };
    compare(&["--workspace", "--edges=no-dev"]);
    compare(&["--package=mainstay-cli", "--edges=no-dev"]);
    compare(&["--package=xtask", "--edges=no-dev"]);
    for package in PACKAGES {
        compare(&["--package", package]);
    }
    assert!(
        differences.is_empty(),
        "these would be compiled more than once; add their features to crates/workspace-hack/Cargo.toml: {differences:#?}"
    );
}

#[test]
fn licence_expressions_are_understood() {
    let allowed = BTreeSet::from(["MIT".to_string(), "ISC".to_string(), "A WITH e".to_string()]);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND ISC", true),
        ("A WITH e", true),
        ("A", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
