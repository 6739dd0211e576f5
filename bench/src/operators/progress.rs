//! How far a contender has come, as a bystander sees it: which shops have a status that is of their generation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use kube::{Api, ResourceExt as _};
use kube_runtime::{WatchStreamExt as _, watcher};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::shop::Shop;

/// No scenario takes longer, or something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_mins(15);

/// Watches all shops until it is dropped.
pub(crate) struct Progress {
    seen: Arc<Seen>,
    task: AbortHandle,
}

#[derive(Default)]
struct Seen {
    shops: Mutex<Shops>,
    noted: Notify,
}

#[derive(Default)]
struct Shops {
    /// The generation of each, and the one that its status is of.
    generations: BTreeMap<String, (i64, i64)>,
    unsettled: usize,
}

impl Shops {
    fn note(&mut self, name: String, generation: i64, observed: i64) {
        let known = self.generations.entry(name).or_default();
        self.unsettled -= usize::from(known.0 != known.1);
        *known = (known.0.max(generation), known.1.max(observed));
        self.unsettled += usize::from(known.0 != known.1);
    }
}

impl Seen {
    fn shops(&self) -> MutexGuard<'_, Shops> {
        self.shops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, shop: &Shop) {
        let observed = shop.status.as_ref().and_then(|status| status.observed_generation);
        let mut shops = self.shops();
        shops.note(shop.name_any(), shop.metadata.generation.unwrap_or(0), observed.unwrap_or(0));
        drop(shops);
        self.noted.notify_one();
    }
}

impl Progress {
    pub(crate) fn watch(shops: Api<Shop>) -> Self {
        let seen = Arc::new(Seen::default());
        let noted = seen.clone();
        let watching = async move {
            let events = watcher(shops, watcher::Config::default()).default_backoff().applied_objects();
            let noted = events.try_for_each(|shop| {
                noted.note(&shop);
                std::future::ready(Ok(()))
            });
            if let Err(error) = noted.await {
                eprintln!("the bystander's watch ended: {error}");
            }
        };
        Self { seen, task: tokio::spawn(watching).abort_handle() }
    }

    /// Notes a shop that was just written, so that it counts as unsettled from now on.
    pub(crate) fn note(&self, shop: &Shop) {
        self.seen.note(shop);
    }

    /// Waits until so many shops are seen.
    pub(crate) async fn seen(&self, shops: usize) -> Result<()> {
        self.until(|seen| seen.generations.len() == shops).await.context("not all shops were seen")
    }

    /// Waits until all shops are settled.
    pub(crate) async fn settled(&self) -> Result<()> {
        self.until(|seen| seen.unsettled == 0).await.context("not all shops settled")
    }

    async fn until(&self, reached: impl Fn(&Shops) -> bool) -> Result<()> {
        let reached = async {
            while !reached(&self.seen.shops()) {
                self.seen.noted.notified().await;
            }
        };
        Ok(timeout(PATIENCE, reached).await?)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.task.abort();
    }
}
