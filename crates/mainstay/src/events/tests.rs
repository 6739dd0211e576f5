use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::request::Parts;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent, Namespace};
use k8s_openapi::api::events::v1::Event as ApiEvent;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams};
use mainstay_apiserver::{ApiServer, Fault, FaultLayer, Faults};
use proptest::prelude::*;

use super::*;
use crate::clock::TokioClock;
use crate::metrics::Metrics;
use crate::{Key, Kind};

fn web() -> Regarding {
    let object = ObjectRef { kind: Kind::of::<ConfigMap>(), key: Key::namespaced("default", "web") };
    Regarding::new(object, "1-2-3")
}

fn book(limits: Limits) -> EventBook {
    EventBook::new(limits, fastrand::Rng::with_seed(7))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_900_000_000 + second).unwrap()
}

fn describe(emit: &Emit) -> String {
    match emit {
        Emit::Create(_) => "create".to_owned(),
        Emit::Update(written) => format!("count {}", written.count),
        Emit::Suppress(Suppressed::Counted) => "-".to_owned(),
        Emit::Suppress(Suppressed::RateLimited) => "limited".to_owned(),
    }
}

#[test]
fn repetitions_are_written_when_they_have_doubled() {
    let mut book = book(Limits::default());
    let event = Event::warning("Failed", "no image");
    let said: Vec<_> = (0..9).map(|second| describe(&book.record(&web(), &event, at(second)))).collect();
    assert_eq!(said, ["create", "count 2", "-", "count 4", "-", "-", "-", "count 8", "-"]);
    assert!(book.has_rest() && book.due(at(60)).is_empty(), "the last write is not old enough");
    let due = book.due(at(200));
    assert_eq!(due.iter().map(|written| (written.count, written.last)).collect::<Vec<_>>(), [(9, at(8))]);
    assert!(!book.has_rest() && book.due(at(400)).is_empty());
}

#[test]
fn a_slow_series_is_written_once_per_refresh() {
    let mut book = book(Limits::default());
    let event = Event::warning("Failed", "no image");
    let said: Vec<_> = (0..8).map(|turn| describe(&book.record(&web(), &event, at(turn * 70)))).collect();
    assert_eq!(said, ["create", "count 2", "-", "count 4", "-", "count 6", "-", "count 8"]);
}

#[test]
fn after_the_window_it_is_a_new_event() {
    let mut book = book(Limits::default());
    let event = Event::normal("Created", "");
    let Emit::Create(first) = book.record(&web(), &event, at(0)) else { panic!() };
    assert_eq!(describe(&book.record(&web(), &event, at(600))), "count 2");
    let Emit::Create(second) = book.record(&web(), &event, at(1201)) else { panic!() };
    assert_ne!(first.name, second.name);
    assert_eq!((second.first, second.count), (at(1201), 1));
}

#[test]
fn what_differs_in_object_reason_or_note_is_another_event() {
    let mut book = book(Limits::default());
    let again = Regarding { uid: "4-5-6".into(), ..web() };
    for (regarding, event) in [
        (web(), Event::normal("A", "x")),
        (again, Event::normal("A", "x")),
        (web(), Event::warning("A", "x")),
        (web(), Event::normal("B", "x")),
        (web(), Event::normal("A", "y")),
        (web(), Event::normal("A", "x").with_action("Delete")),
    ] {
        assert_eq!(describe(&book.record(&regarding, &event, at(0))), "create");
        assert_eq!(describe(&book.record(&regarding, &event, at(1))), "count 2");
    }
}

#[test]
fn one_object_cannot_flood_and_others_do_not_suffer() {
    let mut book = book(Limits { burst: 2, refill: Duration::from_mins(5), ..Limits::default() });
    let mut new = |regarding: &Regarding, second: i64| {
        describe(&book.record(regarding, &Event::normal("A", &second.to_string()), at(second)))
    };
    assert_eq!([0, 1, 2, 299].map(|second| new(&web(), second)), ["create", "create", "limited", "limited"]);
    let other = Regarding { uid: "4-5-6".into(), ..web() };
    assert_eq!(new(&other, 299), "create");
    assert_eq!(
        [301, 302, 602, 603].map(|second| new(&web(), second)),
        ["create", "limited", "create", "limited"]
    );
    assert_eq!([9000, 9001, 9002].map(|second| new(&web(), second)), ["create", "create", "limited"]);
}

#[test]
fn a_clock_that_is_set_back_stops_nothing() {
    let mut book = book(Limits::default());
    let event = Event::normal("A", "");
    book.record(&web(), &event, at(100));
    let Emit::Update(written) = book.record(&web(), &event, at(0)) else { panic!() };
    assert_eq!((written.first, written.last, written.count), (at(100), at(100), 2));
}

#[test]
fn an_event_that_could_not_be_created_is_created_next_time() {
    let mut book = book(Limits::default());
    let event = Event::normal("A", "");
    let Emit::Create(written) = book.record(&web(), &event, at(0)) else { panic!() };
    book.forget(&written);
    assert_eq!(describe(&book.record(&web(), &event, at(1))), "create");
}

