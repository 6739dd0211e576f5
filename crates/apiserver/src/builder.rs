//! Making a server.

use crate::admission::{NoServices, ServiceResolver, WebhookTransport, Webhooks};
use crate::allocate::{self, Book};
use crate::body::Body;
use crate::clock::{Clock, Identities, RandomIdentities, SystemClock, uuid};
use crate::controllers;
use crate::health::Troubles;
use crate::registry::Registry;
use crate::server::Server;
use crate::service::{self, body::Budget};
use crate::store::disk::DiskError;
use crate::store::{Faults, Observer, Retention, Store};
use crate::strategy::Leniency;
use crate::subresource::{Providers, SubresourceProvider};
use crate::watch::WatchDelivery;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::OnceCell;

/// How long Kubernetes keeps events.
const EVENT_TTL: Duration = Duration::from_hours(1);

/// Why a server could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The directory cannot serve as a store.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// What a server is made of. Everything has a default: in memory, the system's clock, random uids.
pub struct Builder {
    directory: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    identities: Arc<dyn Identities>,
    delivery: Option<Arc<dyn WatchDelivery>>,
    observer: Option<Arc<dyn Observer>>,
    webhook_transport: Option<Arc<dyn WebhookTransport>>,
    resolver: Arc<dyn ServiceResolver>,
    providers: Providers,
    retention: Retention,
    ca_bundle: String,
    leniency: Leniency,
    event_ttl: Duration,
    /// For tests of what a failing disk does to requests.
    pub(crate) disk_faults: Faults,
}

impl Builder {
    /// Keeps the state in a directory, where it survives the process. A write is answered when it is
    /// durable.
    #[must_use]
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directory = Some(path.into());
        self
    }

    /// Stamps objects by this clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Takes uids and random suffixes from here.
    #[must_use]
    pub fn identities(mut self, identities: impl Identities) -> Self {
        self.identities = Arc::new(identities);
        self
    }

    /// Lets this decide what becomes of each event of each watch.
    #[must_use]
    pub fn watch_delivery(mut self, delivery: impl WatchDelivery) -> Self {
        self.delivery = Some(Arc::new(delivery));
        self
    }

    /// Tells this of every change of every object as it is made.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Has this call webhooks, in place of HTTPS: webhooks that run in the same process, or a test's.
    #[must_use]
    pub fn webhook_transport(mut self, transport: impl WebhookTransport) -> Self {
        self.webhook_transport = Some(Arc::new(transport));
        self
    }

    /// Tells webhooks that name a `Service` where that is.
    #[must_use]
    pub fn service_resolver(mut self, resolver: impl ServiceResolver + 'static) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Serves a subresource, say `("", "pods", "log")`, that the API server itself does not have.
    #[must_use]
    pub fn subresource(
        mut self,
        group: &str,
        resource: &str,
        name: &str,
        provider: impl SubresourceProvider,
    ) -> Self {
        self.providers.add(group, resource, name, Arc::new(provider));
        self
    }

    /// Retains at most so many events for watches and paged lists to continue from.
    #[must_use]
    pub fn history_events_max(mut self, events: usize) -> Self {
        self.retention.events_max = events;
        self
    }

    /// Retains superseded objects of at most so many bytes.
    #[must_use]
    pub fn history_bytes_max(mut self, bytes: usize) -> Self {
        self.retention.bytes_max = bytes;
        self
    }

    /// What `kube-root-ca.crt` holds in every namespace.
    #[must_use]
    pub fn ca_bundle(mut self, pem: impl Into<String>) -> Self {
        self.ca_bundle = pem.into();
        self
    }

    /// Lets endpoints of services be at 127.x.y.z, but for the machine's own 127.0.0.x. Kubernetes refuses all of them, because in a
    /// cluster they would lead to another machine for each who uses them. Where pods are processes of one machine they don't.
    #[must_use]
    pub fn loopback_endpoints(mut self) -> Self {
        self.leniency.loopback_endpoints = true;
        self
    }

    /// Deletes each `Event` so long after it was last written; never for zero. An hour if this is not called.
    #[must_use]
    pub fn event_ttl(mut self, time: Duration) -> Self {
        self.event_ttl = time;
        self
    }

    /// Makes the server. Its controllers start with the first request.
    pub fn build(self) -> Result<ApiServer, BuildError> {
        let store = match &self.directory {
            None => Store::in_memory(self.retention, allocate::claims, self.observer),
            Some(path) => {
                let now = self.clock.now();
                Store::open(path, self.retention, allocate::claims, self.observer, now, self.disk_faults)?
            }
        };
        let store = Arc::new(store);
        let identities = self.identities.clone();
        let new_uid = Arc::new(move || uuid(&*identities));
        let server = Server {
            store,
            registry: Registry::new(),
            clock: self.clock,
            identities: self.identities,
            delivery: self.delivery,
            providers: self.providers,
            webhooks: Webhooks::new(self.resolver, self.webhook_transport, new_uid),
            allocations: Book::default(),
            troubles: Troubles::default(),
            event_ttl: self.event_ttl,
            ca_bundle: self.ca_bundle,
            leniency: self.leniency,
            bodies: Budget::default(),
        };
        Ok(ApiServer { server: Arc::new(server), started: Arc::new(OnceCell::new()) })
    }
}

/// The Kubernetes API as a tower service. Clones share one state.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) server: Arc<Server>,
    /// The controllers, which end with the last clone.
    started: Arc<OnceCell<controllers::Running>>,
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").field("revision", &self.server.store.revision()).finish_non_exhaustive()
    }
}

impl ApiServer {
    /// A server with defaults for everything, to be changed one by one.
    pub fn builder() -> Builder {
        Builder {
            directory: None,
            clock: Arc::new(SystemClock),
            identities: Arc::new(RandomIdentities),
            delivery: None,
            observer: None,
            webhook_transport: None,
            resolver: Arc::new(NoServices),
            providers: Providers::default(),
            retention: Retention::default(),
            ca_bundle: String::new(),
            leniency: Leniency::default(),
            event_ttl: EVENT_TTL,
            disk_faults: Faults::default(),
        }
    }

    /// Forgets all history, as compaction does: watches and paged lists that need it get 410 Gone.
    pub fn compact(&self) {
        self.server.store.compact_all();
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.server.store.revision()
    }

    /// Makes what every cluster has, and starts the controllers. Called with the first request; a server
    /// that is to be ready before it can be started explicitly.
    pub async fn start(&self) {
        let server = &self.server;
        self.started
            .get_or_init(|| async {
                // Boxed, so that what awaits a server need not know how deep its futures are.
                controllers::start(server).boxed().await
            })
            .await;
    }

    /// Answers one request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        self.start().await;
        service::handle(self.server.clone(), request).boxed().await
    }
}

impl<B> tower_service::Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { Ok(this.handle(request).await) })
    }
}
