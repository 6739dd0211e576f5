//! Writes events in the background.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event as ApiEvent, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Emit, Event, EventBook, Regarding, Suppressed, WORD_BYTES_MAX, Written, cut};
use crate::clock::Clock;
use crate::metrics::Metrics;

/// Events that may wait to be written.
const BUFFERED_MAX: usize = 4096;
/// How often unwritten counts are looked through.
const FLUSH: Duration = Duration::from_secs(30);
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The waits before a failed write is tried once more.
const RETRIES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Who reports events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reporter {
    controller: String,
    instance: String,
}

impl Reporter {
    /// An operator, and which of its replicas: usually the pod's name.
    pub fn new(operator: &str, instance: &str) -> Self {
        let instance = if instance.is_empty() { operator } else { instance };
        Self { controller: operator.to_owned(), instance: cut(instance, WORD_BYTES_MAX).to_owned() }
    }
}

/// Takes events from anywhere, at once and without failing. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EventSink {
    sender: mpsc::Sender<(Regarding, Event)>,
    metrics: Metrics,
}

impl EventSink {
    /// Says that something happened to an object. If too much waits to be written, it is dropped and counted.
    pub fn emit(&self, regarding: &Regarding, event: Event) {
        match self.sender.try_send((regarding.clone(), event)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.metrics.event_dropped("full"),
            Err(TrySendError::Closed(_)) => self.metrics.event_dropped("stopped"),
        }
    }
}

/// The other end of an [`EventSink`]: decides with an [`EventBook`] and writes.
pub struct EventWriter {
    receiver: mpsc::Receiver<(Regarding, Event)>,
    book: EventBook,
    reporter: Reporter,
    client: Client,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    /// Whether the book may have counts that are not written.
    has_rest: bool,
    /// Whether the last write was dropped.
    has_dropped: bool,
}

/// A sink to give away, and the writer to run.
pub fn channel(
    client: Client,
    reporter: Reporter,
    book: EventBook,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
) -> (EventSink, EventWriter) {
    let (sender, receiver) = mpsc::channel(BUFFERED_MAX);
    let sink = EventSink { sender, metrics: metrics.clone() };
    let (has_rest, has_dropped) = (false, false);
    (sink, EventWriter { receiver, book, reporter, client, clock, metrics, has_rest, has_dropped })
}

