//! The differential suite: traces of requests that are sent to the embedded server and to a real kube-apiserver; after
//! normalising what is the server's own choice (uids, times, revisions…) every answer must be the same.
//!
//!     trace file ─▶ run on either server ─▶ normalise ─▶ compare ─▶ accepted differences taken off
//!
//! `MAINSTAY_TRACE=part-of-a-name` runs only some traces and prints what both servers said (with `--nocapture`).
//! `MAINSTAY_DIFF_SELF=1` runs every trace twice against the real server, which checks the traces themselves:
//! what differs then is not Kubernetes' behaviour but chance.

pub(crate) mod compare;
mod differences;
pub(crate) mod normalise;
mod pointer;
mod run;
mod trace;

use std::env;
use std::fmt::Write as _;
use std::path::Path;

use futures::StreamExt as _;
use mainstay_testkit::Cluster;
use serde_json::Value;

use crate::differential::compare::{Difference, compare_transcripts};
use crate::differential::differences::Ledger;
use crate::differential::trace::Trace;

/// Traces under way at one time. More than a few only queue up in etcd.
const CONCURRENCY: usize = 6;

/// The two servers that are compared, and what they are called in a report.
struct Sides {
    left: (&'static str, Cluster),
    /// None: a new embedded server for each trace.
    right: (&'static str, Option<Cluster>),
}

impl Sides {
    async fn from_environment() -> Option<Self> {
        let real = Cluster::real().await?.unrestricted().await;
        let real_only = env::var("MAINSTAY_TEST_CLUSTER").is_ok_and(|wanted| wanted == "real");
        let itself = real_only || env::var("MAINSTAY_DIFF_SELF").is_ok_and(|value| value == "1");
        if itself || Cluster::embedded().await.is_none() {
            return Some(Self { left: ("first", real.clone()), right: ("second", Some(real)) });
        }
        Some(Self { left: ("real", real), right: ("embedded", None) })
    }

    fn comparing_both_servers(&self) -> bool {
        self.right.1.is_none()
    }

    async fn right(&self) -> Cluster {
        match &self.right.1 {
            Some(cluster) => cluster.again().await,
            None => Cluster::embedded().await.expect("the embedded server has started before"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_answer_every_trace_alike() {
    if env::var("MAINSTAY_TEST_CLUSTER").is_ok_and(|wanted| wanted == "embedded") {
        return;
    }
    let Some(sides) = Sides::from_environment().await else { return };
    let only = env::var("MAINSTAY_TRACE").unwrap_or_default();
    let traces = trace::load_all(&root().join("crates/suites/tests/traces"));
    let mut chosen: Vec<_> = traces.iter().filter(|trace| trace.name.contains(&only)).collect();
    chosen.sort_by_key(|trace| trace.urgency());
    assert!(!chosen.is_empty(), "no trace has {only:?} in its name");

    let outcomes: Vec<_> = futures::stream::iter(&chosen)
        .map(async |trace| check_trace(trace, &sides, !only.is_empty()).await)
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;

    let mut ledger = Ledger::read(&root().join("DIFFERENCES.md"));
    let mut failures: Vec<String> = Vec::new();
    for outcome in outcomes {
        match outcome {
            Err(failure) => failures.push(failure),
            Ok(accepted) => failures.extend(ledger.mark_seen(accepted).err()),
        }
    }
    if only.is_empty() && sides.comparing_both_servers() {
        failures.extend(ledger.stale().map(|id| {
            format!("DIFFERENCES.md lists {id}, but no trace shows it any more: remove it from there")
        }));
    }
    eprintln!("{} traces, {} failures ({} / {})", chosen.len(), failures.len(), sides.left.0, sides.right.0);
    failures.sort();
    assert!(failures.is_empty(), "{} failures\n\n{}", failures.len(), failures.join("\n"));
}

/// The ids of accepted differences that occurred, or a readable failure.
async fn check_trace(trace: &Trace, sides: &Sides, print: bool) -> Result<Vec<String>, String> {
    let ((left_name, left), (right_name, _)) = (&sides.left, &sides.right);
    let (left, right) = (left.again().await, sides.right().await);
    let (left, right) = tokio::join!(run::run_trace(trace, &left), run::run_trace(trace, &right));
    if print {
        print_transcripts(trace, [(left_name, &left), (right_name, &right)]);
    }
    let failed = |side: &str, error: String| format!("{}: on {side}: {error}\n", trace.name);
    let left = left.map_err(|error| failed(left_name, error))?;
    let right = right.map_err(|error| failed(right_name, error))?;
    let differences = compare_transcripts(&left, &right);
    let verdict = differences::judge(trace, differences, sides.comparing_both_servers());
    if verdict.unaccepted.is_empty() && verdict.stale.is_empty() {
        return Ok(verdict.accepted);
    }
    let mut report = String::new();
    for (step, differences) in by_step(&verdict.unaccepted) {
        let _ = writeln!(report, "{}: step {}: {}", trace.name, step + 1, trace.steps[step].summary());
        for difference in differences {
            let _ = writeln!(report, "{}", difference.render(left_name, right_name));
        }
    }
    for stale in verdict.stale {
        let _ = writeln!(report, "{}: {stale}", trace.name);
    }
    Err(report)
}

fn by_step(differences: &[Difference]) -> Vec<(usize, Vec<&Difference>)> {
    let mut steps: Vec<(usize, Vec<&Difference>)> = Vec::new();
    for difference in differences {
        match steps.last_mut() {
            Some((step, of_step)) if *step == difference.step => of_step.push(difference),
            _ => steps.push((difference.step, vec![difference])),
        }
    }
    steps
}

fn print_transcripts(trace: &Trace, sides: [(&str, &Result<Vec<Value>, String>); 2]) {
    for (side, transcript) in sides {
        println!("=== {} on {side}", trace.name);
        let Ok(transcript) = transcript else { continue };
        for (step, answer) in trace.steps.iter().zip(transcript) {
            println!("--- {}", step.summary());
            println!("{}", serde_json::to_string_pretty(answer).unwrap_or_default());
        }
    }
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn there_are_at_least_two_hundred_traces_and_each_has_steps() {
    let traces = trace::load_all(&root().join("crates/suites/tests/traces"));
    assert!(traces.len() >= 200, "{}", traces.len());
    for trace in traces {
        assert!(!trace.steps.is_empty(), "{}", trace.name);
    }
}
