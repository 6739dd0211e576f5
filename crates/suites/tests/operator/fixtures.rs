//! Controllers and small tools that several topics use.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::queue::Backoff;
use mainstay::{Controller, ControllerBuilder, Error, Key, Kind, Operator, SyncRequest, SyncResponse};
use mainstay_testkit::{Cluster, eventually};
use serde_json::{Value, json};

use crate::operator::kinds::{config_map, shop_kind};

/// A controller of shops that own config maps.
pub(crate) fn shops() -> ControllerBuilder {
    Controller::for_kind(shop_kind()).owns::<ConfigMap>()
}

/// The config maps that a parent's spec names: `{"maps": {"a": {"key": "value"}}}`.
pub(crate) fn maps_of(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let mut response = SyncResponse::new();
    for (name, data) in request.parent_json()["spec"]["maps"].as_object().into_iter().flatten() {
        response.add_child(config_map(name, data.clone()))?;
    }
    Ok(response)
}

/// A handler that fails so many times, and then makes the config maps that a parent's spec names.
pub(crate) fn maps_after(
    failures: usize,
    error: impl Fn() -> Error + Send + Sync + 'static,
) -> impl Fn(&SyncRequest) -> Result<SyncResponse, Error> + Send + Sync + 'static {
    let calls = Count::default();
    move |request: &SyncRequest| {
        calls.add();
        if calls.get() <= failures { Err(error()) } else { maps_of(request) }
    }
}

/// A merge patch of the maps that a parent wants.
#[expect(clippy::needless_pass_by_value, reason = "made on the spot with json!")]
pub(crate) fn maps(maps: Value) -> Value {
    json!({"spec": {"maps": maps}})
}

/// A backoff that outlasts every test.
pub(crate) fn for_ever() -> Backoff {
    let hour = Duration::from_hours(1);
    Backoff { initial: hour, factor: 1.0, max: hour, jitter: 0.0 }
}

/// The key of an object in the test's namespace.
pub(crate) fn key(cluster: &Cluster, name: &str) -> Key {
    Key::namespaced(cluster.namespace(), name)
}

/// Waits until there is an object that passes.
pub(crate) async fn until(
    cluster: &Cluster,
    kind: &Kind,
    name: &str,
    passes: impl Fn(&Value) -> bool,
) -> Value {
    let what = format!("{kind} {name} to be as it should");
    eventually(&what, async || cluster.find(kind, name).await.filter(|object| passes(object))).await
}

/// Waits until there is no such object.
pub(crate) async fn until_gone(cluster: &Cluster, kind: &Kind, name: &str) {
    let what = format!("{kind} {name} to be gone");
    eventually(&what, async || cluster.find(kind, name).await.is_none().then_some(())).await;
}

/// How many events the watch of a kind has brought.
pub(crate) fn events(operator: &Operator, kind: &Kind) -> u64 {
    let reports = operator.caches();
    reports.iter().find(|report| report.kind == *kind).map_or(0, |report| report.events)
}

/// Whether a kind is watched.
pub(crate) fn is_watched(operator: &Operator, kind: &Kind) -> bool {
    operator.caches().iter().any(|report| report.kind == *kind)
}

/// Counts, from within a handler.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    /// A handler, and how often it is called.
    pub(crate) fn calls_of<T>(
        handler: impl Fn(&SyncRequest) -> Result<T, Error> + Send + Sync + 'static,
    ) -> (Self, impl Fn(&SyncRequest) -> Result<T, Error> + Send + Sync + 'static) {
        let calls = Self::default();
        let counted = calls.clone();
        let handler = move |request: &SyncRequest| {
            counted.add();
            handler(request)
        };
        (calls, handler)
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Changes what a handler does.
#[derive(Clone, Default)]
pub(crate) struct Switch(Arc<AtomicBool>);

impl Switch {
    pub(crate) fn set(&self, on: bool) {
        self.0.store(on, Ordering::SeqCst);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Opens once.
#[derive(Clone, Default)]
pub(crate) struct Door(Arc<(Mutex<bool>, Condvar)>);

impl Door {
    pub(crate) fn wait(&self) {
        let (open, opened) = &*self.0;
        drop(opened.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
    }

    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

/// Lets a blocked handler go even if the test fails.
pub(crate) struct OpenAtLast(pub(crate) Door);

impl Drop for OpenAtLast {
    fn drop(&mut self) {
        self.0.open();
    }
}
