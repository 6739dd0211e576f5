//! Stock kubectl, driven by scripts of commands with their expected output, on the embedded and the real cluster.
//!
//!     script file ─▶ run on a cluster ─▶ normalise ─▶ compare with what the script says
//!
//! What a script says is what the real cluster answered: `UPDATE_EXPECT=1` writes it down from there, and both clusters
//! are held to it. Where the embedded one may differ, the script names a difference that DIFFERENCES.md lists.
//! `MAINSTAY_SCRIPT=part-of-a-name` runs only some scripts.

mod normalise;
mod run;
mod script;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use mainstay_testkit::{Cluster, ClusterKind, binaries, cluster::report_missing, clusters};

use crate::kubectl::script::Script;

/// Scripts under way at one time: kubectl itself is what takes the time.
const CONCURRENCY: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_works_as_the_scripts_say() {
    let kubectl = match binaries::find_program("kubectl") {
        Ok(path) => path,
        Err(missing) => return report_missing("the scripts of kubectl", &missing),
    };
    let only = env::var("MAINSTAY_SCRIPT").unwrap_or_default();
    let scripts: Vec<_> = load_all().into_iter().filter(|script| script.name.contains(&only)).collect();
    assert!(!scripts.is_empty(), "no script has {only:?} in its name");
    let clusters = clusters().await;
    let update = env::var("UPDATE_EXPECT").is_ok_and(|value| value == "1");
    let outcomes: Vec<Vec<String>> = futures::stream::iter(scripts)
        .map(async |script| check_script(script, &clusters, &kubectl, update).await)
        .buffered(CONCURRENCY)
        .collect()
        .await;
    let failures: Vec<_> = outcomes.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{} failures\n\n{}", failures.len(), failures.join("\n"));
}

/// What is wrong on any of the clusters. When updating, what the real one says is written down first.
async fn check_script(mut script: Script, clusters: &[Cluster], kubectl: &Path, update: bool) -> Vec<String> {
    let mut transcripts = Vec::new();
    for cluster in clusters {
        let cluster = cluster.again().await;
        transcripts.push((cluster.kind(), run::run_script(&script, &cluster, kubectl).await));
    }
    if update {
        // The real one first: it decides whether there is a difference to write down at all.
        transcripts.sort_by_key(|(kind, _)| *kind != ClusterKind::Real);
        for (kind, outputs) in &transcripts {
            script.record(*kind, outputs);
        }
        fs::write(folder().join(&script.name), script.render()).expect("a writable script");
    }
    transcripts.iter().flat_map(|(kind, outputs)| script.differences(*kind, outputs)).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl/scripts")
}

fn load_all() -> Vec<Script> {
    let entries = fs::read_dir(folder()).expect("a readable folder");
    let mut scripts: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("a readable folder").path();
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            Script::parse(name, &fs::read_to_string(&path).expect("a readable script"))
        })
        .collect();
    scripts.sort_by(|a, b| a.name.cmp(&b.name));
    scripts
}

#[test]
fn differences_that_scripts_accept_are_listed() {
    let ledger = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../DIFFERENCES.md");
    let ledger = fs::read_to_string(ledger).expect("DIFFERENCES.md");
    let headings = ledger.lines().filter_map(|line| line.strip_prefix("## D")?.split_once(':'));
    let listed: BTreeSet<_> = headings.map(|(number, _)| format!("D{number}")).collect();
    for script in load_all() {
        for id in script.accepted() {
            assert!(listed.contains(id), "{} accepts {id}, which DIFFERENCES.md does not list", script.name);
        }
    }
}

#[test]
fn scripts_are_written_as_they_are_rendered() {
    for script in load_all() {
        let text = fs::read_to_string(folder().join(&script.name)).expect("a readable script");
        assert_eq!(text, script.render(), "{}", script.name);
    }
}
