//! The commands as a person types them: scripts with their expected output, on the embedded and the real cluster.
//!
//!     script file ─▶ run on a cluster ─▶ normalise ─▶ compare with what the script says
//!
//! Scripts are in a folder for the clusters that they run on. `UPDATE_EXPECT=1` writes down what is answered, the real
//! cluster's answer last where there is one; `MAINSTAY_SCRIPT=part-of-a-name` runs only some.

mod run;
mod script;

use mainstay_testkit::{Cluster, ClusterKind, binaries, cluster::report_missing, clusters};
use script::Script;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands/scripts").join(name)
}

/// The folders whose scripts run on a cluster.
fn folders(kind: ClusterKind) -> [&'static str; 2] {
    match kind {
        ClusterKind::Embedded => ["both", "embedded"],
        ClusterKind::Real => ["both", "real"],
    }
}

fn scripts(name: &str) -> Vec<(PathBuf, Script)> {
    let only = std::env::var("MAINSTAY_SCRIPT").unwrap_or_default();
    let entries = std::fs::read_dir(folder(name)).expect("a readable folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    let wanted = paths.into_iter().filter(|path| path.to_string_lossy().contains(&only));
    wanted.map(|path| (path.clone(), Script::parse(&std::fs::read_to_string(&path).unwrap()))).collect()
}

/// What is wrong, after having been written down if that is wanted.
async fn check(path: &Path, mut script: Script, cluster: &Cluster, kubectl: &Path) -> Vec<String> {
    let outputs = run::run_script(&script, cluster, kubectl).await;
    if std::env::var("UPDATE_EXPECT").is_ok_and(|value| value == "1") {
        script.record(&outputs);
        std::fs::write(path, script.render()).expect("a writable script");
        return Vec::new();
    }
    let differences = script.differences(&outputs);
    differences
        .iter()
        .map(|one| format!("{} on the {} cluster: {one}", path.display(), cluster.kind()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_answer_as_the_scripts_say() {
    let kubectl = match binaries::find_program("kubectl") {
        Ok(path) => path,
        Err(missing) => return report_missing("the scripts of commands", &missing),
    };
    let mut failures = Vec::new();
    for cluster in clusters().await {
        for name in folders(cluster.kind()) {
            for (path, script) in scripts(name) {
                // The embedded one is its own for each script: kinds of another are in nobody's way.
                let cluster = match cluster.kind() {
                    ClusterKind::Embedded => Cluster::embedded().await.expect("an embedded cluster"),
                    ClusterKind::Real => cluster.again().await,
                };
                failures.extend(check(&path, script, &cluster, &kubectl).await);
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn scripts_are_written_as_they_are_rendered() {
    for (path, script) in ["both", "embedded", "real"].into_iter().flat_map(scripts) {
        assert_eq!(std::fs::read_to_string(&path).unwrap(), script.render(), "{}", path.display());
    }
}
