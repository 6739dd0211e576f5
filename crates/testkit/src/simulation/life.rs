//! One incarnation of a program, from its start to its death.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::clock::WorldClock;
use super::lock;
use super::trace::Actor;

/// What the world knows of a running program. Once it is dead, nothing of it reaches a server any more.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) actor: Actor,
    /// It is the operator under test: its requests and events are counted, and things go wrong for it.
    pub(super) is_subject: bool,
    pub(super) clock: WorldClock,
    dead: AtomicBool,
    replaced: AtomicBool,
    pub(super) died: Notify,
    stalled_until: Mutex<Option<Instant>>,
    /// The revision at which the API server that it is connected to has stopped, if that lags behind.
    lag: Mutex<Option<u64>>,
    /// Resources of which it cannot see anything for now.
    unseen: Mutex<BTreeSet<String>>,
}

impl Life {
    pub(super) fn new(actor: Actor, is_subject: bool, clock: WorldClock, lag: Option<u64>) -> Self {
        Self {
            actor,
            is_subject,
            clock,
            dead: AtomicBool::new(false),
            replaced: AtomicBool::new(false),
            died: Notify::new(),
            stalled_until: Mutex::default(),
            lag: Mutex::new(lag),
            unseen: Mutex::default(),
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    pub(super) fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.died.notify_one();
    }

    /// Another takes its place: once it has died it is not started again.
    pub(super) fn replace(&self) {
        self.replaced.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::Relaxed)
    }

    pub(super) fn stall_until(&self, time: Instant) {
        *lock(&self.stalled_until) = Some(time);
    }

    pub(super) fn is_stalled(&self) -> bool {
        lock(&self.stalled_until).is_some_and(|until| until > Instant::now())
    }

    pub(super) async fn wait_while_stalled(&self) {
        let until = *lock(&self.stalled_until);
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }

    /// The revision at which its API server has stopped, if it lags behind.
    pub(super) fn lag(&self) -> Option<u64> {
        *lock(&self.lag)
    }

    pub(super) fn hide(&self, resource: &str) {
        lock(&self.unseen).insert(resource.to_owned());
    }

    pub(super) fn cannot_see(&self, resource: &str) -> bool {
        lock(&self.unseen).contains(resource)
    }

    /// Its API server catches up, and everything can be seen again.
    pub(super) fn see_again(&self) {
        *lock(&self.lag) = None;
        lock(&self.unseen).clear();
    }
}
