//! A node: it runs the pods that are bound to it, and says how they are.
//!
//! ```text
//! Pod bound here ─▶ observe (runtime: processes, or simulated) ─▶ lifecycle (pure) ─▶ status; starts, stops
//!        ▲                                                                              │
//!        └──────────────────────── woken, a time that has come ◀───────────────────────┘
//! ```
//!
//! A pod all of whose containers are of images that the node's [runtime] runs is run by it; every other one is
//! [simulated]. Both have the same lifecycle, which is a kubelet's: init containers and sidecars in order, restarts with back-off,
//! readiness gates, deadlines, graceful deletion. Everything that the node knows of a pod is in the pod's status, so that a node
//! that is started again goes on where it was; a container that ran and is no longer there counts as ended with code 137.
//!
//! The Node object and its lease are [`heartbeat`]'s, which can be left out.

pub mod heartbeat;
mod holds;
mod lifecycle;
pub mod process;
pub mod rules;
pub mod runtime;
pub mod simulated;
mod sync;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use mainstay::stability::LoopSettings;
use mainstay::{Controller, Key, OperatorBuilder, SyncRequest};

use self::rules::Rules;
use self::runtime::{PodId, Runtime};

/// The operator's name, and its field manager.
pub const NAME: &str = "mainstay-node";

/// A node that runs pods. Cheap to clone; clones are the same node.
#[derive(Clone)]
pub struct Node {
    name: Arc<str>,
    address: Arc<str>,
    rules: Arc<Rules>,
    runtime: Option<Arc<dyn Runtime>>,
    /// The pods that the runtime was asked to run.
    handed: Arc<Mutex<BTreeMap<Key, PodId>>>,
}

impl Node {
    /// A node of this name and address that simulates all of its pods.
    pub fn new(name: &str, address: &str) -> Self {
        Self {
            name: name.into(),
            address: address.into(),
            rules: Arc::default(),
            runtime: None,
            handed: Arc::default(),
        }
    }

    /// How its simulated pods behave.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = Arc::new(rules);
        self
    }

    /// What runs those pods that are not simulated.
    #[must_use]
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    fn handed(&self) -> MutexGuard<'_, BTreeMap<Key, PodId>> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the runtime runs a pod. Another one of its name is gone, if there was one, and nobody was told.
    fn hand_over(&self, key: Key, pod: &PodId) {
        let before = self.handed().insert(key, pod.clone());
        if let Some(gone) = before.filter(|before| before != pod) {
            self.end(&gone);
        }
    }

    /// A pod is gone, maybe without grace.
    fn forget(&self, key: &Key, uid: &str) {
        let mut handed = self.handed();
        let gone =
            if handed.get(key).is_some_and(|known| known.uid == uid) { handed.remove(key) } else { None };
        drop(handed);
        if let Some(gone) = gone {
            self.end(&gone);
        }
    }

    /// Ends what still runs of a pod that is gone.
    fn end(&self, gone: &PodId) {
        if let Some(runtime) = &self.runtime {
            runtime.stop(gone, Duration::ZERO);
            runtime.forget(gone);
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Adds a node to an operator: the pods that are bound to it run.
pub fn configure(operator: OperatorBuilder, node: &Node) -> OperatorBuilder {
    let pods = Controller::of::<Pod>()
        .reads::<ConfigMap>()
        .reads::<Secret>()
        .reads::<PersistentVolumeClaim>()
        .until_gone()
        .writes_parents();
    let (own, gone) = (node.clone(), node.clone());
    let controller = if node.runtime.is_some() {
        let pods = pods.when_gone(move |key, uid| gone.forget(key, uid));
        pods.sync_async(move |request| {
            let node = own.clone();
            async move { sync::sync(&node, &request).await }
        })
    } else {
        pods.sync(move |request: &SyncRequest| sync::simulate(&own, request))
    };
    operator.loops(repetition()).controller(controller)
}

/// A pod that crashes again and again, and a lease that is renewed, are written often and are no loops.
fn repetition() -> LoopSettings {
    LoopSettings { writes_max: u32::MAX, window: Duration::from_secs(1), ..LoopSettings::default() }
}
