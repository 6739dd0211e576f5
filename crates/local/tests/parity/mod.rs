//! The same manifests in a cluster of ours and in one with kube-controller-manager: the same objects, statuses and order.
//!
//! ```text
//! ours:  embedded API server + controllers + scheduler + node (simulated pods)
//! real:  etcd, kube-apiserver, kube-controller-manager + the same scheduler and node, as clients
//! ```
//!
//! Each case writes what can be seen at each rest. The goldens are the real cluster's; `UPDATE_EXPECT=1` writes them anew from it. What
//! differs on purpose is left out in `normal.rs`, or is in DIFFERENCES.md.

mod case;
mod cases;
mod normal;
mod order;
mod side;

use case::{Case, Golden};
use side::Side;

use std::fmt::Write as _;

/// Runs every case on one side, all at once, and tells what is not as expected.
async fn check(side: &Side, update: bool) {
    let runs = cases::all().into_iter().map(|(name, play)| async move {
        let golden = if update { Golden::default() } else { Golden::read(name) };
        let case = Case::begin(side.cluster().again().await, golden).await;
        (name, play(case).await.end())
    });
    let mut wrong = String::new();
    for (name, seen) in futures::future::join_all(runs).await {
        if update {
            std::fs::write(Golden::path(name), &seen).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(Golden::path(name)).unwrap_or_default();
        for line in difference(&expected, &seen) {
            let _ = writeln!(wrong, "{name}: {line}");
        }
    }
    assert!(wrong.is_empty(), "not as kube-controller-manager does it:\n{wrong}");
}

/// The lines that only one of them has, each with the section it is in.
fn difference(expected: &str, seen: &str) -> Vec<String> {
    let sectioned = |text: &str| {
        let (mut section, mut object) = (String::new(), String::new());
        let mut lines = Vec::new();
        for line in text.lines() {
            match line.strip_prefix("== ") {
                Some(title) => title.clone_into(&mut section),
                None if !line.starts_with(' ') => line.clone_into(&mut object),
                None => {}
            }
            lines.push(format!("[{section}] {object}: {}", line.trim()));
        }
        lines
    };
    let (mut missing, mut surplus) = (sectioned(expected), sectioned(seen));
    missing.retain(|line| match surplus.iter().position(|other| other == line) {
        Some(place) => {
            surplus.remove(place);
            false
        }
        None => true,
    });
    let missing = missing.into_iter().map(|line| format!("missing {line}"));
    let mut all: Vec<String> =
        missing.chain(surplus.into_iter().map(|line| format!("surplus {line}"))).collect();
    if all.is_empty() && expected != seen {
        all.push("the same lines in another order".into());
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn our_controllers_do_what_kubernetes_does() {
    if let Some(side) = Side::embedded().await {
        check(&side, false).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_does_what_is_written_down() {
    if let Some(side) = Side::real().await {
        check(&side, std::env::var_os("UPDATE_EXPECT").is_some()).await;
    }
}
