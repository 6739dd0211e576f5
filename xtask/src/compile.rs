//! Has cargo compile the tests, and reads which programs they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::suite::Target;

/// A program of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) package: String,
    pub(crate) target: Target,
    pub(crate) profile: Profile,
    pub(crate) path: PathBuf,
    /// Where cargo would run it: the folder of its package.
    pub(crate) folder: PathBuf,
}

/// The packages of this repository.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
}

/// How a program is compiled. The workspace's Cargo.toml has the reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Nothing of ours is optimised: for unit tests.
    Test,
    /// What simulations spend their time in is optimised: for whatever uses the test kit.
    Dev,
}

impl Profile {
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::Test => "--profile=test",
            Self::Dev => "--profile=dev",
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<PackageTarget>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PackageTarget {
    pub(crate) kind: Vec<String>,
    /// Whether `cargo test` runs it.
    pub(crate) test: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
}

/// The package that integration tests use which need [`Profile::Dev`].
const TEST_KIT: &str = "mainstay-testkit";

impl Package {
    /// Whether it has tests of one of these kinds.
    fn has(&self, kinds: &[&str]) -> bool {
        let is = |target: &PackageTarget| target.kind.iter().any(|kind| kinds.contains(&kind.as_str()));
        self.targets.iter().any(|target| target.test && is(target))
    }

    fn integration_profile(&self) -> Profile {
        let uses = |dependency: &Dependency| dependency.name == TEST_KIT;
        let simulates = self.name == TEST_KIT || self.dependencies.iter().any(uses);
        if simulates { Profile::Dev } else { Profile::Test }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }
}

/// The cargo that runs us, as a person would call it.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for name in own_variables() {
        cargo.env_remove(name);
    }
    cargo
}

/// What cargo has set in our environment about this package. Build scripts look at it: that of `ring` would run again, and
/// everything that depends on `ring` would be compiled again.
pub(crate) fn own_variables() -> impl Iterator<Item = String> {
    let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(move |name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
}

impl Workspace {
    pub(crate) fn read() -> Result<Self> {
        let output = cargo().args(["metadata", "--format-version=1", "--no-deps"]).output()?;
        ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).context("reading what cargo metadata says")
    }

    /// Compiles the tests of some packages, or of all, and shows cargo's progress meanwhile.
    pub(crate) fn compile(&self, chosen: Option<&[String]>) -> Result<Vec<Program>> {
        let is_chosen = |package: &&Package| chosen.is_none_or(|chosen| chosen.contains(&package.name));
        let packages: Vec<&Package> = self.packages.iter().filter(is_chosen).collect();
        let with = |kinds: &[&str]| packages.iter().copied().filter(|it| it.has(kinds)).collect::<Vec<_>>();
        let (libs, bins) = (with(&["lib", "proc-macro"]), with(&["bin"]));
        let (dev, test) =
            with(&["test"]).into_iter().partition::<Vec<_>, _>(|it| it.integration_profile() == Profile::Dev);
        let mut programs = Vec::new();
        for (packages, targets, profile) in [
            (libs, ["--lib"].as_slice(), Profile::Test),
            (bins, &["--bins"], Profile::Test),
            (test, &["--test", "*"], Profile::Test),
            (dev, &["--test", "*"], Profile::Dev),
        ] {
            programs.extend(self.compile_targets(&packages, targets, profile)?);
        }
        Ok(programs)
    }

    fn compile_targets(
        &self,
        packages: &[&Package],
        targets: &[&str],
        profile: Profile,
    ) -> Result<Vec<Program>> {
        if packages.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = packages.iter().map(|package| package.name.clone()).collect();
        let mut cargo = cargo();
        cargo.args(["test", "--no-run", "--message-format=json-render-diagnostics", profile.argument()]);
        cargo.args(selection(Some(&names))).args(targets).stderr(Stdio::inherit());
        let output = cargo.output()?;
        ensure!(output.status.success(), "the tests do not compile");
        let folders: BTreeMap<&Path, &Package> =
            self.packages.iter().map(|package| (package.manifest_path.as_path(), package)).collect();
        Ok(programs(&String::from_utf8_lossy(&output.stdout), profile, &folders))
    }
}

/// The arguments by which cargo takes some packages, or all.
pub(crate) fn selection(packages: Option<&[String]>) -> Vec<String> {
    match packages {
        None => vec!["--workspace".into()],
        Some(packages) => packages.iter().map(|name| format!("--package={name}")).collect(),
    }
}

#[derive(Deserialize)]
struct Artifact {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<ArtifactTarget>,
    profile: Option<ArtifactProfile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct ArtifactProfile {
    test: bool,
}

fn programs(messages: &str, profile: Profile, packages: &BTreeMap<&Path, &Package>) -> Vec<Program> {
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
    let artifacts = artifacts.filter(|artifact| {
        artifact.reason == "compiler-artifact"
            && artifact.profile.as_ref().is_some_and(|profile| profile.test)
    });
    artifacts
        .filter_map(|artifact| {
            let package = packages.get(artifact.manifest_path?.as_path())?;
            let target = artifact.target?;
            Some(Program {
                package: package.name.clone(),
                target: match target.kind.first()?.as_str() {
                    "lib" | "proc-macro" => Target::Lib,
                    "test" => Target::Test(target.name),
                    _ => Target::Bin(target.name),
                },
                profile,
                path: artifact.executable?,
                folder: package.folder().to_owned(),
            })
        })
        .collect()
}
