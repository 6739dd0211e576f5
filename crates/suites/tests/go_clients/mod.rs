//! What operators in Go do, done with client-go on both clusters: typed clients of every group in protobuf and JSON, dynamic and
//! metadata clients, informers, leader election, events.
//!
//! The program is `hack/kubernetes/clients`, which prints a line for each step. `expected.txt` has what it prints on the real
//! cluster, written by `UPDATE_EXPECT=1`, and both clusters are held to it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_testkit::cluster::{report_missing, unique_name};
use mainstay_testkit::process::dies_with_us;
use mainstay_testkit::{Cluster, for_each_cluster};
use tokio::process::Command;

use crate::go_program;

/// A run takes seconds. Each of its steps has its own bound.
const PATIENCE: Duration = Duration::from_mins(5);

#[tokio::test(flavor = "multi_thread")]
async fn operators_in_go_find_what_they_know() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("clients");
    if let Err(why) = go_program::build("clients", &program).await {
        return report_missing("clients written in Go", &why);
    }
    let expected = expect_test::expect_file!["./expected.txt"];
    for_each_cluster(async |cluster| {
        let output = run(&program, &cluster).await;
        expected.assert_eq(&output);
    })
    .await;
}

/// What the program prints on a cluster; when it fails, what it says of that too.
async fn run(program: &Path, cluster: &Cluster) -> String {
    let kubeconfig: PathBuf = cluster.kubeconfig().await;
    let unique = unique_name("go");
    let mut command = Command::from(dies_with_us(program));
    command.args([cluster.namespace(), &unique]).env("KUBECONFIG", kubeconfig).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("after {PATIENCE:?} still running")).unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let _ = writeln!(text, "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    text
}
