//! When it does not come up: it says why, what is unchanged and what helps, and nothing is lost.

use crate::up::run::{Run, mainstay};
use crate::up::{create, text};
use expect_test::{Expect, expect};
use std::net::TcpListener;

/// A refused command says this, with the parts that differ from run to run replaced, and ends with 2.
pub(crate) fn check_refused(mut run: Run, replace: &[(&str, &str)], expected: &Expect) {
    let ended = run.end();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stdout.is_empty(), "{ended:?}");
    let said = replace.iter().fold(ended.stderr, |text, (from, to)| text.replace(from, to));
    // The system's numbers for its errors differ from system to system.
    let lines: Vec<_> =
        said.lines().map(|line| line.split(" (os error ").next().unwrap_or_default()).collect();
    expected.assert_eq(&(lines.join("\n") + "\n"));
}

#[tokio::test]
async fn a_second_one_on_the_same_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (run, kubeconfig) = Run::up(&["--data", text(directory.path())]);
    let server = std::fs::read_to_string(&kubeconfig).unwrap();
    let url = server.lines().find_map(|line| line.trim().strip_prefix("server: ")).unwrap();
    let pid = format!("process {} ", run.id());
    let second = Run::start(mainstay(&["up", "--listen", "127.0.0.1:0", "--data", text(directory.path())]));
    check_refused(
        second,
        &[(url, "URL"), (text(directory.path()), "DIR"), (&pid, "process PID ")],
        &expect![[r#"
            error: DIR is in use by another `mainstay up`
              process PID serves it at URL
              unchanged: that one goes on
              next: export KUBECONFIG=DIR/kubeconfig
        "#]],
    );
    create(&kubeconfig, "still-served").await;
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let address = format!("127.0.0.1:{port}");
    let directory = tempfile::tempdir().unwrap();
    check_refused(
        Run::start(mainstay(&["up", "--data", text(directory.path()), "--listen", &address])),
        &[(&port, "PORT"), (text(directory.path()), "DIR")],
        &expect![[r#"
            error: cannot listen on 127.0.0.1:PORT
              Address already in use
              unchanged: the objects in DIR
              next: end what uses port PORT, or: mainstay up --listen 127.0.0.1:0
        "#]],
    );
}

#[test]
fn a_directory_that_cannot_be_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    check_refused(
        Run::start(mainstay(&["up", "--data", text(&file.join("state"))])),
        &[(text(&file), "FILE")],
        &expect![[r#"
            error: cannot keep state in FILE/state
              Not a directory
              next: mainstay up --data DIR keeps the state elsewhere, --memory keeps none
        "#]],
    );
}

#[test]
fn without_a_home_there_is_no_default_directory() {
    check_refused(
        Run::start(mainstay(&["up"])),
        &[],
        &expect![[r#"
            error: no directory to keep state in: neither XDG_DATA_HOME nor HOME is set
              next: mainstay up --data DIR, or --memory
        "#]],
    );
}

#[test]
fn a_damaged_store_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store.redb");
    std::fs::write(&store, "no store").unwrap();
    check_refused(
        Run::start(mainstay(&["up", "--data", text(directory.path())])),
        &[(text(directory.path()), "DIR")],
        &expect![[r#"
            error: the store DIR/store.redb cannot be read; it was left as it is
              I/O error: Not a redb database: magic number mismatch
              unchanged: everything in DIR
              next: restore DIR/store.redb from a copy, or: mainstay up --data DIR keeps the state elsewhere, --memory keeps none
        "#]],
    );
    assert_eq!(std::fs::read_to_string(&store).unwrap(), "no store");
}

#[test]
fn a_store_cut_short_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store.redb");
    let (mut run, _) = Run::up(&["--data", text(directory.path())]);
    run.signal("TERM");
    run.end();
    let whole = std::fs::read(&store).unwrap();
    let half = &whole[..whole.len() / 2];
    std::fs::write(&store, half).unwrap();
    check_refused(
        Run::start(mainstay(&["up", "--data", text(directory.path())])),
        &[
            (text(directory.path()), "DIR"),
            (&half.len().to_string(), "HALF"),
            (&whole.len().to_string(), "WHOLE"),
        ],
        &expect![[r#"
            error: the store DIR/store.redb cannot be read; it was left as it is
              DB corrupted: File truncated below stored layout: file_len=HALF, layout_len=WHOLE
              unchanged: everything in DIR
              next: restore DIR/store.redb from a copy, or: mainstay up --data DIR keeps the state elsewhere, --memory keeps none
        "#]],
    );
    assert!(std::fs::read(&store).unwrap() == half);
}

#[tokio::test]
async fn a_flipped_bit_is_refused_and_the_object_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store.redb");
    let (mut run, kubeconfig) = Run::up(&["--data", text(directory.path())]);
    create(&kubeconfig, "precious").await;
    run.signal("TERM");
    run.end();
    let mut damaged = std::fs::read(&store).unwrap();
    let value = br#""name":"precious""#;
    let places: Vec<usize> =
        (0..damaged.len() - value.len()).filter(|at| damaged[*at..].starts_with(value)).collect();
    assert!(!places.is_empty());
    // Pages of former states may hold it too.
    for place in places {
        damaged[place + 8] ^= 1;
    }
    std::fs::write(&store, &damaged).unwrap();
    check_refused(
        Run::start(mainstay(&["up", "--data", text(directory.path())])),
        &[(text(directory.path()), "DIR")],
        &expect![[r#"
            error: the store DIR/store.redb is damaged: what it holds of configmaps default/precious does not match its checksum; it was left as it is
              unchanged: everything in DIR
              next: restore DIR/store.redb from a copy, or: mainstay up --data DIR keeps the state elsewhere, --memory keeps none
        "#]],
    );
    assert!(std::fs::read(&store).unwrap() == damaged);
}

#[test]
fn damaged_credentials_are_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("credentials.json"), "{}").unwrap();
    check_refused(
        Run::start(mainstay(&["up", "--data", text(directory.path())])),
        &[(text(directory.path()), "DIR")],
        &expect![[r#"
            error: DIR/credentials.json does not hold credentials
              missing field `ca` at line 1 column 2
              unchanged: the objects in DIR
              next: rm DIR/credentials.json, and the next start makes new ones
        "#]],
    );
}

#[test]
fn a_kubeconfig_of_other_clusters_is_not_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    let other = "apiVersion: v1\nkind: Config\nclusters:\n- name: work\n  cluster: {server: https://work}\n";
    std::fs::write(&file, other).unwrap();
    check_refused(
        Run::start(mainstay(&["up", "--memory", "--kubeconfig", text(&file)])),
        &[(text(&file), "FILE")],
        &expect![[r#"
            error: cannot write the kubeconfig FILE
              it exists and holds something else than a kubeconfig of mainstay
              unchanged: that file
              next: name a file of its own; export KUBECONFIG=FILE1:FILE2 makes kubectl read both
        "#]],
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), other);
}

#[tokio::test]
async fn a_kubeconfig_that_another_one_writes_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    let up = ["up", "--memory", "--listen", "127.0.0.1:0", "--kubeconfig", text(&file)];
    let (mut run, kubeconfig) = Run::up_with(mainstay(&up));
    let written = std::fs::read_to_string(&file).unwrap();
    let url = written.lines().find_map(|line| line.trim().strip_prefix("server: ")).unwrap();
    check_refused(
        Run::start(mainstay(&up)),
        &[(url, "URL"), (text(&file), "FILE")],
        &expect![[r#"
            error: the kubeconfig FILE is in use by another `mainstay up`
              it serves at URL
              unchanged: that one goes on
              next: mainstay up --kubeconfig FILE writes it elsewhere
        "#]],
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    create(&kubeconfig, "still-served").await;

    // One that was killed has no hold on it.
    run.signal("KILL");
    run.end();
    let (_run, _) = Run::up_with(mainstay(&up));
}

#[test]
fn wrong_rules_are_refused_with_the_field_before_anything_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let (rules, state) = (directory.path().join("rules.yaml"), directory.path().join("state"));
    let check = |text_of_rules: &str, expected: &Expect| {
        std::fs::write(&rules, text_of_rules).unwrap();
        check_refused(
            Run::start(mainstay(&["up", "--data", text(&state), "--rules", text(&rules)])),
            &[(text(directory.path()), "DIR")],
            expected,
        );
        assert!(!state.exists());
    };
    check(
        "images:\n- {image: a, command: [a]}\n- {image: b, command: [b], workdir: c}\n",
        &expect![[r#"
        error: cannot use the rules in DIR/rules.yaml
          images[1].workdir: unknown field `workdir`, expected one of `image`, `command`, `args`, `env`, `workingDir`
          unchanged: everything: nothing was started
          next: mend the file; without --rules every pod but those of mainstay:* is simulated as it is by default
    "#]],
    );
    check(
        "simulated:\n- {image: a, readyAfter: soon}\n",
        &expect![[r#"
        error: cannot use the rules in DIR/rules.yaml
          simulated[0].readyAfter: "soon" is no length of time; write 5s, 500ms or 1m30s, or never
          unchanged: everything: nothing was started
          next: mend the file; without --rules every pod but those of mainstay:* is simulated as it is by default
    "#]],
    );
    check(
        "images: [\n",
        &expect![[r#"
        error: cannot use the rules in DIR/rules.yaml
          the rules are not YAML
          error: line 1 column 9: unclosed bracket '['
           --> <input>:1:9
            |
          1 | images: [
            |         ^ unclosed bracket '['
          unclosed bracket '[' at line 1, column 9
          unchanged: everything: nothing was started
          next: mend the file; without --rules every pod but those of mainstay:* is simulated as it is by default
    "#]],
    );
}

#[test]
fn rules_that_are_not_there_are_refused() {
    check_refused(
        Run::start(mainstay(&["up", "--memory", "--rules", "/nowhere/rules.yaml"])),
        &[],
        &expect![[r#"
            error: cannot use the rules in /nowhere/rules.yaml
              No such file or directory
              unchanged: everything: nothing was started
              next: mend the file; without --rules every pod but those of mainstay:* is simulated as it is by default
        "#]],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn rules_without_an_end_are_refused() {
    check_refused(
        Run::start(mainstay(&["up", "--memory", "--rules", "/dev/zero"])),
        &[],
        &expect![[r#"
            error: cannot use the rules in /dev/zero
              it has more than 16777216 bytes, which is as much as is read
              unchanged: everything: nothing was started
              next: mend the file; without --rules every pod but those of mainstay:* is simulated as it is by default
        "#]],
    );
}

#[cfg(unix)]
#[test]
fn a_directory_that_others_may_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    std::fs::create_dir(&state).unwrap();
    for mode in [0o770, 0o707] {
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(mode)).unwrap();
        let mode = format!("{mode:03o}");
        check_refused(
            Run::start(mainstay(&["up", "--data", text(&state)])),
            &[(text(&state), "DIR"), (&mode, "MODE")],
            &expect![[r#"
                error: other users can write to DIR
                  its mode is MODE
                  unchanged: everything in it
                  next: chmod 700 DIR, or: mainstay up --data DIR keeps the state elsewhere, --memory keeps none
            "#]],
        );
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0, "nothing was made in it");
    }
}
