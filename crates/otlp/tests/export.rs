//! Spans arrive at a collector.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use mainstay_otlp::layer;
use tokio::net::TcpListener;
use tracing_subscriber::prelude::*;

#[derive(Debug, PartialEq)]
struct Span {
    service: String,
    name: String,
    attributes: BTreeMap<String, String>,
}

/// A protobuf message: the fields that have bytes or a number, by their number.
struct Message<'a>(Vec<(u64, Field<'a>)>);

enum Field<'a> {
    Bytes(&'a [u8]),
    Number(u64),
}

fn number(bytes: &mut &[u8]) -> u64 {
    let mut found = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        found |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    found
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

impl<'a> Message<'a> {
    fn read(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = number(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Number(number(&mut bytes)),
                1 => Field::Bytes(take(&mut bytes, 8)),
                2 => {
                    let length = usize::try_from(number(&mut bytes)).unwrap();
                    Field::Bytes(take(&mut bytes, length))
                }
                5 => Field::Bytes(take(&mut bytes, 4)),
                other => panic!("wire type {other}"),
            };
            fields.push((tag >> 3, field));
        }
        Self(fields)
    }

    fn bytes(&self, wanted: u64) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter_map(move |(found, field)| match field {
            Field::Bytes(bytes) if *found == wanted => Some(*bytes),
            _ => None,
        })
    }

    fn messages(&self, wanted: u64) -> impl Iterator<Item = Message<'a>> {
        self.bytes(wanted).map(Message::read)
    }

    fn text(&self, wanted: u64) -> String {
        String::from_utf8(self.bytes(wanted).next().unwrap_or_default().to_vec()).unwrap()
    }

    /// Pairs of a name and a value that is a text, a truth or a number.
    fn attributes(&self, wanted: u64) -> BTreeMap<String, String> {
        let values = |message: &Message<'_>| {
            let value = message.messages(2).next().unwrap();
            let [(_, field)] = &value.0[..] else { panic!("a value has one field") };
            match field {
                Field::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Field::Number(number) => number.to_string(),
            }
        };
        self.messages(wanted).map(|message| (message.text(1), values(&message))).collect()
    }
}

/// The spans of an `ExportTraceServiceRequest`.
fn spans(request: &[u8]) -> Vec<Span> {
    let mut found = Vec::new();
    for of_resource in Message::read(request).messages(1) {
        let resource = of_resource.messages(1).next().unwrap();
        let service = resource.attributes(1).remove("service.name").unwrap();
        for of_scope in of_resource.messages(2) {
            found.extend(of_scope.messages(2).map(|span| Span {
                service: service.clone(),
                name: span.text(5),
                attributes: span.attributes(9),
            }));
        }
    }
    found
}

/// What a collector has received. It answers the first requests with an error.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
    failures: Arc<Mutex<u32>>,
}

async fn receive(State(collector): State<Collector>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let mut failures = collector.failures.lock().unwrap();
    if *failures > 0 {
        *failures -= 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    assert_eq!(headers["content-type"], "application/x-protobuf");
    collector.spans.lock().unwrap().extend(spans(&body));
    StatusCode::OK
}

impl Collector {
    async fn listen(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/v1/traces", post(receive)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }
}

#[tokio::test]
async fn a_span_arrives_with_its_attributes_and_its_service() {
    let collector = Collector::default();
    let address = collector.listen().await;
    let (layer, guard) = layer(&format!("http://{address}"), "shop-operator").unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let outer = tracing::info_span!("sync", parent = "shop/web", trigger = "spec changed", turn = 3);
        let _entered = outer.enter();
        tracing::info_span!("write", step = "create").in_scope(|| {});
    });
    guard.shutdown().await;
    let mut found = collector.spans.lock().unwrap();
    for span in &mut *found {
        span.attributes.retain(|name, _| ["parent", "trigger", "turn", "step"].contains(&name.as_str()));
    }
    let span = |name: &str, attributes: &[(&str, &str)]| Span {
        service: "shop-operator".to_owned(),
        name: name.to_owned(),
        attributes: attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    };
    let outer = span("sync", &[("parent", "shop/web"), ("trigger", "spec changed"), ("turn", "3")]);
    assert_eq!(*found, [span("write", &[("step", "create")]), outer]);
}

#[tokio::test]
async fn a_collector_that_is_busy_gets_the_spans_later() {
    let collector = Collector::default();
    *collector.failures.lock().unwrap() = 1;
    let address = collector.listen().await;
    let (layer, guard) = layer(&format!("http://{address}/v1/traces"), "shop").unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        for _ in 0..600 {
            tracing::info_span!("sync").in_scope(|| {});
        }
    });
    assert_eq!(guard.dropped(), 0);
    guard.shutdown().await;
    assert_eq!(collector.spans.lock().unwrap().len(), 600, "in two batches, the first sent twice");
}

#[tokio::test]
async fn more_spans_than_fit_are_dropped_and_counted() {
    let collector = Collector::default();
    let address = collector.listen().await;
    let (layer, guard) = layer(&format!("http://{address}"), "shop").unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        for _ in 0..3000 {
            tracing::info_span!("sync").in_scope(|| {});
        }
    });
    assert_eq!(guard.dropped(), 3000 - 2048);
    guard.shutdown().await;
    assert_eq!(collector.spans.lock().unwrap().len(), 2048);
}

#[tokio::test]
async fn a_collector_that_is_not_there_holds_nothing_up() {
    let (layer, guard) = layer("http://127.0.0.1:1", "shop").unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        tracing::info_span!("sync").in_scope(|| {});
    });
    guard.shutdown().await;
}
