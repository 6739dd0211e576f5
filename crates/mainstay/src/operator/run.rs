//! Starting, running and stopping.

use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use super::Operator;
use crate::cache::{KindState, PruneError, Selector, Subscription, Watch};
use crate::queue::Priority;
use crate::replicas::Keeper;
use crate::runner::{Active, Debug, Runner, Trigger, lock};
use crate::serve::{Endpoints, ServeError, Server};
use crate::webhook::WebhookError;

/// How long waiting events may take to be written when the operator stops.
const EVENTS_GRACE: Duration = Duration::from_secs(5);

/// Why an operator cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It runs already.
    #[error("the operator runs already")]
    Twice,
    /// It shares its work with other replicas, and only [`Operator::run`] keeps leases.
    #[error("an operator with leases cannot be stepped through")]
    Leases,
    /// A field that is not to be kept in memory is not a path.
    #[error("cannot leave a field out of memory")]
    Prune(#[from] PruneError),
    /// Health and metrics cannot be served.
    #[error("cannot serve health and metrics")]
    Serve(#[from] ServeError),
    /// Webhooks cannot be served.
    #[error("cannot serve webhooks")]
    Webhooks(#[from] WebhookError),
}

/// What runs beside the loop. Ends when it is dropped.
pub(super) struct Started {
    _subscription: Subscription,
    beside: Vec<AbortHandle>,
    keeper: Option<Keeper>,
    events: Option<JoinHandle<()>>,
    runner: Arc<Runner>,
}

impl Drop for Started {
    fn drop(&mut self) {
        for task in &self.beside {
            task.abort();
        }
        if let Some(events) = &self.events {
            events.abort();
        }
        for active in
            std::mem::take(&mut *self.runner.controllers.write().unwrap_or_else(PoisonError::into_inner))
                .values()
        {
            active.stop();
        }
        lock(&self.runner.related).clear();
    }
}

impl Operator {
    /// Runs until `stop` is done. Then no new sync begins, those that run finish, leases are given back, and waiting events
    /// are written.
    ///
    /// # Errors
    /// If it runs already, or an address to serve on is taken.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) -> Result<(), RunError> {
        let mut started = self.start()?;
        let (tell, told) = watch::channel(false);
        let stopped = || {
            let mut told = told.clone();
            async move {
                // The sender lives until all of these have ended.
                let _ = told.wait_for(|stop| *stop).await;
            }
        };
        let mut beside = JoinSet::new();
        if let Some(server) = self.bind().await? {
            tracing::info!(address = %server.address(), "serving health and metrics");
            *lock(&self.settings.served) = Some(server.address());
            beside.spawn(serve(server, stopped()));
        }
        let webhooks = lock(&self.settings.webhooks).take();
        if let Some((webhooks, serving)) = webhooks {
            let serving = match self.runner.fence.identity() {
                Some(_) => serving.registering_while(self.leads(&mut beside)),
                None => serving,
            };
            let server = webhooks.serve(self.runner.api.client.clone(), serving).await?;
            tracing::info!(address = %server.address(), "serving webhooks");
            *lock(&self.runner.webhooks) = Some(server.state());
            beside.spawn(server.run(stopped()));
        }
        if let Some(keeper) = started.keeper.take() {
            let (operator, stopped) = (self.clone(), stopped());
            beside.spawn(async move { operator.keep_leases(keeper, stopped).await });
        }
        let loop_stop = stopped();
        let mut looping = tokio::spawn(Arc::clone(&self.runner).run(loop_stop));
        // Whoever drops this future wants nothing more to be written.
        started.beside.push(looping.abort_handle());
        let ended = tokio::select! {
            biased;
            () = stop => {
                tracing::info!("stopping");
                tell.send_replace(true);
                looping.await
            }
            ended = &mut looping => {
                tell.send_replace(true);
                ended
            }
        };
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
        while beside.join_next().await.is_some() {}
        *lock(&self.settings.served) = None;
        let events = started.events.take();
        drop(started);
        // The writer ends when nobody can emit any more.
        lock(&self.runner.events).take();
        if let Some(events) = events {
            let _ = tokio::time::timeout(EVENTS_GRACE, events).await;
        }
        Ok(())
    }

    /// Starts the watches and all that runs beside the loop.
    pub(super) fn start(&self) -> Result<Started, RunError> {
        if !self.settings.begin() {
            return Err(RunError::Twice);
        }
        let runner = &self.runner;
        let weak = Arc::downgrade(runner);
        let subscription = runner.caches.subscribe(move |kind, change| {
            if let Some(runner) = weak.upgrade() {
                runner.changed(kind, change, None);
            }
        });
        let weak = Arc::downgrade(runner);
        runner.metrics.observe(move |reading| {
            if let Some(runner) = weak.upgrade() {
                runner.read_gauges(reading);
            }
        });
        let events = lock(&self.settings.events).take().map(|writer| tokio::spawn(writer.run()));
        let started = Started {
            _subscription: subscription,
            beside: vec![tokio::spawn(take_over(Arc::clone(runner))).abort_handle()],
            keeper: lock(&self.settings.keeper).take(),
            events,
            runner: Arc::clone(runner),
        };
        let pending = std::mem::take(&mut *lock(&self.settings.pending));
        for controller in pending {
            let kind = controller.parent().clone();
            let active = Active::start(controller, None, runner, false)?;
            runner.controllers.write().unwrap_or_else(PoisonError::into_inner).insert(kind, active);
        }
        Ok(started)
    }

    async fn bind(&self) -> Result<Option<Server>, ServeError> {
        let Some(address) = self.settings.serve else { return Ok(None) };
        let runner = Arc::clone(&self.runner);
        let endpoints = Endpoints::new(
            &self.runner.name,
            &self.settings.version,
            self.runner.metrics.clone(),
            self.runner.pulse.clone(),
            move || runner.readiness(),
        );
        let mut endpoints = endpoints.with_debug(Debug(Arc::clone(&self.runner)));
        if let Some(token) = &self.settings.debug_token {
            endpoints = endpoints.with_token(token);
        }
        let server = Server::bind(address, endpoints).await?;
        Ok(Some(server))
    }

    /// Whether this replica holds the first shard: it is the one that registers what all replicas serve.
    fn leads(&self, beside: &mut JoinSet<()>) -> watch::Receiver<bool> {
        let mut standing = self.runner.fence.standing();
        let (tell, leads) = watch::channel(false);
        beside.spawn(async move {
            loop {
                let first = standing.borrow_and_update().held.keys().any(|shard| shard.index() == 0);
                tell.send_if_modified(|leads| std::mem::replace(leads, first) != first);
                tokio::select! {
                    biased;
                    changed = standing.changed() => if changed.is_err() { return },
                    () = tell.closed() => return,
                }
            }
        });
        leads
    }

    /// Keeps leases from the moment the caches are warm: whoever leads can begin at once. A kind that cannot be watched now is
    /// not waited for, because no other replica could either, and the rest has work to do.
    async fn keep_leases(&self, keeper: Keeper, stop: impl Future<Output = ()> + Send) {
        let mut stop = Box::pin(stop);
        let all_warm = async {
            for active in self.runner.all_active() {
                for watch in active.watches() {
                    warm(watch).await;
                }
            }
        };
        tokio::select! {
            biased;
            () = &mut stop => return,
            () = all_warm => {}
        }
        keeper.run(stop).await;
    }
}

/// Waits until a cache is filled, or cannot be for the time being.
async fn warm(watch: &Watch) {
    let hopeless = async {
        let mut state = watch.state();
        while !matches!(state, KindState::Missing | KindState::Forbidden { .. }) {
            state = watch.state_after(&state).await;
        }
    };
    tokio::select! {
        biased;
        () = watch.synced() => {}
        () = hopeless => {}
    }
}

async fn serve(server: Server, stop: impl Future<Output = ()> + Send + 'static) {
    if let Err(error) = server.run(stop).await {
        tracing::error!(error = crate::execute::chain(&error), "health and metrics are no longer served");
    }
}

/// Finds the parents of every shard that this replica becomes responsible for.
async fn take_over(runner: Arc<Runner>) {
    let mut standing = runner.fence.standing();
    let mut known = standing.borrow_and_update().held.clone();
    while standing.changed().await.is_ok() {
        let held = standing.borrow_and_update().held.clone();
        let tenures = |uid: &str| {
            let shard = runner.fence.shard_of(uid);
            (known.get(&shard).copied(), held.get(&shard).copied())
        };
        // Whoever looks after a parent now has its controllers run.
        runner.unregister_lost(|uid| {
            let (before, now) = tenures(uid);
            before.is_some() && before != now
        });
        let gained = |uid: &str| {
            let (before, now) = tenures(uid);
            now.is_some() && before != now
        };
        for active in runner.all_active() {
            let kind = active.controller.parent();
            for parent in runner.caches.list(kind, runner.namespace.as_deref(), &Selector::everything()) {
                if gained(active.shard_uid(&parent)) {
                    runner.push(&(kind.clone(), parent.key().clone()), Priority::Normal, Trigger::TakenOver);
                }
            }
        }
        known = held;
    }
}
