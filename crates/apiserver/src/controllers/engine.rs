//! Runs the controllers: hands every change to each of them in revision order, and works off their queues.
//!
//! Keys of one controller are worked on beside each other, up to a number, and those of different controllers do not wait for each
//! other. Work that waits long is not counted. So a webhook that does not answer holds up what it is asked about, and nothing
//! else. A panic is reported, and what caused it is tried again later.

use super::queue::{Laned, Outcome, Queue};
use super::{definitions, events, garbage, namespaces, protection};
use crate::server::Server;
use crate::store::{CollectionId, Event, Object, Revision, panic_text};
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long the first request waits for what follows from the state that was found.
const START_MAX: Duration = Duration::from_secs(2);
/// Before everything is looked at again after a panic.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// A controller's memory, which its work shares while it goes on.
pub(super) struct Shared<C>(Arc<Mutex<C>>);

impl<C> Clone for Shared<C> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<C> Shared<C> {
    pub(super) fn lock(&self) -> MutexGuard<'_, C> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Learns of every change, and works off what follows from it.
pub(super) trait Controller: Default + Send + 'static {
    /// What there is to do.
    type Key: Laned + std::fmt::Debug + Send + Sync + 'static;
    /// For messages.
    const NAME: &'static str;
    /// How many keys are worked on at one time; those that take long are not counted.
    const AT_ONCE: usize;

    /// All that there was at this revision comes next, and then what has changed since.
    fn begin(&mut self, _revision: Revision) {}
    /// An object is there, new or changed.
    fn see(&mut self, server: &Server, id: &CollectionId, object: &Arc<Object>);
    /// An object is gone.
    fn gone(&mut self, server: &Server, id: &CollectionId, object: &Object);
    fn queue(&mut self) -> &mut Queue<Self::Key>;
    /// Does what there is to do.
    fn work(server: Arc<Server>, shared: Shared<Self>, key: Self::Key) -> BoxFuture<'static, Outcome>;
}

/// What the engine asks of any controller.
trait Driven: Send {
    fn begin(&self, revision: Revision);
    fn observe(&self, server: &Server, id: &CollectionId, event: &Event);
    fn see(&self, server: &Server, id: &CollectionId, object: &Arc<Object>);
    /// The next work, if there is any and room for it. It says what came of it to the queue itself.
    fn next(&self, server: &Arc<Server>) -> Option<BoxFuture<'static, ()>>;
    fn is_active(&self) -> bool;
    fn next_time(&self) -> Option<Instant>;
}

impl<C: Controller> Driven for Shared<C> {
    fn begin(&self, revision: Revision) {
        self.lock().begin(revision);
    }

    fn observe(&self, server: &Server, id: &CollectionId, event: &Event) {
        if event.kind() == "DELETED" {
            self.lock().gone(server, id, &event.object);
        } else {
            self.lock().see(server, id, &event.object);
        }
    }

    fn see(&self, server: &Server, id: &CollectionId, object: &Arc<Object>) {
        self.lock().see(server, id, object);
    }

    fn next(&self, server: &Arc<Server>) -> Option<BoxFuture<'static, ()>> {
        let key = {
            let mut controller = self.lock();
            controller.queue().take(Instant::now(), C::AT_ONCE)?
        };
        let (server, shared) = (server.clone(), self.clone());
        Some(
            async move {
                let work = AssertUnwindSafe(C::work(server.clone(), shared.clone(), key.clone()));
                let outcome = work.catch_unwind().await.unwrap_or_else(|panic| {
                    server.troubles.report(C::NAME, &format!("{key:?}: {}", panic_text(&*panic)));
                    Outcome::Failed
                });
                shared.lock().queue().finish(&key, outcome, Instant::now());
            }
            .boxed(),
        )
    }

    fn is_active(&self) -> bool {
        self.lock().queue().is_active()
    }

    fn next_time(&self) -> Option<Instant> {
        self.lock().queue().next_time(Instant::now())
    }
}

fn shared<C: Controller>() -> Shared<C> {
    Shared(Arc::new(Mutex::new(C::default())))
}