#[test]
fn texts_are_cut_between_characters() {
    let event = Event::normal(&"é".repeat(100), &"a€".repeat(500)).with_action(&"x".repeat(200));
    assert_eq!((event.reason().len(), event.note().len(), event.action().len()), (128, 1024, 128));
    assert_eq!(Event::normal("A", &"€".repeat(400)).note().len(), 1023);
}

fn is_valid_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = |label: &str| {
        label.starts_with(plain) && label.ends_with(plain) && label.chars().all(|c| plain(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

proptest! {
    #[test]
    fn names_are_valid_whatever_the_object_is_called(name in ".{0,300}|[a-z0-9.-]{1,253}") {
        let regarding = Regarding::new(ObjectRef { kind: Kind::of::<Namespace>(), key: Key::cluster(&name) }, "1");
        let mut book = book(Limits::default());
        let Emit::Create(written) = book.record(&regarding, &Event::normal("A", ""), at(0)) else { panic!() };
        prop_assert!(is_valid_name(&written.name), "{}", written.name);
        prop_assert_eq!(written.namespace, "default");
    }

    /// Every occurrence is counted exactly once, unless it was limited; and memory is bounded.
    #[test]
    fn counts_are_true_and_memory_is_bounded(steps in proptest::collection::vec((0..4_u8, 0..3_u8, 0..200_i64), 1..80)) {
        let limits = Limits { memory: 20, ..Limits::default() };
        let mut book = book(limits);
        let mut written = std::collections::BTreeMap::new();
        let (mut happened, mut limited, mut now) = (0, 0, 0);
        for (object, note, wait) in steps {
            now += wait;
            happened += 1;
            let regarding = Regarding { uid: object.to_string().into(), ..web() };
            let emit = book.record(&regarding, &Event::normal("A", &note.to_string()), at(now));
            match emit {
                Emit::Create(new) | Emit::Update(new) => drop(written.insert(new.name, new.count)),
                Emit::Suppress(Suppressed::RateLimited) => limited += 1,
                Emit::Suppress(Suppressed::Counted) => {}
            }
            written.extend(book.due(at(now)).into_iter().map(|due| (due.name, due.count)));
            let (series, buckets) = book.remembered();
            prop_assert!(series <= 20 && buckets <= 20);
        }
        written.extend(book.rest(at(now)).into_iter().map(|rest| (rest.name, rest.count)));
        // Nothing waits longer than the window here, so no count is forgotten unwritten.
        prop_assert_eq!(written.values().sum::<u32>() + limited, happened);
    }
}

#[test]
fn memory_is_bounded_for_many_objects() {
    let mut book = book(Limits { memory: 10, ..Limits::default() });
    for object in 0..100 {
        let regarding = Regarding { uid: object.to_string().into(), ..web() };
        assert_eq!(describe(&book.record(&regarding, &Event::normal("A", ""), at(0))), "create");
    }
    assert_eq!(book.remembered(), (10, 10));
}

/// Faults still to come, the last one first, and the writes so far. Clones share them.
#[derive(Clone)]
struct Script(Arc<Mutex<Vec<Fault>>>, Arc<AtomicUsize>);

impl Faults for Script {
    fn decide(&self, request: &Parts) -> Fault {
        if request.method == "GET" {
            return Fault::None;
        }
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.lock().unwrap().pop().unwrap_or_default()
    }
}

/// A server, its client with faults in the order given, a sink and a writer.
struct World {
    client: Client,
    script: Script,
    metrics: Metrics,
    sink: EventSink,
    writer: EventWriter,
}

fn world(faults: &[Fault]) -> World {
    let server = ApiServer::builder().build().unwrap();
    let script = Script(Arc::new(Mutex::new(faults.iter().rev().cloned().collect())), Arc::default());
    let client = Client::new(FaultLayer::new(script.clone()).around(server), "default");
    let metrics = Metrics::new("shop", "1");
    let clock = Arc::new(TokioClock::starting_at("2030-01-01T12:00:00Z".parse().unwrap()));
    let reporter = Reporter::new("shop.example.com/operator", "shop-0");
    let (sink, writer) = channel(client.clone(), reporter, book(Limits::default()), clock, metrics.clone());
    World { client, script, metrics, sink, writer }
}

async fn events(client: &Client) -> Vec<ApiEvent> {
    Api::<ApiEvent>::all(client.clone()).list(&ListParams::default()).await.unwrap().items
}

fn count(event: &ApiEvent) -> i32 {
    event.series.as_ref().map_or(1, |series| series.count)
}

#[tokio::test(start_paused = true)]
async fn an_event_is_found_by_what_kubectl_describe_asks_for() {
    let World { client, sink, writer, .. } = world(&[]);
    sink.emit(&web(), Event::warning("Failed", "no image").with_action("Deploy"));
    drop(sink);
    writer.run().await;
    let selector = "involvedObject.name=web,involvedObject.namespace=default,involvedObject.kind=ConfigMap,involvedObject.uid=1-2-3";
    let found = Api::<CoreEvent>::namespaced(client.clone(), "default")
        .list(&ListParams::default().fields(selector))
        .await
        .unwrap();
    let [event] = found.items.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        (event.type_.as_deref(), event.reason.as_deref(), event.message.as_deref(), event.action.as_deref()),
        (Some("Warning"), Some("Failed"), Some("no image"), Some("Deploy"))
    );
    assert_eq!(event.reporting_component.as_deref(), Some("shop.example.com/operator"));
    assert_eq!(event.reporting_instance.as_deref(), Some("shop-0"));
    assert_eq!(event.event_time.as_ref().unwrap().0, "2030-01-01T12:00:00Z".parse().unwrap());
    assert_eq!(event.involved_object.api_version.as_deref(), Some("v1"));
}

#[tokio::test(start_paused = true)]
async fn a_hundred_repetitions_are_one_event_with_the_true_count_and_few_writes() {
    let World { client, script, sink, writer, .. } = world(&[]);
    for _ in 0..100 {
        sink.emit(&web(), Event::warning("Failed", "no image"));
    }
    drop(sink);
    writer.run().await;
    assert_eq!(events(&client).await.iter().map(count).collect::<Vec<_>>(), [100]);
    assert_eq!(script.1.load(Ordering::Relaxed), 8, "1, 2, 4 … 64 and the rest");
}

#[tokio::test(start_paused = true)]
async fn a_count_is_written_in_the_end_though_nothing_more_happens() {
    let World { client, sink, writer, .. } = world(&[]);
    for _ in 0..3 {
        sink.emit(&web(), Event::warning("Failed", "no image"));
    }
    let running = tokio::spawn(writer.run());
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(events(&client).await.iter().map(count).collect::<Vec<_>>(), [2]);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(events(&client).await.iter().map(count).collect::<Vec<_>>(), [3]);
    drop(sink);
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn events_of_a_cluster_scoped_object_are_in_the_default_namespace() {
    let World { client, sink, writer, .. } = world(&[]);
    let object = ObjectRef { kind: Kind::of::<Namespace>(), key: Key::cluster("shop") };
    sink.emit(&Regarding::new(object, "9"), Event::normal("Created", ""));
    drop(sink);
    writer.run().await;
    let [event] = &events(&client).await[..] else { panic!() };
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(event.regarding.as_ref().unwrap().namespace, None);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_deleted_meanwhile_is_created_again_with_its_count() {
    let World { client, sink, writer, .. } = world(&[]);
    let running = tokio::spawn(writer.run());
    sink.emit(&web(), Event::normal("A", ""));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let api = Api::<ApiEvent>::namespaced(client.clone(), "default");
    let name = events(&client).await[0].metadata.name.clone().unwrap();
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    sink.emit(&web(), Event::normal("A", ""));
    drop(sink);
    running.await.unwrap();
    assert_eq!(count(&api.get(&name).await.unwrap()), 2);
}

#[tokio::test(start_paused = true)]
async fn faults_are_outlasted_and_a_lost_answer_makes_no_second_event() {
    for fault in [
        Fault::Refuse(500),
        Fault::Refuse(429),
        Fault::Lost,
        Fault::LostAnswer,
        Fault::Delay(Duration::from_mins(1)),
    ] {
        let World { client, metrics, sink, writer, .. } = world(&[fault.clone(), fault.clone()]);
        sink.emit(&web(), Event::normal("A", ""));
        drop(sink);
        writer.run().await;
        assert_eq!(events(&client).await.len(), 1, "{fault:?}");
        assert!(!metrics.render().unwrap().contains("event_drops"), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_dropped_and_counted_and_the_next_goes_on() {
    let World { client, metrics, sink, writer, .. } = world(&[Fault::Refuse(403)]);
    sink.emit(&web(), Event::normal("A", ""));
    sink.emit(&web(), Event::normal("B", ""));
    drop(sink);
    writer.run().await;
    let [event] = &events(&client).await[..] else { panic!() };
    assert_eq!(event.reason.as_deref(), Some("B"));
    assert!(metrics.render().unwrap().contains("mainstay_event_drops_total{reason=\"refused\"} 1\n"));
}

#[tokio::test(start_paused = true)]
async fn emitting_never_waits_though_nobody_writes() {
    let World { metrics, sink, writer, .. } = world(&[]);
    let drops = |reason: &str, count: u32| {
        let line = format!("mainstay_event_drops_total{{reason=\"{reason}\"}} {count}\n");
        metrics.render().unwrap().contains(&line)
    };
    for _ in 0..5000 {
        sink.emit(&web(), Event::normal("A", ""));
    }
    assert!(drops("full", 5000 - 4096));
    drop(writer);
    sink.emit(&web(), Event::normal("A", ""));
    assert!(drops("stopped", 1));
}
