use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use expect_test::expect_file;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::metrics::{FAILURES, LATENCY, PREFIX, REQUESTS, WORKERS};
use super::run_on;
use crate::kinds::Scenario;
use crate::runner::simulate::settings::{Collector, Load, ManagerSettings};
use crate::runner::simulate::wire::Registration;
use crate::simulation::report::{FailureKind, Latencies, WorkerReport};

type Received = Arc<Mutex<Vec<Value>>>;

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

/// Takes the times out of a document, which are nanoseconds in quotes.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name.ends_with("TimeUnixNano") || name == "timeUnixNano" {
                    let nanos: u64 = value.as_str().unwrap().parse().unwrap();
                    assert!(nanos > 1_700_000_000_000_000_000, "{nanos}");
                    *value = json!("…");
                }
                without_times(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// OpenTelemetry's own types read this document as it is meant: it was given to them when it was written down.
#[tokio::test]
async fn a_collector_gets_the_numbers_as_otlp_has_them() {
    let (endpoint, received) = collector().await;
    let (told, code) = run(settings(&endpoint)).await;
    assert_eq!((code, told.iter().any(|line| line.contains("collector"))), (0, false), "{told:?}");
    let mut last = received.lock().unwrap().last().cloned().unwrap();
    without_times(&mut last);
    let scope = &mut last["resourceMetrics"][0]["scopeMetrics"][0]["scope"];
    assert_eq!(scope["version"].take(), env!("CARGO_PKG_VERSION"));
    expect_file!["numbers.otlp.json"].assert_eq(&format!("{last:#}\n"));
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
