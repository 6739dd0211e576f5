//! `mainstay simulate` as a person runs it.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::process::Command;

const SYSTEMS: [&str; 4] = ["streams", "networks", "echo-server", "webapp"];

/// What a command came to.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs `mainstay simulate`, with nothing of the caller's in its environment.
fn simulate(arguments: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    let output = command.arg("simulate").args(arguments).env_clear().output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Without the line that tells how long it took.
fn without_speed(stderr: &str) -> String {
    stderr.split_inclusive('\n').filter(|line| !line.ends_with(" a second\n")).collect()
}

fn check_refused(arguments: &[&str], expected: &Expect) {
    let ended = simulate(arguments);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    expected.assert_eq(&ended.stderr);
}

fn check_fine(arguments: &[&str], stdout: &Expect, stderr: &Expect) {
    let ended = simulate(arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    stdout.assert_eq(&ended.stdout);
    stderr.assert_eq(&without_speed(&ended.stderr));
}

#[test]
fn without_a_system_all_are_listed() {
    check_fine(
        &[],
        &expect![[r#"
            streams       kinds registered at run time: a supervised Job for every object of a kind that a StreamClass names
            networks      networks of peers: assembled, connected as declared, kept so, put under load and judged
            echo-server   an operator in plain JSON: a Pod and a Service for every EchoServer
            webapp        an operator with Rust types: a Deployment, a Service and a ConfigMap for every WebApp
        "#]],
        &expect![[r#"
        next: mainstay simulate SYSTEM
    "#]],
    );
}

#[test]
fn all_are_listed_for_programs_too() {
    let listed: Value = serde_json::from_str(&simulate(&["-o", "json"]).stdout).unwrap();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|system| &system["name"]).collect();
    assert_eq!(names, SYSTEMS);
    assert!(simulate(&["-o", "yaml"]).stdout.starts_with("- name: streams\n"));
}

#[test]
fn an_unknown_system_is_refused_with_those_that_there_are() {
    check_refused(
        &["webap"],
        &expect![[r#"
            error: cannot simulate webap: no system has this name
              there are streams, networks, echo-server and webapp
              next: mainstay simulate lists the systems
        "#]],
    );
}

#[test]
fn a_system_that_is_to_come_is_refused_by_name() {
    check_refused(
        &["resources", "--seeds", "1000"],
        &expect![[r#"
            error: cannot simulate resources: it is not there yet
              there are streams, networks, echo-server and webapp
              next: mainstay simulate lists the systems
        "#]],
    );
    for name in ["resources", "fleet"] {
        let ended = simulate(&[name]);
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("it is not there yet"), "{ended:?}");
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    for arguments in [
        &["webapp", "--only", "crashes"][..],
        &["webapp", "--replay", "crash"],
        &["webapp", "--replay", "crash after write 1", "--seeds", "3"],
        &["webapp", "--seed", "3"],
        &["webapp", "--threads", "0"],
        &["webapp", "--first-seed", "many"],
        &["webapp", "--combined", "--only", "crash-points"],
        &["webapp", "-o", "name"],
    ] {
        let ended = simulate(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_family_of_faults_is_tried_at_every_place() {
    check_fine(
        &["echo-server", "--only", "crash-points", "--seeds", "2"],
        &expect![[r#"
        echo-server: 8 steps, 13 writes, 32 reads, 31 events without faults
                          worlds  pruned  failed
        without faults         1       0       0
        crash points          19       7       0
        combinations           2       0       0
        total                 22       7       0
    "#]],
        &expect![[r#"
        echo-server: crash points, 19 worlds
        echo-server: combinations, 2 worlds
    "#]],
    );
}

#[test]
fn every_system_comes_through_crashes_at_every_write() {
    for system in SYSTEMS {
        let ended = simulate(&[system, "--only", "crash-points", "--seeds", "2"]);
        assert_eq!(ended.code, Some(0), "{system}: {ended:?}");
        let ended = simulate(&[system, "--trace"]);
        assert_eq!(ended.code, Some(0), "{system} without faults: {ended:?}");
    }
}

/// A system in worlds with several faults at once: a few, or 1,000 in a campaign.
fn check_combinations(system: &str) {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let seeds = match variable("MAINSTAY_SIMULATION").as_deref() {
        Some("campaign") => "1000",
        _ => "10",
    };
    let first = variable("MAINSTAY_SEED").unwrap_or_else(|| "1".into());
    let ended = simulate(&[system, "--combined", "--seeds", seeds, "--first-seed", &first]);
    assert_eq!(ended.code, Some(0), "{system}: {ended:?}");
}

#[test]
fn streams_come_through_combined_faults() {
    check_combinations("streams");
}

#[test]
fn networks_come_through_combined_faults() {
    check_combinations("networks");
}

#[test]
fn echo_servers_come_through_combined_faults() {
    check_combinations("echo-server");
}

#[test]
fn web_apps_come_through_combined_faults() {
    check_combinations("webapp");
}

#[test]
fn seeds_begin_where_they_are_told_to() {
    check_fine(
        &["echo-server", "--combined", "--seeds", "2", "--first-seed", "221"],
        &expect![[r#"
        echo-server: 8 steps, 13 writes, 32 reads, 31 events without faults
                          worlds  pruned  failed
        without faults         1       0       0
        combinations           2       0       0
        total                  3       0       0
    "#]],
        &expect![[r#"
        echo-server: seeds 221 to 222
        echo-server: combinations, 2 worlds
        next: mainstay simulate echo-server --seeds 2 --first-seed 223
    "#]],
    );
    let first = |ended: &Ended| ended.stderr.lines().next().unwrap_or_default().to_owned();
    let random = || simulate(&["echo-server", "--combined", "--seeds", "1", "--first-seed", "random"]);
    let (one, other) = (random(), random());
    assert_eq!((one.code, other.code), (Some(0), Some(0)), "{one:?}{other:?}");
    assert_ne!(first(&one), first(&other), "two runs begin with different seeds");
}

#[test]
fn one_fault_is_replayed() {
    check_fine(
        &["echo-server", "--replay", "crash after write 3", "--seed", "4"],
        &expect![[r#"
        echo-server: 8 steps, 13 writes, 32 reads, 31 events without faults
                          worlds  pruned  failed
        without faults         1       0       0
        replay                 1       0       0
        total                  2       0       0
    "#]],
        &expect![[r#"
        echo-server: replay, 1 world
    "#]],
    );
}

#[test]
fn a_trace_tells_everything_that_happens_and_is_the_same_each_time() {
    let ended = simulate(&["echo-server", "--trace"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in ["step 1: create EchoServer hello", "(write 1)", "(read 1)", "(event 1)", "second pass"] {
        assert!(ended.stdout.contains(part), "{part} in {}", ended.stdout);
    }
    assert_eq!(simulate(&["echo-server", "--trace"]).stdout, ended.stdout);
    let crashed = simulate(&["echo-server", "--trace", "--replay", "crash after write 2"]);
    assert!(crashed.stdout.contains("!! crash after write 2"), "{crashed:?}");
}

#[test]
fn json_tells_what_the_table_does() {
    let ended =
        simulate(&["echo-server", "--only", "two-leaders", "--seeds", "1", "--threads", "1", "-o", "json"]);
    let mut told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(told["seconds"].take().as_f64().unwrap() > 0.0);
    assert_eq!(told["failures"], json!([]));
    expect![[r#"
        {
          "failed": 0,
          "failures": [],
          "parts": [
            {
              "failed": 0,
              "part": "without faults",
              "pruned": 0,
              "worlds": 1
            },
            {
              "failed": 0,
              "part": "two leaders",
              "pruned": 0,
              "worlds": 13
            },
            {
              "failed": 0,
              "part": "combinations",
              "pruned": 0,
              "worlds": 1
            }
          ],
          "seconds": null,
          "system": "echo-server",
          "withoutFaults": {
            "events": 31,
            "reads": 32,
            "steps": 8,
            "writes": 13
          },
          "worlds": 15
        }
    "#]]
    .assert_eq(&format!("{told:#}\n"));
}
