//! Runs a script's commands in a shell of their own each, with the test's namespace as the default one.

use crate::commands::script::Script;
use kube::config::Kubeconfig;
use mainstay_testkit::Cluster;
use mainstay_testkit::process::dies_with_us;
use regex::Regex;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

/// A command that takes longer hangs.
const PATIENCE: Duration = Duration::from_mins(2);

/// Words that scripts may use besides the shell's own.
const PRELUDE: &str = r#"
# await TEXT COMMAND…: waits until the command prints the text.
await() {
    text=$1; shift
    for attempt in $(seq 600); do
        if "$@" 2>&1 | grep -q -e "$text"; then return; fi
        sleep 0.05
    done
    echo "waited in vain for $text" >&2
    "$@"
    return 1
}
# begin NAME COMMAND…: starts a command in the background, its output in the file NAME.
begin() {
    name=$1; shift
    "$@" > "$name" 2>&1 < /dev/null &
    echo $! > "$name.id"
}
# end NAME: ends it, and waits until it has.
end() {
    kill -TERM "$(cat "$1.id")"
    for attempt in $(seq 600); do
        if ! kill -0 "$(cat "$1.id")" 2> /dev/null; then return; fi
        sleep 0.05
    done
    echo "$1 does not end" >&2
    return 1
}
"#;

/// What each command answered, normalised.
pub(crate) async fn run_script(script: &Script, cluster: &Cluster, kubectl: &Path) -> Vec<String> {
    let directory = TempDir::new().expect("a temporary directory");
    let server = write_kubeconfig(cluster, directory.path()).await;
    let literals = [
        (cluster.namespace().to_owned(), "NS"),
        (server, "SERVER"),
        (directory.path().display().to_string(), "DIR"),
    ];
    let mut outputs = Vec::new();
    for step in &script.steps {
        let raw = run_command(&step.command, cluster.namespace(), directory.path(), kubectl).await;
        outputs.push(normalise(&raw, &literals));
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
    std::fs::write(directory.join("kubeconfig"), text).expect("a writable directory");
    let server = config.clusters.first().and_then(|named| named.cluster.as_ref()?.server.clone());
    server.expect("a kubeconfig names a server").trim_end_matches('/').to_owned()
}

async fn run_command(command: &str, namespace: &str, directory: &Path, kubectl: &Path) -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_mainstay"));
    let programs =
        [own, kubectl].map(|path| path.parent().expect("a file is in a directory").display().to_string());
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::from(dies_with_us("bash"));
    shell
        .arg("-c")
        .arg(format!("{PRELUDE}\n{command}"))
        .current_dir(directory)
        .env_clear()
        .env("PATH", format!("{}:{path}", programs.join(":")))
        .env("KUBECONFIG", directory.join("kubeconfig"))
        .env("KUBECACHEDIR", directory.join("cache"))
        .env("HOME", directory)
        .env("NS", namespace)
        .env("REPO", concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .env("LC_ALL", "C")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, shell.output()).await;
    let output = output.unwrap_or_else(|_| panic!("after {PATIENCE:?} still running: {command}"));
    let output = output.expect("bash starts");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let _ = writeln!(text, "! {line}");
    }
    match output.status.code() {
        Some(0) => {}
        code => drop(writeln!(text, "[exit {}]", code.unwrap_or(-1))),
    }
    text
}

/// Takes out what differs from run to run, and leaves columns as wide as they are.
fn normalise(raw: &str, literals: &[(String, &str)]) -> String {
    let patterns = [
        (r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"http://127\.0\.0\.1:\d{5}", "http://127.0.0.1:PORT"),
        (r"v1\.\d+\.\d+(\+mainstay)?", "VERSION"),
        (r"\b\d+s ago", "<s> ago"),
        // Ages are at most as wide as their heading.
        (r"(?m)\b(\d\ds|\ds( |$))", "<s>"),
        (r" \(os error \d+\)", ""),
    ];
    let named = literals.iter().fold(raw.to_owned(), |text, (literal, name)| text.replace(literal, name));
    let known = patterns.iter().fold(named, |text, (pattern, name)| {
        Regex::new(pattern).expect("a valid pattern").replace_all(&text, *name).into_owned()
    });
    known.trim_end().to_owned()
}
