//! Runs a script's commands in a shell of their own each, with kubectl at hand and the test's namespace as its default.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use kube::config::Kubeconfig;
use mainstay_testkit::Cluster;
use mainstay_testkit::process::dies_with_us;
use tempfile::TempDir;
use tokio::process::Command;

use crate::kubectl::normalise::Normaliser;
use crate::kubectl::script::Script;

/// A command that takes longer hangs.
const PATIENCE: Duration = Duration::from_mins(2);

/// Words that scripts may use besides the shell's own.
const PRELUDE: &str = r#"
# await FILE TEXT: waits until a line of the file has the text.
await() {
    for attempt in $(seq 600); do
        if grep -qs -e "$2" "$1"; then return; fi
        sleep 0.05
    done
    echo "waited in vain for $2 in $1:" >&2
    cat "$1" >&2
    return 1
}
# await_lines FILE COUNT: waits until the file has so many lines.
await_lines() {
    for attempt in $(seq 600); do
        if [ "$(wc -l < "$1")" -ge "$2" ]; then return; fi
        sleep 0.05
    done
    echo "waited in vain for $2 lines in $1" >&2
    return 1
}
# structure: of what `kubectl explain` prints, the fields and their types without the prose.
structure() {
    grep -E '^[A-Z]+:|^ *[A-Za-z]+[[:space:]]+<'
}
"#;

/// What each command answered, normalised.
pub(crate) async fn run_script(script: &Script, cluster: &Cluster, kubectl: &Path) -> Vec<String> {
    let directory = TempDir::new().expect("a temporary directory");
    let server = write_kubeconfig(cluster, directory.path()).await;
    let mut normaliser = Normaliser::new(vec![
        (cluster.namespace().to_owned(), "{ns}".to_owned()),
        (server, "{server}".to_owned()),
        (directory.path().display().to_string(), "{dir}".to_owned()),
    ]);
    let mut outputs = Vec::new();
    for step in &script.steps {
        let raw = run_command(&step.command, cluster.namespace(), directory.path(), kubectl).await;
        outputs.push(normaliser.normalise(&raw));
    }
    outputs
}

/// Writes one whose default namespace is the test's own. Gives the server's address.
async fn write_kubeconfig(cluster: &Cluster, directory: &Path) -> String {
    let mut config = Kubeconfig::read_from(cluster.kubeconfig().await).expect("a readable kubeconfig");
    for context in config.contexts.iter_mut().filter_map(|named| named.context.as_mut()) {
        context.namespace = Some(cluster.namespace().to_owned());
    }
    let text = serde_json::to_vec(&config).expect("a kubeconfig is JSON");
    fs::write(directory.join("kubeconfig"), text).expect("a writable directory");
    let server = config.clusters.first().and_then(|named| named.cluster.as_ref()?.server.clone());
    server.expect("a kubeconfig names a server")
}

async fn run_command(command: &str, namespace: &str, directory: &Path, kubectl: &Path) -> String {
    let programs = kubectl.parent().expect("a file is in a directory").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::from(dies_with_us("bash"));
    shell
        .arg("-c")
        .arg(format!("{PRELUDE}\n{command}"))
        .current_dir(directory)
        .env("PATH", format!("{programs}:{path}"))
        .env("KUBECONFIG", directory.join("kubeconfig"))
        .env("KUBECACHEDIR", directory.join("cache"))
        .env("HOME", directory)
        .env("TMPDIR", directory)
        .env("NS", namespace)
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, shell.output()).await;
    let output = output.unwrap_or_else(|_| panic!("after {PATIENCE:?} still running: {command}"));
    let output = output.expect("bash starts");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        text.push_str("! ");
        text.push_str(line);
        text.push('\n');
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => drop(writeln!(text, "[exit {code}]")),
        None => text.push_str("[killed]\n"),
    }
    text
}
