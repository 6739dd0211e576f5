//! Names of Jobs and of what belongs to them.

use crate::hashes;
use crate::kinds::Purpose;

/// A pod's name and host name begin with the Job's, and a label has it.
const JOB_MAX: usize = 63;
/// A `CronJob` adds a dash and ten digits for each of its Jobs.
const CRON_JOB_MAX: usize = 52;
const HASH: usize = 10;
const LABEL_MAX: usize = 63;

/// The name of a run's Job or `CronJob`: `<stream>-<hash>-<number>`, where the hash is of the stream's kind and whole name.
///
/// No two runs of a namespace have the same: neither those of streams of different kinds with the same name, nor those of streams whose
/// names begin alike and have to be shortened.
pub fn run_name(stream: &str, group: &str, kind: &str, purpose: &Purpose, number: u64) -> String {
    let max = match purpose {
        Purpose::Schedule => CRON_JOB_MAX,
        Purpose::Stream | Purpose::Backfill { .. } => JOB_MAX,
    };
    let hash = hashes::short(&format!("{group}/{kind}/{stream}"));
    let end = format!("-{}-{number}", &hash[..HASH]);
    let plain = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9') => letter,
        _ => '-',
    };
    let start: String = stream.chars().map(plain).take(max.saturating_sub(end.len())).collect();
    let start = match start.trim_matches('-') {
        "" => "stream",
        start => start,
    };
    format!("{start}{end}")
}

/// The name of the `ConfigMap` that has the spec of a run, if it is too long for the environment.
pub fn spec_name(job: &str) -> String {
    format!("{job}-spec")
}

/// A text as a label can hold it: the beginning of it.
pub(super) fn label(text: &str) -> &str {
    let end = (0..=LABEL_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric())
}
