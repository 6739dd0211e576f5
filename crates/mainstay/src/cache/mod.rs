//! The shared cache of Kubernetes objects: one watch and one copy per kind, however many use it.
//!
//! ```text
//!  server ──lines──▶ wire ──Object──▶ shelf ──Change──▶ listeners
//!    ▲                                 ▲  │
//!    └── course: what to ask next      │  └──▶ get, children_of, list
//!                       own writes ────┘
//! ```
//!
//! - [`Object`] is an object as compact text. [`Prune`] drops fields from it; `managedFields` are always dropped.
//! - The shelf of a kind holds the newest of what the watch, lists and the answers to our own writes say: own
//!   writes are seen at once, what we deleted stays deleted, and nothing that others do is swallowed.
//! - The course decides how a watch goes on: streamed lists, pages, resuming, waiting.
//! - [`Caches`] hands it all out.
//!
//! An error never looks like a deletion: what is cached stays until the server says otherwise, and [`KindState`] tells
//! that it may be outdated.

mod course;
mod in_flight;
mod kind_cache;
mod lines;
mod object;
mod own;
mod parts;
mod prune;
mod request;
mod scope;
mod selector;
mod shelf;
mod state;
mod sync;
mod uid;
mod watch;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastrand::Rng;
use tokio::task::AbortHandle;

use crate::kind::{Key, Kind};
use kind_cache::{KindCache, Listeners};
pub use object::{Object, Owner, ParseError};
pub use own::OwnWrite;
pub use prune::{Prune, PruneError};
use scope::Selection;
pub use scope::{Options, WatchScope};
pub use selector::{Selector, SelectorError};
pub use shelf::{Change, Departure};
pub use state::{KindReport, KindState};
use watch::Watcher;
pub use wire::Unreadable;

/// All caches of a process. Cheap to clone; clones share everything.
///
/// Reads of a kind that nobody watches find nothing. Reads never wait for the network, and hold a lock only for the
/// lookup. Before the kind is [synced](Watch::synced) they find less than there is.
#[derive(Clone)]
pub struct Caches(Arc<Inner>);

struct Inner {
    client: kube::Client,
    listeners: Arc<Listeners>,
    entries: Mutex<Entries>,
}

struct Entries {
    kinds: BTreeMap<Kind, Entry>,
    rng: Rng,
    subscriptions: u64,
}

struct Entry {
    cache: Arc<KindCache>,
    users: usize,
    task: AbortHandle,
}

impl Inner {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Nothing panics while it is held.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self, kind: &Kind) -> Option<Arc<KindCache>> {
        self.entries().kinds.get(kind).map(|entry| entry.cache.clone())
    }
}

impl Caches {
    /// Caches of what this client can reach. `rng` spreads waits and timeouts.
    pub fn new(client: kube::Client, rng: Rng) -> Self {
        let entries = Entries { kinds: BTreeMap::new(), rng, subscriptions: 0 };
        Self(Arc::new(Inner { client, listeners: Arc::default(), entries: Mutex::new(entries) }))
    }

    /// Calls `listener` with every change that a watch brings, until the subscription is dropped. Own writes are not
    /// among them, nor their echo: whoever writes knows who else must learn of it. See [`begin_write`](Self::begin_write).
    ///
    /// The listener is called within the watch's task: it must not block, and may read the caches.
    pub fn subscribe(&self, listener: impl Fn(&Kind, &Change) + Send + Sync + 'static) -> Subscription {
        let number = {
            let mut entries = self.0.entries();
            entries.subscriptions += 1;
            entries.subscriptions
        };
        self.0.listeners.add(number, Arc::new(listener));
        Subscription { listeners: self.0.listeners.clone(), number }
    }

    /// Watches a kind until the returned guard, and every other one of the kind, is dropped; then the watch ends and
    /// its memory is freed. Must be called within a tokio runtime.
    ///
    /// All users of a kind share one watch, which holds what satisfies all of them. Where they want different things,
    /// that is more than each wants: objects of all namespaces if they name different ones, objects with any labels if
    /// their selectors differ, and of each object every field that one of them keeps. The watch stays that wide until
    /// its last user goes. Reads say themselves which namespace and labels they mean. A user that comes to a kind that
    /// is watched already is not told of what is there: it reads that when it is [synced](Watch::synced).
    pub fn watch(&self, kind: &Kind, scope: WatchScope, options: Options) -> Watch {
        let selection = Selection { scope, options };
        let mut entries = self.0.entries();
        if let Some(entry) = entries.kinds.get_mut(kind) {
            entry.users += 1;
            let version = entry.cache.want(&selection);
            return Watch { caches: self.0.clone(), cache: entry.cache.clone(), version };
        }
        let cache = Arc::new(KindCache::new(kind.clone(), selection));
        let rng = entries.rng.fork();
        let watcher = Watcher::new(self.0.client.clone(), cache.clone(), self.0.listeners.clone(), rng);
        let task = tokio::spawn(watcher.run()).abort_handle();
        entries.kinds.insert(kind.clone(), Entry { cache: cache.clone(), users: 1, task });
        let version = cache.wanted.borrow().version;
        Watch { caches: self.0.clone(), cache, version }
    }

