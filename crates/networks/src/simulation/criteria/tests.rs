use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use expect_test::{Expect, expect};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;

use super::*;
use crate::kinds::Scenario;
use crate::simulation::report::{FailureKind, Latencies, WorkerReport};

const ALL: [Aggregation; 9] = [
    Aggregation::Min,
    Aggregation::Max,
    Aggregation::Mean,
    Aggregation::Sum,
    Aggregation::Last,
    Aggregation::P50,
    Aggregation::P90,
    Aggregation::P95,
    Aggregation::P99,
];

/// Requests, failures, and how long each answer took.
fn report(peers: &[(u64, u64, &[u64])]) -> Report {
    let told: BTreeMap<usize, WorkerReport> = peers
        .iter()
        .enumerate()
        .map(|(worker, (requests, failed, took))| {
            let mut latencies = Latencies::default();
            took.iter().for_each(|milliseconds| latencies.record(Duration::from_millis(*milliseconds)));
            let failures = [(FailureKind::Timeout, *failed)].into();
            let (run, peer) = ("r".to_owned(), format!("peers-0-{worker}"));
            let report = WorkerReport {
                run,
                worker,
                peer,
                requests: *requests,
                failures,
                duration_milliseconds: 2000,
                latencies,
            };
            (worker, report)
        })
        .collect();
    let at = Timestamp::UNIX_EPOCH;
    Report::of(("r", Scenario::Identity, 1), (at, at), peers.len(), &told)
}

fn sample(ready_peers: i32, missing_edges: i32, components: i32) -> NetworkSample {
    NetworkSample { at: Time(Timestamp::UNIX_EPOCH), ready_peers, missing_edges, components }
}

fn criterion(text: &str) -> CriterionSpec {
    let [aggregation, metric, comparison, threshold] =
        text.split(' ').collect::<Vec<_>>().try_into().unwrap();
    serde_json::from_value(serde_json::json!({
        "metric": metric, "aggregation": aggregation, "comparison": comparison, "threshold": threshold.parse::<f64>().unwrap(),
    }))
    .unwrap()
}

fn check(criteria: &[&str], report: &Report, samples: &[NetworkSample], expect: &Expect) {
    let criteria: Vec<CriterionSpec> = criteria.iter().map(|text| criterion(text)).collect();
    let measures = Measures { report, samples };
    let results = judge(&criteria, measures);
    let mut told = String::new();
    for result in &results {
        let met = if result.met { "met" } else { "NOT" };
        writeln!(told, "{met} {}", result.message).unwrap();
    }
    writeln!(told, "{:?}", verdict(&results, measures)).unwrap();
    expect.assert_eq(&told);
}

