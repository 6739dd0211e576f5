//! What can only be brought about from inside of an operator: a loop that is stuck, a watch that has gone stale.

mod contended;
mod failed;
mod schemas;
mod terminal;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::client::Body;
use mainstay_apiserver::{ApiServer, Delivery, WatchDelivery, WatchEvent, WatchInfo};

use super::Operator;
use crate::controller::Controller;
use crate::handler::{SyncRequest, SyncResponse};
use crate::runner::lock;

fn operator(client: Client, stuck_after: Duration) -> Operator {
    let controller = Controller::of::<ConfigMap>().owns::<Secret>();
    let controller = controller.sync(|_: &SyncRequest| Ok(SyncResponse::new()));
    Operator::builder("pairs", client).stuck_after(stuck_after).controller(controller).build().unwrap()
}

fn server() -> ApiServer {
    ApiServer::builder().build().unwrap()
}

/// Looks again and again, on a thread of its own, until it is so.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn livez_fails_while_the_loop_is_stuck_and_passes_when_it_goes_on() {
    let operator = operator(Client::new(server(), "default"), Duration::from_millis(500));
    let running = tokio::spawn({
        let operator = operator.clone();
        async move { operator.run(std::future::pending()).await }
    });
    let pulse = operator.runner.pulse.clone();
    let begun = Instant::now();
    // An idle loop beats by itself: this is more than its limit.
    wait_until("the limit to pass", || begun.elapsed() > Duration::from_secs(1));
    wait_until("a sign of life", || pulse.check().is_ok());

    let (free, freed) = mpsc::channel::<()>();
    let runner = Arc::clone(&operator.runner);
    let holder = thread::spawn(move || {
        let _held = lock(&runner.queue);
        freed.recv()
    });
    wait_until("/livez to fail", || pulse.check().is_err());
    free.send(()).unwrap();
    holder.join().unwrap().unwrap();
    wait_until("/livez to pass", || pulse.check().is_ok());
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn change_is_answered_without_waiting() {
    let server = server();
    let client = Client::new(server.clone(), "default");
    let controller = Controller::of::<ConfigMap>().owns::<Secret>().sync(|request: &SyncRequest| {
        let metadata = serde_json::json!({"name": request.name()});
        let secret = serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
        SyncResponse::new().with_child(secret)
    });
    let operator = Operator::builder("pairs", client.clone()).controller(controller).build().unwrap();
    let running = tokio::spawn({
        let operator = operator.clone();
        async move { operator.run(std::future::pending()).await }
    });
    while !operator.controllers().iter().any(|controller| controller.ready) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Time stands still as long as there is something to do, and here is always something: whatever waits, waits for ever.
    let begun = tokio::time::Instant::now();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map = serde_json::from_value(serde_json::json!({"metadata": {"name": "paint"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let secrets: Api<Secret> = Api::default_namespaced(client);
    let mut found = None;
    for _ in 0..10_000 {
        found = secrets.get_opt("paint").await.unwrap();
        if found.is_some() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(found.is_some(), "the sync waits for something other than its turn");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    running.abort();
}

/// Runs an operator for as long as the task is not aborted.
fn run(operator: &Operator) -> tokio::task::JoinHandle<Result<(), super::RunError>> {
    let operator = operator.clone();
    tokio::spawn(async move { operator.run(std::future::pending()).await })
}

/// A client of a server that can be out of reach.
fn client(server: &ApiServer, cut: &Arc<AtomicBool>) -> Client {
    let (server, cut) = (Client::new(server.clone(), "default"), Arc::clone(cut));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (server, cut) = (server.clone(), cut.load(Ordering::SeqCst));
        async move {
            if cut {
                return Err(kube::Error::Service("the server is out of reach".into()));
            }
            server.send(request).await
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn readyz_fails_when_watches_have_been_stale_for_a_minute() {
    let (server, cut) = (server(), Arc::new(AtomicBool::new(false)));
    let operator = operator(client(&server, &cut), Duration::from_secs(30));
    let running = tokio::spawn({
        let operator = operator.clone();
        async move { operator.run(std::future::pending()).await }
    });
    let failing = || -> Vec<String> {
        operator.runner.readiness().into_iter().filter_map(|(_, result)| result.err()).collect()
    };
    let until = async |what: &str, is_so: &dyn Fn() -> bool| {
        let deadline = tokio::time::Instant::now() + Duration::from_mins(20);
        while !is_so() {
            assert!(tokio::time::Instant::now() < deadline, "waited in vain: {what}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    until("it to be ready", &|| operator.caches().len() == 2 && failing().is_empty()).await;
    let stale = || operator.caches().iter().any(|report| report.state.name() == "Stale");
    // The server ends each watch after some minutes, and nobody can begin another.
    cut.store(true, Ordering::SeqCst);
    until("a watch to end", &stale).await;
    assert!(failing().is_empty(), "a cut connection is everyday business: {:?}", failing());
    until("/readyz to fail", &|| failing().len() == 2).await;
    assert!(failing().iter().all(|why| why.starts_with("stale:")), "{:?}", failing());
    cut.store(false, Ordering::SeqCst);
    until("it to be ready again", &|| failing().is_empty()).await;
    running.abort();
}

/// Delivers nothing while it is true, and nobody notices: the connection is half-open.
#[derive(Clone, Default)]
struct HalfOpen(Arc<tokio::sync::watch::Sender<bool>>);

impl HalfOpen {
    async fn heals(&self) {
        let _ = self.0.subscribe().wait_for(|half_open| !half_open).await;
    }
}

impl WatchDelivery for HalfOpen {
    fn deliver<'a>(&'a self, _: &'a WatchInfo, _: &'a WatchEvent) -> BoxFuture<'a, Delivery> {
        Box::pin(async {
            self.heals().await;
            Delivery::Send
        })
    }
}

#[tokio::test(start_paused = true)]
async fn readyz_fails_two_minutes_after_the_last_word_of_a_watch() {
    let half_open = HalfOpen::default();
    let server = ApiServer::builder().watch_delivery(half_open.clone()).build().unwrap();
    let server = Client::new(server, "default");
    let waiting = half_open.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (server, half_open) = (server.clone(), waiting.clone());
        async move {
            half_open.heals().await;
            server.send(request).await
        }
    });
    let operator = operator(Client::new(service, "default"), Duration::from_secs(30));
    let running = tokio::spawn({
        let operator = operator.clone();
        async move { operator.run(std::future::pending()).await }
    });
    let is_ready = || operator.runner.readiness().iter().all(|(_, result)| result.is_ok());
    while operator.caches().len() < 2 || !is_ready() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Within the hour of silence that a healthy server is asked through, it stays ready.
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert!(is_ready(), "{:?}", operator.runner.readiness());
    }
    half_open.0.send_replace(true);
    tokio::time::sleep(Duration::from_secs(121)).await;
    let readiness = operator.runner.readiness();
    assert!(readiness.iter().all(|(_, result)| result.is_err()), "{readiness:?} {:?}", operator.caches());
    half_open.0.send_replace(false);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(is_ready(), "{:?}", operator.runner.readiness());
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn writes_that_are_not_begun_by_the_deadline_are_left_to_the_next_sync() {
    let server = Client::new(server(), "default");
    let slow = server.clone();
    // Every write takes two seconds of a time that costs nothing.
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let slow = slow.clone();
        async move {
            if request.method() == http::Method::PATCH {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            slow.send(request).await
        }
    });
    let controller = Controller::of::<ConfigMap>().owns::<Secret>().deadline(Duration::from_secs(3)).sync(
        |_: &SyncRequest| {
            ["a", "b", "c"].into_iter().try_fold(SyncResponse::new(), |response, name| {
                let metadata = serde_json::json!({"name": name});
                response.with_child(
                    serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}),
                )
            })
        },
    );
    let operator = Operator::builder("slow", Client::new(service, "default"))
        .namespace("default")
        .controller(controller);
    let stepper = operator.build().unwrap().stepper().unwrap();
    // The namespace has a map of its own from the start.
    let step = stepper.step().await.unwrap().unwrap();
    let sync = step.sync.unwrap();
    assert_eq!(sync.outcomes, ["done", "done", "not tried: the time of the sync was up"], "{}", sync.plan);
    assert!(sync.error.unwrap().contains("longer than its deadline"));
    let secrets: Api<Secret> = Api::default_namespaced(server);
    while secrets.get_opt("c").await.unwrap().is_none() {
        stepper.step().await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn an_operator_with_leases_is_not_stepped_through() {
    let operator = Operator::builder("pairs", Client::new(server(), "default"));
    let operator = operator.replicas(crate::replicas::Replicas::leader("default")).build().unwrap();
    assert!(matches!(operator.stepper(), Err(super::RunError::Leases)));
}
