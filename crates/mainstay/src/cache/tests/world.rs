//! A server with faults before it, caches of it, and a log of what listeners were told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::request::Parts;
use http_body_util::{BodyExt as _, Full};
use mainstay_apiserver::{
    ApiServer, Delivery, Fault, FaultLayer, Faults, WatchDelivery, WatchEvent, WatchInfo,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::cache::{
    Caches, Change, Departure, KindReport, Options, Selector, Subscription, Watch, WatchScope,
};
use crate::kind::{Kind, Scope};

pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(super) fn maps() -> Kind {
    Kind::new("v1", "ConfigMap", "configmaps", Scope::Namespaced)
}

pub(super) fn map(name: &str, value: &str) -> Value {
    let metadata = json!({"name": name, "labels": {"test": "yes"}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": value}})
}

/// The maps of a test, without the one that every namespace has.
pub(super) fn scope() -> WatchScope {
    WatchScope::all().labelled("test=yes".parse().unwrap())
}

/// Says what becomes of a request, until it says otherwise.
type Rule = Box<dyn FnMut(&Parts) -> Fault + Send>;

/// What the test decides about requests and events.
#[derive(Clone, Default)]
pub(super) struct Weather {
    rule: Arc<Mutex<Option<Rule>>>,
    /// `MODIFIED a` by what becomes of it, once.
    events: Arc<Mutex<BTreeMap<String, Delivery>>>,
    /// Events wait while this is true.
    pub(super) held: Arc<watch::Sender<bool>>,
    /// The requests that were made of the kind under test.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Weather {
    pub(super) fn on_request(&self, rule: impl FnMut(&Parts) -> Fault + Send + 'static) {
        *self.rule.lock().unwrap() = Some(Box::new(rule));
    }

    pub(super) fn calm(&self) {
        *self.rule.lock().unwrap() = None;
    }

    pub(super) fn on_event(&self, event: &str, delivery: Delivery) {
        self.events.lock().unwrap().insert(event.to_owned(), delivery);
    }

    /// How many requests had this in their query since the last call.
    pub(super) fn requests_with(&self, part: &str) -> usize {
        self.requests.lock().unwrap().drain(..).filter(|request| request.contains(part)).count()
    }
}

impl Faults for Weather {
    fn decide(&self, request: &Parts) -> Fault {
        self.requests.lock().unwrap().push(request.uri.to_string());
        self.rule.lock().unwrap().as_mut().map_or(Fault::None, |rule| rule(request))
    }
}

impl WatchDelivery for Weather {
    fn deliver<'a>(&'a self, info: &'a WatchInfo, event: &'a WatchEvent) -> BoxFuture<'a, Delivery> {
        async move {
            if info.resource != "configmaps" {
                return Delivery::Send;
            }
            let mut held = self.held.subscribe();
            let _ = held.wait_for(|held| !held).await;
            let name = format!("{} {}", event.kind, event.name);
            self.events.lock().unwrap().remove(&name).unwrap_or(Delivery::Send)
        }
        .boxed()
    }
}

/// The server that answers now.
#[derive(Clone)]
struct Current(Arc<Mutex<ApiServer>>);

impl<B> tower_service::Service<http::Request<B>> for Current
where
    ApiServer: tower_service::Service<http::Request<B>>,
{
    type Response = <ApiServer as tower_service::Service<http::Request<B>>>::Response;
    type Error = <ApiServer as tower_service::Service<http::Request<B>>>::Error;
    type Future = <ApiServer as tower_service::Service<http::Request<B>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        self.0.lock().unwrap().clone().call(request)
    }
}

pub(super) struct World {
    server: Arc<Mutex<ApiServer>>,
    pub(super) caches: Caches,
    pub(super) weather: Weather,
    told: Arc<Mutex<Vec<String>>>,
    _subscription: Subscription,
}

impl World {
    pub(super) fn new() -> Self {
        let weather = Weather::default();
        let server = Arc::new(Mutex::new(new_server(&weather)));
        let faulty = FaultLayer::new(weather.clone()).around(Current(server.clone()));
        let caches = Caches::new(kube::Client::new(faulty, "default"), Rng::with_seed(3));
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = told.clone();
        let subscription = caches.subscribe(move |_, change| log.lock().unwrap().push(describe(change)));
        Self { server, caches, weather, told, _subscription: subscription }
    }

    /// The server that answers now.
    pub(super) fn server(&self) -> ApiServer {
        self.server.lock().unwrap().clone()
    }

    /// Puts an empty server in the place of the one before.
    pub(super) fn replace_server(&self) {
        *self.server.lock().unwrap() = new_server(&self.weather);
    }

    /// Watches the maps of the test and waits until they are all there.
    pub(super) async fn watch(&self) -> Watch {
        let watch = self.caches.watch(&maps(), scope(), Options::default());
        watch.synced().await;
        watch
    }

    /// Writes past the caches.
    pub(super) async fn send(&self, method: &str, path: &str, body: Value) -> Bytes {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(Full::new(body))
            .unwrap();
        let response = self.server().handle(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(status.is_success(), "{method} {path}: {status} {body:?}");
        body
    }

    pub(super) async fn create(&self, names: &[&str]) {
        for name in names {
            self.send("POST", MAPS, map(name, "1")).await;
        }
    }

    pub(super) async fn set(&self, name: &str, value: &str) -> Bytes {
        self.send("PATCH", &format!("{MAPS}/{name}"), json!({"data": {"key": value}})).await
    }

    pub(super) async fn delete(&self, name: &str) -> Bytes {
        self.send("DELETE", &format!("{MAPS}/{name}"), Value::Null).await
    }

    /// `name=value` of what is cached.
    pub(super) fn cached(&self) -> String {
        let all = self.caches.list(&maps(), None, &Selector::everything());
        let text = |object: &Arc<crate::cache::Object>| {
            let value = object.field("/data/key").unwrap_or_default();
            format!("{}={}", object.key().name(), value.as_str().unwrap_or("?"))
        };
        all.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    /// Waits, by tokio's clock, until something is so.
    pub(super) async fn until(&self, what: &str, mut so: impl FnMut(&Self) -> bool) {
        for _ in 0..60_000 {
            if so(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what} did not come true; cached: {}, {:?}", self.cached(), self.caches.reports());
    }

    pub(super) async fn until_cached(&self, expected: &str) {
        self.until(expected, |world| world.cached() == expected).await;
    }

    /// What listeners were told since the last call.
    pub(super) fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }

    pub(super) fn report(&self) -> KindReport {
        self.caches.reports().remove(0)
    }
}

fn new_server(weather: &Weather) -> ApiServer {
    ApiServer::builder().watch_delivery(weather.clone()).build().unwrap()
}

fn describe(change: &Change) -> String {
    let name = change.object().map(|object| object.key().name().to_owned()).unwrap_or_default();
    let what = match change {
        Change::Nothing => "nothing",
        Change::Added { .. } => "added",
        Change::Updated { .. } => "updated",
        Change::Deleted { departure: Departure::Object, .. } => "deleted",
        Change::Deleted { departure: Departure::Kind, .. } => "gone with its kind",
    };
    format!("{name} {what}")
}