#[test]
fn every_metric_has_a_value_for_every_aggregation_that_makes_sense() {
    let report = report(&[(10, 0, &[10, 20]), (30, 3, &[30]), (20, 2, &[40, 100])]);
    let samples = [sample(3, 0, 1), sample(1, 4, 2), sample(2, 1, 1)];
    let measures = Measures { report: &report, samples: &samples };
    let metrics = [
        Metric::Requests,
        Metric::Failures,
        Metric::FailureRatio,
        Metric::RequestsPerSecond,
        Metric::LatencyMilliseconds,
        Metric::ReadyPeers,
        Metric::MissingEdges,
        Metric::Components,
    ];
    let mut table = String::new();
    for metric in metrics {
        write!(table, "{:20}", word(metric)).unwrap();
        for aggregation in ALL {
            let value =
                value(metric, aggregation, measures).map_or("-".into(), |value| format!("{value:.2}"));
            write!(table, " {value:>6}").unwrap();
        }
        table.push('\n');
    }
    expect![[r#"
        requests              10.00  30.00  20.00  60.00      -  20.00  30.00  30.00  30.00
        failures               0.00   3.00   1.67   5.00      -   2.00   3.00   3.00   3.00
        failureRatio           0.00   0.10   0.07   0.20      -   0.10   0.10   0.10   0.10
        requestsPerSecond      5.00  15.00  10.00  30.00      -  10.00  15.00  15.00  15.00
        latencyMilliseconds   10.00 100.03  40.01 200.04      -  30.02 100.03 100.03 100.03
        readyPeers             1.00   3.00   2.00   6.00   2.00   2.00   3.00   3.00   3.00
        missingEdges           0.00   4.00   1.67   5.00   1.00   1.00   4.00   4.00   4.00
        components             1.00   2.00   1.33   4.00   1.00   1.00   2.00   2.00   2.00
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_criterion_says_what_was_found() {
    let report = report(&[(10, 0, &[10]), (30, 3, &[30])]);
    let criteria = [
        "mean requests >= 20",
        "max failureRatio < 0.1",
        "max failureRatio <= 0.1",
        "sum failures == 3",
        "p99 latencyMilliseconds > 30",
        "last requests > 0",
        "last components == 1",
    ];
    check(
        &criteria,
        &report,
        &[],
        &expect![[r#"
        met mean of requests is 20, which is >= 20
        NOT max of failureRatio is 0.1, which is not < 0.1
        met max of failureRatio is 0.1, which is <= 0.1
        met sum of failures is 3, which is == 3
        met p99 of latencyMilliseconds is 30.015, which is > 30
        NOT last of requests cannot be told: what is measured for each peer has no last value
        NOT last of components cannot be told: the network was not looked at while the load was there
        Failed
    "#]],
    );
}

#[test]
fn a_request_must_have_been_answered() {
    check(
        &[],
        &report(&[(5, 4, &[10]), (3, 3, &[])]),
        &[],
        &expect![[r#"
        Passed
    "#]],
    );
    check(
        &[],
        &report(&[(1, 1, &[])]),
        &[],
        &expect![[r#"
        Failed
    "#]],
    );
    check(
        &["min requests > 0", "sum failures >= 0"],
        &report(&[(7, 7, &[]), (9, 9, &[])]),
        &[],
        &expect![[r#"
        met min of requests is 7, which is > 0
        met sum of failures is 16, which is >= 0
        Failed
    "#]],
    );
    check(
        &[],
        &report(&[(0, 0, &[])]),
        &[],
        &expect![[r#"
        Failed
    "#]],
    );
}

#[test]
fn where_nothing_was_measured_nothing_is_met() {
    check(
        &["max latencyMilliseconds < 5", "mean failureRatio < 1", "min readyPeers >= 0"],
        &report(&[(0, 0, &[])]),
        &[],
        &expect![[r#"
        NOT max of latencyMilliseconds cannot be told: no request was answered
        NOT mean of failureRatio cannot be told: no request was answered
        NOT min of readyPeers cannot be told: the network was not looked at while the load was there
        Failed
    "#]],
    );
}

proptest! {
    #[test]
    fn aggregations_are_in_order(values in proptest::collection::vec(-1e6..1e6_f64, 1..40)) {
        let of = |aggregation| aggregate(&values, aggregation).unwrap();
        let ascending = [Aggregation::Min, Aggregation::P50, Aggregation::P90, Aggregation::P95, Aggregation::P99, Aggregation::Max].map(of);
        prop_assert!(ascending.is_sorted(), "{ascending:?}");
        prop_assert!(of(Aggregation::Min) <= of(Aggregation::Mean) && of(Aggregation::Mean) <= of(Aggregation::Max));
        let half = values.iter().filter(|value| **value <= of(Aggregation::P50)).count();
        prop_assert!(half * 2 >= values.len());
        prop_assert!(values.contains(&of(Aggregation::P90)));
    }

    #[test]
    fn exactly_one_of_less_equal_and_more_holds(value in -9..9_i32, threshold in -9..9_i32) {
        let holds = |comparison| compare(f64::from(value), comparison, f64::from(threshold));
        let exclusive = [Comparison::Less, Comparison::Equal, Comparison::More].map(holds);
        prop_assert_eq!(exclusive.iter().filter(|is| **is).count(), 1);
        prop_assert_eq!(holds(Comparison::AtMost), !holds(Comparison::More));
        prop_assert_eq!(holds(Comparison::AtLeast), !holds(Comparison::Less));
    }
}
