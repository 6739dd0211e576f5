//! What a contender does, counted where its client sends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use serde::{Deserialize, Serialize};
use tower::{Layer, Service};

/// Counts of one contender, and when it last did anything.
pub(crate) struct Tally {
    started: Instant,
    active_ms: AtomicU64,
    syncs: AtomicU64,
    children: AtomicU64,
    status: AtomicU64,
    others: AtomicU64,
    reads: AtomicU64,
    watches: AtomicU64,
    failures: AtomicU64,
}

/// The counts at one moment.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Calls of the handler.
    pub syncs: u64,
    /// Writes of children.
    pub children: u64,
    /// Writes of a shop's status.
    pub status: u64,
    /// Other writes.
    pub others: u64,
    /// Objects and lists that were read, watches not counted.
    pub reads: u64,
    /// Watches that were opened.
    pub watches: u64,
    /// Requests that were refused or failed.
    pub failures: u64,
    /// Since the last request or call of the handler.
    pub idle_ms: u64,
}

impl Counts {
    pub(crate) fn writes(&self) -> u64 {
        self.children + self.status + self.others
    }

    /// What was done after `before`.
    pub(crate) fn since(&self, before: &Counts) -> Counts {
        Counts {
            syncs: self.syncs - before.syncs,
            children: self.children - before.children,
            status: self.status - before.status,
            others: self.others - before.others,
            reads: self.reads - before.reads,
            watches: self.watches - before.watches,
            failures: self.failures - before.failures,
            idle_ms: self.idle_ms,
        }
    }
}

impl Tally {
    pub(crate) fn new() -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Self {
            started: Instant::now(),
            active_ms: zero(),
            syncs: zero(),
            children: zero(),
            status: zero(),
            others: zero(),
            reads: zero(),
            watches: zero(),
            failures: zero(),
        })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn touch(&self) {
        self.active_ms.store(self.now_ms(), Relaxed);
    }

    /// The handler is called.
    pub(crate) fn sync(&self) {
        self.syncs.fetch_add(1, Relaxed);
        self.touch();
    }

    pub(crate) fn counts(&self) -> Counts {
        let active_ms = self.active_ms.load(Relaxed);
        Counts {
            syncs: self.syncs.load(Relaxed),
            children: self.children.load(Relaxed),
            status: self.status.load(Relaxed),
            others: self.others.load(Relaxed),
            reads: self.reads.load(Relaxed),
            watches: self.watches.load(Relaxed),
            failures: self.failures.load(Relaxed),
            idle_ms: self.now_ms().saturating_sub(active_ms),
        }
    }

    fn counter<B>(&self, request: &Request<B>) -> &AtomicU64 {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        match *request.method() {
            Method::GET if query.contains("watch=") => &self.watches,
            Method::GET => &self.reads,
            _ if path.ends_with("/status") => &self.status,
            _ if path.contains("/events") => &self.others,
            _ => &self.children,
        }
    }
}

/// A layer of a client that counts requests.
#[derive(Clone)]
pub(crate) struct Counting(pub(crate) Arc<Tally>);

impl<S> Layer<S> for Counting {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, tally: self.0.clone() }
    }
}

/// A client whose requests are counted.
#[derive(Clone)]
pub(crate) struct Counted<S> {
    inner: S,
    tally: Arc<Tally>,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        self.tally.counter(&request).fetch_add(1, Relaxed);
        self.tally.touch();
        let tally = self.tally.clone();
        let answered = self.inner.call(request);
        answered
            .inspect(move |answer| {
                tally.touch();
                if answer.as_ref().map_or(true, |answer| !answer.status().is_success()) {
                    tally.failures.fetch_add(1, Relaxed);
                }
            })
            .boxed()
    }
}