/// What became of a write.
#[derive(Debug)]
enum Outcome {
    Done,
    /// There is no such event, or no such namespace.
    Missing,
    /// There is one already, or it has changed meanwhile.
    Conflict,
    /// Not written: the reason as metrics have it, and as people read it.
    Dropped(&'static str, String),
}

impl EventWriter {
    /// Writes until every sink is gone, then writes the counts that are left and ends.
    pub async fn run(mut self) {
        let mut flush_at = Instant::now() + FLUSH;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(flush_at), if self.has_rest => {
                    for written in self.book.due(self.clock.now()) {
                        self.update(&written).await;
                    }
                    self.has_rest = self.book.has_rest();
                    flush_at = Instant::now() + FLUSH;
                }
                received = self.receiver.recv() => match received {
                    Some((regarding, event)) => self.handle(&regarding, &event).await,
                    None => break,
                },
            }
        }
        for written in self.book.rest(self.clock.now()) {
            self.update(&written).await;
        }
    }

    async fn handle(&mut self, regarding: &Regarding, event: &Event) {
        match self.book.record(regarding, event, self.clock.now()) {
            Emit::Create(written) => self.create(&written).await,
            Emit::Update(written) => self.update(&written).await,
            Emit::Suppress(Suppressed::Counted) => self.has_rest = true,
            Emit::Suppress(Suppressed::RateLimited) => self.metrics.event_dropped("rate_limited"),
        }
    }

    /// An event that was not created is forgotten, so that the next time is the first one again.
    async fn create(&mut self, written: &Written) {
        let event = render(written, &self.reporter);
        let api = self.api(written);
        let manager = Some(self.reporter.controller.clone());
        let params = PostParams { field_manager: manager, ..PostParams::default() };
        match attempt(|| api.create(&params, &event)).await {
            // Names are not given twice: an earlier attempt got through after all.
            Outcome::Done | Outcome::Conflict => self.has_dropped = false,
            Outcome::Missing => {
                self.book.forget(written);
                self.dropped("refused", &format!("there is no namespace {}", written.namespace));
            }
            Outcome::Dropped(reason, why) => {
                self.book.forget(written);
                self.dropped(reason, &why);
            }
        }
    }

    /// An event that is gone, because it was deleted or too old, is created again.
    async fn update(&mut self, written: &Written) {
        let api = self.api(written);
        let patch = Patch::Merge(json!({"series": series(written)}));
        let manager = Some(self.reporter.controller.clone());
        let params = PatchParams { field_manager: manager, ..PatchParams::default() };
        match attempt(|| api.patch(&written.name, &params, &patch)).await {
            // Whoever changed it: the next count is written over theirs.
            Outcome::Done | Outcome::Conflict => self.has_dropped = false,
            Outcome::Missing => self.create(written).await,
            Outcome::Dropped(reason, why) => self.dropped(reason, &why),
        }
    }

    fn api(&self, written: &Written) -> Api<ApiEvent> {
        Api::namespaced(self.client.clone(), &written.namespace)
    }

    /// One warning when it begins; ten thousand objects do not need ten thousand.
    fn dropped(&mut self, reason: &'static str, why: &str) {
        self.metrics.event_dropped(reason);
        if std::mem::replace(&mut self.has_dropped, true) {
            tracing::debug!(reason, why, "an event was not written");
        } else {
            tracing::warn!(reason, why, "an event was not written, nor may others be");
        }
    }
}

/// Writes, once more after a while if that may help.
async fn attempt<F>(mut write: impl FnMut() -> F) -> Outcome
where
    F: Future<Output = kube::Result<ApiEvent>>,
{
    let mut retries = RETRIES.into_iter();
    loop {
        let why = match timeout(PATIENCE, write()).await {
            Ok(Ok(_)) => return Outcome::Done,
            Ok(Err(kube::Error::Api(status))) => match status.code {
                404 => return Outcome::Missing,
                409 => return Outcome::Conflict,
                429 => status.message,
                400..500 => return Outcome::Dropped("refused", status.message),
                _ => status.message,
            },
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        match retries.next() {
            Some(wait) => sleep(wait).await,
            None => return Outcome::Dropped("failed", why),
        }
    }
}

fn series(written: &Written) -> Option<EventSeries> {
    let count = i32::try_from(written.count).unwrap_or(i32::MAX);
    (count > 1).then_some(EventSeries { count, last_observed_time: MicroTime(written.last) })
}

fn render(written: &Written, reporter: &Reporter) -> ApiEvent {
    let object = &written.regarding.object;
    let regarding = ObjectReference {
        api_version: Some(object.kind.api_version()),
        kind: Some(object.kind.kind().to_owned()),
        namespace: object.key.namespace().map(str::to_owned),
        name: Some(object.key.name().to_owned()),
        uid: Some(written.regarding.uid.to_string()),
        ..ObjectReference::default()
    };
    ApiEvent {
        metadata: ObjectMeta {
            name: Some(written.name.clone()),
            namespace: Some(written.namespace.clone()),
            ..ObjectMeta::default()
        },
        regarding: Some(regarding),
        type_: Some(written.event.severity().as_str().to_owned()),
        reason: Some(written.event.reason().to_owned()),
        action: Some(written.event.action().to_owned()),
        note: Some(written.event.note().to_owned()),
        event_time: Some(MicroTime(written.first)),
        series: series(written),
        reporting_controller: Some(reporter.controller.clone()),
        reporting_instance: Some(reporter.instance.clone()),
        ..ApiEvent::default()
    }
}
