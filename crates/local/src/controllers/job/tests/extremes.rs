//! Numbers at the ends of what can be written down.

use proptest::prelude::*;

use super::*;

fn counts() -> impl Strategy<Value = i32> {
    prop_oneof![0..4_i32, proptest::sample::select(vec![0, 1, i32::MAX - 1, i32::MAX]), 0..=i32::MAX]
}

fn seconds() -> impl Strategy<Value = i64> {
    prop_oneof![0..100_i64, proptest::sample::select(vec![1, i64::MAX - 1, i64::MAX])]
}

fn times() -> impl Strategy<Value = Timestamp> {
    let ends = vec![Timestamp::MIN, Timestamp::UNIX_EPOCH, started(), Timestamp::MAX];
    proptest::sample::select(ends)
}

/// A pod that failed as often as can be written down, at some time.
fn failed(index: i32, failures: i32, ignored: i32, at: Timestamp) -> Value {
    let mut pod = of_index(index, pod(&format!("p{index}"), "Failed"));
    pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] =
        json!(failures.to_string());
    pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-ignored-failure-count"] =
        json!(ignored.to_string());
    let ended = &mut pod["status"]["containerStatuses"][0];
    ended["state"]["terminated"]["finishedAt"] = json!(at.to_string());
    ended["restartCount"] = json!(failures);
    pod
}

proptest! {
    #[test]
    fn no_number_is_too_large_for_a_job(
        (parallelism, completions, indexed) in (counts(), counts(), any::<bool>()),
        (backoff, per_index, deadline) in (counts(), prop::option::of(counts()), prop::option::of(seconds())),
        (counted, failures, ignored) in (counts(), counts(), counts()),
        (start, now, ended) in (times(), times(), times()),
        policy in prop_oneof![Just("Never"), Just("OnFailure")],
    ) {
        let mut spec = json!({"parallelism": parallelism, "completions": completions, "backoffLimit": backoff});
        spec["template"] = json!({"spec": {"restartPolicy": policy, "containers": [{"name": "main", "image": "work"}]}});
        if indexed {
            spec["completionMode"] = json!("Indexed");
            spec["backoffLimitPerIndex"] = json!(per_index);
            spec["maxFailedIndexes"] = json!(per_index);
        }
        if let Some(deadline) = deadline {
            spec["activeDeadlineSeconds"] = json!(deadline);
        }
        let mut world = job(spec).pods([
            failed(0, failures, ignored, ended), failed(1, ignored, failures, ended), pod("p2", "Running"),
        ]);
        world = world.status(json!({
            "startTime": start.to_string(), "succeeded": counted, "failed": counted,
            "uncountedTerminatedPods": {"succeeded": ["gone-1"], "failed": ["gone-2"]},
        }));
        world.now = now;
        let told = world.told();
        prop_assert!(told.lines().filter(|line| line.starts_with("new pod")).count() <= 500, "{}", told.len());
    }
}
