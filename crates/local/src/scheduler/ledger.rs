//! What pods ask of nodes, as the server said a moment ago, with what was placed there since.
//!
//! To read all pods of a node for each pod that is placed there is work that grows with the square of their number. What was read a
//! moment ago still holds, if all that came since is added: this scheduler is the only one that places pods. What was freed since is
//! missed, which is no harm: a pod that finds no room is looked at again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::placed::Placed;
use super::resources::{Amounts, used};

/// For how long what was read holds.
const FRESH: Duration = Duration::from_secs(1);

/// What is known of nodes, by name.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<BTreeMap<String, Load>>);

/// What is known of a node.
#[derive(Debug, Clone)]
struct Load {
    read_at: Instant,
    used: Amounts,
    /// The uids of the pods that are in it.
    pods: BTreeSet<String>,
}

impl Ledger {
    /// What pods ask of each node, of those of which that is known.
    pub(super) fn known(&self) -> BTreeMap<String, Amounts> {
        let mut loads = self.lock();
        loads.retain(|_, load| load.read_at.elapsed() < FRESH);
        loads.iter().map(|(node, load)| (node.clone(), load.used.clone())).collect()
    }

    /// Takes in what the server has just said of a node.
    pub(super) fn read(&self, node: &str, there: &[Placed]) {
        let pods = there.iter().filter_map(|pod| pod.metadata.uid.clone()).collect();
        let load = Load { read_at: Instant::now(), used: used(node, there), pods };
        self.lock().insert(node.to_owned(), load);
    }

    /// Adds a pod that was placed.
    pub(super) fn place(&self, node: &str, uid: &str, wanted: &Amounts) {
        if let Some(load) = self.lock().get_mut(node)
            && load.pods.insert(uid.to_owned())
        {
            load.used.add(wanted);
        }
    }

    /// Forgets a node: nobody knows what came of the last request.
    pub(super) fn forget(&self, node: &str) {
        self.lock().remove(node);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Load>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::resources::{PODS, requests};
    use serde_json::{from_value, json};

    fn pod(uid: &str) -> Placed {
        from_value(json!({"metadata": {"uid": uid}, "spec": {"nodeName": "one"}})).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_holds_for_a_moment_with_all_that_was_placed_since() {
        let (ledger, one) = (Ledger::default(), requests(&from_value(json!({"containers": []})).unwrap()));
        let count = || ledger.known().get("one").map(|used| used.get(PODS) / 1_000_000_000);
        ledger.place("one", "a", &one);
        assert_eq!(count(), None, "without a reading nothing is known");
        ledger.read("one", &[pod("a"), pod("b")]);
        ledger.place("one", "c", &one);
        ledger.place("one", "c", &one);
        assert_eq!(count(), Some(3));
        ledger.forget("one");
        assert_eq!(count(), None);
        ledger.read("one", &[pod("a")]);
        tokio::time::advance(FRESH).await;
        assert_eq!(count(), None);
    }
}