/// The controllers of one server, and what they are doing.
pub(super) struct Engine {
    /// Not held, so that the store is closed as soon as nobody uses it.
    server: Weak<Server>,
    /// CRDs first: what the other collections hold is only known once their kinds are.
    controllers: Vec<Box<dyn Driven>>,
    running: FuturesUnordered<BoxFuture<'static, ()>>,
    position: Revision,
    changes: watch::Receiver<Revision>,
}

impl Engine {
    pub(super) fn new(server: &Arc<Server>) -> Self {
        Engine {
            server: Arc::downgrade(server),
            controllers: Vec::new(),
            running: FuturesUnordered::new(),
            position: 0,
            changes: server.store.changes(),
        }
    }

    /// Takes in the state as it is, and forgets what was known before.
    pub(super) fn load<'a>(&'a mut self, server: &'a Arc<Server>) -> BoxFuture<'a, ()> {
        self.load_all(server).boxed()
    }

    async fn load_all(&mut self, server: &Arc<Server>) {
        self.running.clear();
        self.controllers = vec![
            Box::new(shared::<definitions::Definitions>()),
            Box::new(shared::<garbage::Garbage>()),
            Box::new(shared::<namespaces::Namespaces>()),
            Box::new(shared::<protection::Protection>()),
            Box::new(shared::<events::Expiry>()),
        ];
        self.changes.borrow_and_update();
        self.position = server.store.revision();
        self.controllers.iter().for_each(|controller| controller.begin(self.position));
        let mut collections = server.store.collections();
        collections.sort_by_key(|id| (id.parts().1 != "customresourcedefinitions", id.clone()));
        for id in collections {
            // What changes meanwhile is observed again, in order.
            let Ok(listing) = server.store.list(&id, None, None, None) else { continue };
            for object in listing.items {
                self.controllers.iter().for_each(|controller| controller.see(server, &id, &object));
            }
            if id.parts().1 == "customresourcedefinitions" {
                self.settle(server, 1).await;
            }
        }
    }

    /// Works until nothing is left to do for the first so many controllers, or it takes too long.
    pub(super) async fn settle(&mut self, server: &Arc<Server>, controllers: usize) {
        let settled = tokio::time::timeout(START_MAX, async {
            loop {
                self.catch_up(server).await;
                self.launch(server);
                if !self.controllers.iter().take(controllers).any(|controller| controller.is_active()) {
                    return;
                }
                self.running.next().await;
            }
        });
        // What takes longer goes on later.
        drop(settled.await);
    }

    /// Observes what has happened since.
    async fn catch_up(&mut self, server: &Arc<Server>) {
        let events = loop {
            match server.store.events_after(self.position) {
                Ok(events) => break events,
                // Too far behind: look at everything again.
                Err(_) => self.load(server).await,
            }
        };
        for (id, event) in &events {
            self.position = event.revision;
            self.controllers.iter().for_each(|controller| controller.observe(server, id, event));
        }
    }

    /// Starts what there is to do and room for.
    fn launch(&mut self, server: &Arc<Server>) {
        for controller in &self.controllers {
            while let Some(work) = controller.next(server) {
                self.running.push(work);
            }
        }
    }

    /// Follows the store for as long as it is there.
    pub(super) async fn run(mut self) {
        loop {
            let followed = AssertUnwindSafe(self.follow()).catch_unwind().await;
            let Err(panic) = followed else { return };
            self.report(&panic_text(&*panic));
            tokio::time::sleep(RESTART_AFTER).await;
            let Some(server) = self.server.upgrade() else { return };
            // Whatever it was about, nothing that was known is relied on any more.
            if let Err(panic) = AssertUnwindSafe(self.load(&server)).catch_unwind().await {
                self.report(&panic_text(&*panic));
            }
        }
    }

    fn report(&self, what: &str) {
        if let Some(server) = self.server.upgrade() {
            server.troubles.report("controllers", what);
        }
    }

    async fn follow(&mut self) {
        loop {
            let Some(server) = self.server.upgrade() else { return };
            self.catch_up(&server).await;
            self.launch(&server);
            drop(server);
            let next = self.controllers.iter().filter_map(|controller| controller.next_time()).min();
            tokio::select! {
                biased;
                // First, or a store that always changes would keep all work from going on.
                Some(()) = self.running.next() => {}
                more = self.changes.changed() => if more.is_err() { return },
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
        }
    }
}
