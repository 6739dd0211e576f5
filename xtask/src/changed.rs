//! Which packages a change concerns: those whose files it touches, and all that depend on these.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::compile::{Package, Workspace};

/// The package whose tests look at documents and at the repository as a whole.
const TIDY: &str = "mainstay-suites";

/// The packages that changed since `base`, with their dependents; none if that is all of them.
pub(crate) fn packages(workspace: &Workspace, base: Option<&str>) -> Result<Option<Vec<String>>> {
    let base = match base {
        Some(base) => base.to_owned(),
        None => {
            git(&["merge-base", "HEAD", "@{upstream}"]).map_or("HEAD".into(), |base| base.trim().to_owned())
        }
    };
    let mut files = git(&["diff", "--name-only", &base])?;
    files += &git(&["ls-files", "--others", "--exclude-standard"])?;
    let files: Vec<PathBuf> = files.lines().map(|line| workspace.root.join(line)).collect();
    let chosen = concerned(workspace, &files);
    if let Some(chosen) = &chosen {
        eprintln!(
            "changed since {base}: {}",
            if chosen.is_empty() { "nothing".into() } else { chosen.join(", ") }
        );
    } else {
        eprintln!("changed since {base}: what all packages share");
    }
    Ok(chosen)
}

fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).output()?;
    ensure!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn concerned(workspace: &Workspace, files: &[PathBuf]) -> Option<Vec<String>> {
    let mut chosen = BTreeSet::new();
    for file in files {
        if file.extension().is_some_and(|ending| ending == "md") {
            chosen.insert(TIDY.to_owned());
        } else if let Some(package) = owner(&workspace.packages, file) {
            chosen.insert(package.name.clone());
        } else if is_shared(file) {
            return None;
        } else {
            chosen.insert(TIDY.to_owned());
        }
    }
    loop {
        let depends = |package: &&Package| {
            let mut names = package.dependencies.iter().map(|dependency| &dependency.name);
            !chosen.contains(&package.name) && names.any(|name| chosen.contains(name))
        };
        let more: Vec<_> = workspace.packages.iter().filter(depends).map(|it| it.name.clone()).collect();
        if more.is_empty() {
            return Some(chosen.into_iter().collect());
        }
        chosen.extend(more);
    }
}

/// The package in whose folder a file is.
fn owner<'a>(packages: &'a [Package], file: &Path) -> Option<&'a Package> {
    let inside = packages.iter().filter(|package| file.starts_with(package.folder()));
    inside.max_by_key(|package| package.folder().components().count())
}

/// Whether a file outside of all packages decides how all of them are built.
fn is_shared(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str());
    matches!(name, Some("Cargo.toml" | "Cargo.lock" | "rust-toolchain.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::Dependency;

    fn workspace() -> Workspace {
        let package = |name: &str, dependencies: &[&str]| Package {
            name: name.into(),
            manifest_path: Path::new("/r/crates").join(name).join("Cargo.toml"),
            dependencies: dependencies.iter().map(|name| Dependency { name: (*name).into() }).collect(),
            targets: Vec::new(),
        };
        Workspace {
            packages: vec![
                package("base", &["serde"]),
                package("middle", &["base"]),
                package("top", &["middle"]),
                package(TIDY, &[]),
            ],
            target_directory: "/r/target".into(),
            root: "/r".into(),
        }
    }

    fn of(files: &[&str]) -> Option<Vec<String>> {
        let files: Vec<_> = files.iter().map(|file| Path::new("/r").join(file)).collect();
        concerned(&workspace(), &files)
    }

    #[test]
    fn dependents_are_concerned_too() {
        assert_eq!(of(&["crates/middle/src/lib.rs"]).unwrap(), ["middle", "top"]);
        assert_eq!(of(&["crates/base/src/lib.rs"]).unwrap(), ["base", "middle", "top"]);
    }

    #[test]
    fn documents_concern_the_tidy_tests_only() {
        assert_eq!(of(&["README.md", "crates/base/README.md"]).unwrap(), [TIDY]);
    }

    #[test]
    fn what_all_share_concerns_all() {
        assert_eq!(of(&["Cargo.lock"]), None);
        assert_eq!(of(&[]).unwrap(), [""; 0]);
    }
}
