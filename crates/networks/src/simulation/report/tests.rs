use std::time::Duration;

use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn worker(worker: usize, requests: u64, refused: u64, took: &[u64]) -> WorkerReport {
    let mut latencies = Latencies::default();
    for milliseconds in took {
        latencies.record(Duration::from_millis(*milliseconds));
    }
    let failures = if refused == 0 { BTreeMap::new() } else { [(FailureKind::Refused, refused)].into() };
    WorkerReport {
        run: "r".into(),
        worker,
        peer: format!("peers-0-{worker}"),
        requests,
        failures,
        duration_milliseconds: 1000,
        latencies,
    }
}

fn report(expected: usize, told: Vec<WorkerReport>) -> Report {
    let told = told.into_iter().map(|report| (report.worker, report)).collect();
    let times = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + Duration::from_secs(1));
    Report::of(("r", Scenario::Identity, 2), times, expected, &told)
}

#[test]
fn a_report_adds_up_and_names_who_is_lost() {
    let report = report(3, vec![worker(0, 3, 1, &[1, 2]), worker(2, 1, 0, &[40])]);
    expect![[r#"{"run":"r","scenario":"identity","users":2,"startedAt":"1970-01-01T00:00:00Z","finishedAt":"1970-01-01T00:00:01Z","peers":[{"peer":"peers-0-0","requests":3,"failures":{"refused":1},"durationMilliseconds":1000,"latencyMilliseconds":{"mean":1.5,"p50":1.0,"p90":2.0,"p95":2.0,"p99":2.0,"max":2.0}},{"peer":"peers-0-2","requests":1,"failures":{},"durationMilliseconds":1000,"latencyMilliseconds":{"mean":40.016,"p50":40.031,"p90":40.031,"p95":40.031,"p99":40.031,"max":40.031}}],"lost":[1],"total":{"peer":"total","requests":4,"failures":{"refused":1},"durationMilliseconds":1000,"latencyMilliseconds":{"mean":14.338666666666667,"p50":2.0,"p90":40.031,"p95":40.031,"p99":40.031,"max":40.031}},"latencies":[[1000,1],[2000,1],[40031,1]]}"#]]
    .assert_eq(&serde_json::to_string(&report).unwrap());
}

fn milliseconds(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![9 => 0..most, 1 => prop_oneof![Just(i64::MAX as u64), Just(u64::MAX), any::<u64>()]]
}

proptest! {
    // Each has several histograms, which are large.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read(took in proptest::collection::vec(milliseconds(4_000_000), 0..50)) {
        let written = worker(1, 9, 0, &took);
        let read: WorkerReport = serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap();
        prop_assert_eq!(read.latencies.percentiles(), written.latencies.percentiles());
        prop_assert_eq!(read, written);
    }

    #[test]
    fn merging_loses_nothing_and_percentiles_ascend(parts in proptest::collection::vec(proptest::collection::vec(milliseconds(90_000), 0..20), 1..5)) {
        let report = report(parts.len(), parts.iter().enumerate().map(|(at, took)| worker(at, 1, 0, took)).collect());
        let whole = worker(0, 1, 0, &parts.concat());
        prop_assert_eq!(&report.latencies, &whole.latencies);
        let p = report.total.latency_milliseconds;
        prop_assert!(p.p50 <= p.p90 && p.p90 <= p.p95 && p.p95 <= p.p99 && p.p99 <= p.max && p.mean <= p.max, "{p:?}");
    }
}
