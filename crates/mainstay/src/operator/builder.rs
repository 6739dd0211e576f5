//! What an operator is made of.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use tokio::sync::Notify;

use super::Operator;
use crate::cache::Caches;
use crate::clock::{Clock, SystemClock};
use crate::controller::Controller;
use crate::events::{self, EventBook, EventWriter, Limits, Reporter};
use crate::execute::Api;
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::rbac::Rbac;
use crate::replicas::{InvalidReplicas, Keeper, Replicas};
use crate::runner::{Bucket, DeletionBudget, Dependencies, Documents, Runner};
use crate::serve::Pulse;
use crate::stability::{LoopSettings, Loops};
use crate::webhook::{Serving, Webhooks};

/// How long the main loop may be silent before `/livez` fails, unless said otherwise.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// Why an operator cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The name cannot be a field manager and the name of a lease.
    #[error(
        "an operator cannot be named {0:?}: use lower-case letters, digits and dashes, at most 52 of them"
    )]
    Name(String),
    /// The replicas cannot work as they are set up.
    #[error("its replicas cannot work as they are set up")]
    Replicas(#[from] InvalidReplicas),
}

/// What is needed once, when the operator runs.
pub(crate) struct Settings {
    pub(crate) pending: Mutex<Vec<Controller>>,
    /// What it needs besides what its controllers do.
    pub(crate) rbac: Rbac,
    pub(crate) keeper: Mutex<Option<Keeper>>,
    pub(crate) events: Mutex<Option<EventWriter>>,
    pub(crate) webhooks: Mutex<Option<(Webhooks, Serving)>>,
    pub(crate) serve: Option<SocketAddr>,
    /// What `/metrics` and `/debug/parents` ask for, if they do.
    pub(crate) debug_token: Option<String>,
    /// Where health and metrics are served, while they are.
    pub(crate) served: Mutex<Option<SocketAddr>>,
    pub(crate) version: String,
    running: AtomicBool,
}

impl Settings {
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }

    /// Notes that it runs. Tells whether it did not before.
    pub(crate) fn begin(&self) -> bool {
        !self.running.swap(true, Ordering::SeqCst)
    }
}

/// An [`Operator`] in the making.
#[must_use]
pub struct OperatorBuilder {
    name: String,
    client: kube::Client,
    controllers: Vec<Controller>,
    namespace: Option<String>,
    replicas: Replicas,
    webhooks: Option<(Webhooks, Serving)>,
    serve: Option<SocketAddr>,
    debug_token: Option<String>,
    version: String,
    stuck_after: Duration,
    concurrency: usize,
    request_timeout: Duration,
    budget: DeletionBudget,
    loops: LoopSettings,
    clock: Arc<dyn Clock>,
    seed: Option<u64>,
    own_metrics: Vec<OwnMetrics>,
}

/// Adds metrics of its own.
type OwnMetrics = Box<dyn FnOnce(&Metrics) + Send>;

impl OperatorBuilder {
    pub(super) fn new(name: &str, client: kube::Client) -> Self {
        Self {
            name: name.to_owned(),
            client,
            controllers: Vec::new(),
            namespace: None,
            replicas: Replicas::single(),
            webhooks: None,
            serve: None,
            debug_token: None,
            version: String::new(),
            stuck_after: STUCK_AFTER,
            concurrency: 16,
            request_timeout: Duration::from_secs(5),
            budget: DeletionBudget::default(),
            loops: LoopSettings::default(),
            clock: Arc::new(SystemClock),
            seed: None,
            own_metrics: Vec::new(),
        }
    }

