use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{NumberDataPoint, number_data_point};
use tokio::net::TcpListener;

use super::metrics::{FAILURES, LATENCY, PREFIX, REQUESTS, WORKERS};
use super::run_on;
use crate::kinds::Scenario;
use crate::runner::simulate::settings::{Collector, Load, ManagerSettings};
use crate::runner::simulate::wire::Registration;
use crate::simulation::report::{FailureKind, Latencies, WorkerReport};

/// As OpenTelemetry's own types read them: by metric and attributes.
type Numbers = BTreeMap<String, String>;

fn text(attributes: &[KeyValue]) -> String {
    let value = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.clone()) {
        Some(any_value::Value::StringValue(text)) => text,
        other => panic!("{other:?}"),
    };
    attributes.iter().map(|pair| format!("{{{}={}}}", pair.key, value(pair))).collect()
}

fn read(request: &ExportMetricsServiceRequest) -> (String, Numbers) {
    let [of] = &request.resource_metrics[..] else { panic!("{request:?}") };
    let [scope] = &of.scope_metrics[..] else { panic!("{request:?}") };
    let mut numbers = Numbers::new();
    for metric in &scope.metrics {
        let (kind, points) = match metric.data.as_ref().unwrap() {
            Data::Sum(sum) if sum.is_monotonic && sum.aggregation_temporality == 2 => {
                ("sum", &sum.data_points)
            }
            Data::Gauge(gauge) => ("gauge", &gauge.data_points),
            other => panic!("{other:?}"),
        };
        for point in points {
            assert!(point.start_time_unix_nano > 0 && point.time_unix_nano >= point.start_time_unix_nano);
            let name = format!("{} {kind}{}", metric.name, text(&point.attributes));
            numbers.insert(name, value(point));
        }
    }
    (text(&of.resource.as_ref().unwrap().attributes), numbers)
}

fn value(point: &NumberDataPoint) -> String {
    match point.value.unwrap() {
        number_data_point::Value::AsInt(whole) => whole.to_string(),
        number_data_point::Value::AsDouble(number) => format!("{number:.3}"),
    }
}

type Received = Arc<Mutex<Vec<ExportMetricsServiceRequest>>>;

/// Takes what is sent to it.
async fn collector() -> (String, Received) {
    async fn take(State(received): State<Received>, headers: HeaderMap, body: String) -> &'static str {
        assert_eq!(headers["content-type"], "application/json");
        received.lock().unwrap().push(serde_json::from_str(&body).unwrap());
        "{}"
    }
    let received = Received::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/v1/metrics", post(take)).with_state(received.clone());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, received)
}

fn settings(endpoint: &str) -> ManagerSettings {
    let run_time = Duration::from_millis(10);
    ManagerSettings {
        load: Load { run: "r".into(), scenario: Scenario::Identity, users: 1, run_time },
        workers: 1,
        start: Duration::from_secs(20),
        grace: Duration::from_secs(20),
        linger: Duration::from_secs(20),
        address: "127.0.0.1:0".parse().unwrap(),
        collector: Some(Collector {
            endpoint: endpoint.to_owned(),
            resource: vec![("service.name".into(), "mainstay-simulation".into())],
        }),
    }
}

fn report() -> WorkerReport {
    let mut latencies = Latencies::default();
    latencies.record(Duration::from_millis(20));
    latencies.record(Duration::from_millis(40));
    WorkerReport {
        run: "r".into(),
        worker: 0,
        peer: "peers-0-0".into(),
        requests: 5,
        failures: BTreeMap::from([(FailureKind::Timeout, 3)]),
        latencies,
        duration_milliseconds: 10,
    }
}

/// A run with one worker, which reports at once. What the manager told, and its exit code.
async fn run(settings: ManagerSettings) -> (Vec<String>, u8) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = {
        let told = told.clone();
        move |line: &str| told.lock().unwrap().push(line.to_owned())
    };
    let manager = tokio::spawn(run_on(listener, settings, tell));
    let registration = Registration { run: "r".into(), worker: 0, peer: "peers-0-0".into() };
    say(&url, "/register", &registration).await;
    say(&url, "/report", &report()).await;
    say(&url, "/end", &()).await;
    let code = manager.await.unwrap();
    let told = told.lock().unwrap().clone();
    (told, code)
}

/// Says it until it is taken.
async fn say(url: &str, path: &str, body: &impl serde::Serialize) {
    let fetch = crate::fetch::Fetch::default();
    let limits = (Duration::from_secs(5), 10_000);
    let body = crate::fetch::Body::json(body);
    while fetch.ask(&http::Method::POST, &format!("{url}{path}"), &body, limits).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_collector_gets_the_numbers_as_opentelemetry_has_them() {
    let (endpoint, received) = collector().await;
    let (told, code) = run(settings(&endpoint)).await;
    assert_eq!((code, told.iter().any(|line| line.contains("collector"))), (0, false), "{told:?}");
    let received = received.lock().unwrap();
    let (resource, numbers) = read(received.last().unwrap());
    assert_eq!(resource, "{service.name=mainstay-simulation}");
    let lines: Vec<String> = numbers.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
    expect_test::expect![[r#"
        mainstay_simulation_failures sum{kind=timeout} 3
        mainstay_simulation_latency_seconds gauge{quantile=0.5} 0.020
        mainstay_simulation_latency_seconds gauge{quantile=0.95} 0.040
        mainstay_simulation_latency_seconds gauge{quantile=0.99} 0.040
        mainstay_simulation_latency_seconds gauge{quantile=0.9} 0.040
        mainstay_simulation_latency_seconds gauge{quantile=1} 0.040
        mainstay_simulation_requests sum 5
        mainstay_simulation_workers gauge{state=expected} 1
        mainstay_simulation_workers gauge{state=registered} 1
        mainstay_simulation_workers gauge{state=reported} 1
    "#]]
    .assert_eq(&lines.concat());
}

#[tokio::test]
async fn a_collector_that_is_not_there_is_told_of_and_changes_nothing() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let (told, code) = run(settings(&endpoint)).await;
    assert_eq!(code, 0);
    let of_it = told.iter().find(|line| line.contains("collector")).unwrap();
    assert!(
        of_it.contains("numbers do not get to the collector") && of_it.contains("cannot be reached"),
        "{of_it}"
    );
}

#[test]
fn the_documentation_lists_every_number() {
    let docs = include_str!("../../../../../../docs/networks.md");
    let numbers = [REQUESTS, FAILURES, LATENCY, WORKERS];
    for (name, what) in numbers {
        let is_it = |row: &&str| {
            row.starts_with(&format!("| `{PREFIX}_{name}` |")) && row.ends_with(&format!("| {what} |"))
        };
        assert_eq!(docs.lines().filter(is_it).count(), 1, "{name}");
    }
    let rows = docs.lines().filter(|row| row.starts_with(&format!("| `{PREFIX}_")));
    assert_eq!(rows.count(), numbers.len());
}