    /// One object.
    pub fn get(&self, kind: &Kind, key: &Key) -> Option<Arc<Object>> {
        self.0.cache(kind)?.read().get(key).cloned()
    }

    /// The objects that the owner of this uid controls, in the order of their keys.
    pub fn children_of(&self, kind: &Kind, owner_uid: &str) -> Vec<Arc<Object>> {
        let cache = self.0.cache(kind);
        cache.map(|cache| cache.read().children_of(owner_uid).to_vec()).unwrap_or_default()
    }

    /// The objects of a namespace, or of all, that a selector selects, in the order of their keys.
    pub fn list(&self, kind: &Kind, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<Object>> {
        let cache = self.0.cache(kind);
        cache.map(|cache| cache.read().list(namespace, selector)).unwrap_or_default()
    }

    /// Announces that we are about to write an object. What the write changes is given to the writer, and to nobody
    /// else, when the returned value is told of the answer; until then other changes of the object wait as well.
    ///
    /// ```no_run
    /// # async fn example(caches: mainstay::cache::Caches, kind: mainstay::Kind, key: mainstay::Key) {
    /// # async fn send() -> Result<Vec<u8>, std::io::Error> { std::future::pending().await }
    /// let write = caches.begin_write(&kind, &key);
    /// if let Ok(response) = send().await {
    ///     // From here on every read sees the write.
    ///     let change = write.written(&response);
    /// }
    /// # }
    /// ```
    pub fn begin_write(&self, kind: &Kind, key: &Key) -> OwnWrite {
        OwnWrite::begin(self.0.cache(kind), self.0.listeners.clone(), key)
    }

    /// Takes in the server's answer to a write that could not be announced, because the server chose the name.
    /// If the watch was faster, listeners were told and the change is [`Change::Nothing`].
    pub fn own_write(&self, kind: &Kind, response: &[u8]) -> Result<Change, Unreadable> {
        match self.0.cache(kind) {
            Some(cache) => Ok(cache.own_write(response)?.1),
            None => Ok(Change::Nothing),
        }
    }

    /// How the watch of a kind is doing, unless nobody watches it.
    pub fn state(&self, kind: &Kind) -> Option<KindState> {
        self.0.cache(kind).map(|cache| cache.status.borrow().state.clone())
    }

    /// How all watches are doing, in the order of their kinds.
    pub fn reports(&self) -> Vec<KindReport> {
        let caches: Vec<_> =
            self.0.entries().kinds.values().map(|entry| (entry.cache.clone(), entry.users)).collect();
        caches.iter().map(|(cache, users)| cache.report(*users)).collect()
    }
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.entries().kinds.keys()).finish()
    }
}

/// Keeps a kind watched as long as it lives.
pub struct Watch {
    caches: Arc<Inner>,
    cache: Arc<KindCache>,
    /// The version of what is wanted that has what this user wants.
    version: u64,
}

impl Watch {
    /// The kind.
    pub fn kind(&self) -> &Kind {
        &self.cache.kind
    }

    /// How the watch is doing.
    pub fn state(&self) -> KindState {
        self.cache.status.borrow().state.clone()
    }

    /// Whether everything that this user wants has been listed, be it some time ago.
    pub fn is_synced(&self) -> bool {
        self.cache.status.borrow().listed >= self.version
    }

    /// Waits until everything that this user wants has been listed: for ever, if the kind is missing or forbidden.
    pub async fn synced(&self) {
        let mut status = self.cache.status.subscribe();
        // The sender lives in the cache, which this guard holds.
        let _ = status.wait_for(|status| status.listed >= self.version).await;
    }

    /// Waits until the state is another than `known`, and returns it.
    pub async fn state_after(&self, known: &KindState) -> KindState {
        let mut status = self.cache.status.subscribe();
        match status.wait_for(|status| status.state != *known).await {
            Ok(status) => status.state.clone(),
            Err(_) => known.clone(),
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({} {})", self.cache.kind, self.state().name())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut entries = self.caches.entries();
        let Some(entry) = entries.kinds.get_mut(&self.cache.kind) else { return };
        entry.users -= 1;
        if entry.users == 0 {
            entry.task.abort();
            entries.kinds.remove(&self.cache.kind);
        }
    }
}

/// Keeps a listener called as long as it lives.
pub struct Subscription {
    listeners: Arc<Listeners>,
    number: u64,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscription({})", self.number)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.listeners.remove(self.number);
    }
}

#[cfg(test)]
mod tests;