    /// The client that it uses, for handlers that ask or tell the cluster something that no answer can.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: Controller) -> Self {
        self.controllers.retain(|known| known.parent() != controller.parent());
        self.controllers.push(controller);
        self
    }

    /// Looks at one namespace only, and needs permissions only there.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// How several replicas share the work. One process without a lease unless said otherwise.
    pub fn replicas(mut self, replicas: Replicas) -> Self {
        self.replicas = replicas;
        self
    }

    /// Serves admission and conversion webhooks too, for as long as it runs. Their readiness is part of `/readyz`, what they need
    /// part of the permissions.
    pub fn webhooks(mut self, webhooks: Webhooks, serving: Serving) -> Self {
        self.webhooks = Some((webhooks, serving));
        self
    }

    /// Serves health, metrics and debug pages on this address, over plain HTTP. With port 0 the system chooses one, which
    /// [`Operator::address`] tells.
    pub fn serve(mut self, address: SocketAddr) -> Self {
        self.serve = Some(address);
        self
    }

    /// Asks for this token (`Authorization: Bearer TOKEN`) on `/metrics` and `/debug/parents`. Without one, whoever reaches the address reads
    /// them, and on loopback that is every user of the machine.
    pub fn debug_token(mut self, token: &str) -> Self {
        self.debug_token = Some(token.to_owned());
        self
    }

    /// The operator's own version, as `/version` and metrics tell it.
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    /// How long the loop may be silent before `/livez` fails; 30 seconds unless said otherwise.
    pub fn stuck_after(mut self, limit: Duration) -> Self {
        self.stuck_after = limit;
        self
    }

    /// How many parents are synced at once; 16 unless said otherwise.
    pub fn concurrency(mut self, syncs: usize) -> Self {
        self.concurrency = syncs.max(1);
        self
    }

    /// How long one request to the API server may take; five seconds unless said otherwise, and never longer than
    /// [the lease allows](Replicas::longest_write).
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// How many children may be deleted.
    pub fn deletion_budget(mut self, budget: DeletionBudget) -> Self {
        self.budget = budget;
        self
    }

    /// When repetition counts as a loop.
    pub fn loops(mut self, settings: LoopSettings) -> Self {
        self.loops = settings;
        self
    }

    /// The clock of what is written into objects.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Makes all randomness (jitter, names of events) follow from a number, for tests that shall be the same each time.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Adds metrics of its own to those that are served: see [`Metrics::register`].
    pub fn metrics(mut self, add: impl FnOnce(&Metrics) + Send + 'static) -> Self {
        self.own_metrics.push(Box::new(add));
        self
    }

    /// The operator.
    ///
    /// # Errors
    /// If its name or its replicas cannot be.
    pub fn build(self) -> Result<Operator, BuildError> {
        let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let ends = |name: &str| name.starts_with('-') || name.ends_with('-');
        if self.name.is_empty() || self.name.len() > 52 || ends(&self.name) || !self.name.bytes().all(valid) {
            return Err(BuildError::Name(self.name));
        }
        let mut rbac = Rbac::new(&self.name, self.namespace.as_deref());
        self.replicas.allow(&mut rbac);
        if let Some((webhooks, serving)) = &self.webhooks {
            let own = self.replicas.namespace().or(self.namespace.as_deref()).unwrap_or("default");
            rbac.allow_webhooks(&webhooks.permissions(serving), own);
        }
        // A write that may outlast its lease would never begin.
        let longest = self.replicas.longest_write().unwrap_or(self.request_timeout);
        let timeout = self.request_timeout.min(longest);
        let mut rng = self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let metrics = Metrics::new(&self.name, &self.version);
        for add in self.own_metrics {
            add(&metrics);
        }
        let (fence, keeper) =
            self.replicas.join(&self.name, self.client.clone(), Arc::clone(&self.clock), rng.fork())?;
        let instance = fence.identity().map_or_else(String::new, |identity| identity.as_str().to_owned());
        let (sink, writer) = events::channel(
            self.client.clone(),
            Reporter::new(&self.name, &instance),
            EventBook::new(Limits::default(), rng.fork()),
            Arc::clone(&self.clock),
            metrics.clone(),
        );
        let api = Api {
            client: self.client.clone(),
            manager: self.name.as_str().into(),
            metrics: metrics.clone(),
            timeout,
        };
        let runner = Runner {
            finalizer: format!("{}.mainstay.dev/finalizer", self.name),
            name: self.name.into(),
            namespace: self.namespace,
            api,
            caches: Caches::new(self.client, rng.fork()),
            clock: self.clock,
            metrics,
            events: Mutex::new(Some(sink)),
            fence,
            pulse: Pulse::new(self.stuck_after),
            concurrency: self.concurrency,
            queue: Mutex::new(Queue::new(rng.fork())),
            wake: Notify::new(),
            documents: Documents::default(),
            failed: Mutex::default(),
            controllers: RwLock::default(),
            parents: Mutex::new(BTreeMap::new()),
            dependencies: Mutex::new(Dependencies::default()),
            related: Mutex::default(),
            registrations: Mutex::default(),
            budget: Mutex::new(Bucket::new(self.budget)),
            loops: Mutex::new(Loops::new(self.loops)),
            webhooks: Mutex::default(),
            witness: Mutex::default(),
        };
        let settings = Settings {
            pending: Mutex::new(self.controllers),
            rbac,
            keeper: Mutex::new(keeper),
            events: Mutex::new(Some(writer)),
            webhooks: Mutex::new(self.webhooks),
            serve: self.serve,
            debug_token: self.debug_token,
            served: Mutex::default(),
            version: self.version,
            running: AtomicBool::new(false),
        };
        Ok(Operator { runner: Arc::new(runner), settings: Arc::new(settings) })
    }
}
