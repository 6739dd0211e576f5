//! The program, as a person runs it.

use std::process::Stdio;

use echo_server::kinds;
use mainstay_testkit::process::dies_with_us;
use mainstay_testkit::{Cluster, eventually};
use serde_json::Value;
use tokio::process::Command;

fn program() -> Command {
    let mut program = Command::from(dies_with_us(env!("CARGO_BIN_EXE_echo-server")));
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    program
}

#[tokio::test]
async fn the_least_permissions_are_printed_without_a_cluster() {
    let output = program().arg("--print-rbac").env("KUBECONFIG", "none").output().await.unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rules = printed["items"][0]["rules"].as_array().unwrap();
    let allowed = rules.iter().map(|rule| format!("{} {}", rule["resources"], rule["verbs"]));
    assert_eq!(
        allowed.collect::<Vec<_>>(),
        [
            r#"["pods","services"] ["create","delete","get","list","patch","watch"]"#,
            r#"["events"] ["create","patch"]"#,
            r#"["echoservers"] ["get","list","watch"]"#,
            r#"["echoservers/status"] ["patch"]"#,
            r#"["echoservers/finalizers"] ["update"]"#,
        ]
    );
}

#[cfg(unix)]
#[tokio::test]
async fn it_works_until_it_is_told_to_end() {
    let cluster = Cluster::embedded().await.unwrap();
    let running = program().env("KUBECONFIG", cluster.kubeconfig().await).spawn().unwrap();
    let definition = program().arg("--print-crd").output().await.unwrap().stdout;
    cluster.define(serde_saphyr::from_slice(&definition).unwrap()).await;
    cluster.create(serde_saphyr::from_str(include_str!("../hello.yaml")).unwrap()).await;
    eventually("a phase", async || {
        let hello = cluster.find(&kinds::echo_server(), "hello").await?;
        hello["status"]["phase"].as_str().map(str::to_owned)
    })
    .await;
    let id = running.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    let output = running.wait_with_output().await.unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{log}");
    assert!(log.ends_with("INFO stopping\n"), "{log}");
}
