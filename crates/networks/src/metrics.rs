//! What is counted about networks, all together. `docs/networks.md` lists it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay::conditions::State;
use mainstay::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::network::decide::Decision;
use crate::network::execute::Outcome;
use crate::network::tell::READY;
use crate::rpc::RpcError;

/// From a millisecond to a minute.
const SECONDS: [f64; 10] = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0];

/// See the [module](self). Cheap to clone; clones count together.
#[derive(Clone)]
pub(crate) struct NetworkMetrics {
    networks: Family<ByReady, Gauge>,
    peers: Family<ByState, Gauge>,
    missing: Gauge,
    dials: Family<ByResult, Counter>,
    look_seconds: Histogram,
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReady {
    ready: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByState {
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: String,
}

/// What a network looked like when it was last seen.
#[derive(Debug, Clone, Copy)]
struct Seen {
    is_ready: bool,
    ready: i64,
    unready: i64,
    missing: i64,
}

impl Default for NetworkMetrics {
    fn default() -> Self {
        Self {
            networks: Family::default(),
            peers: Family::default(),
            missing: Gauge::default(),
            dials: Family::default(),
            look_seconds: Histogram::new(SECONDS),
            seen: Arc::default(),
        }
    }
}

impl NetworkMetrics {
    /// Has them served with those of the operator.
    pub(crate) fn register(&self, metrics: &Metrics) {
        metrics.register("mainstay_networks", "Networks, by whether they are ready", self.networks.clone());
        metrics.register(
            "mainstay_network_peers",
            "Peers of all networks, by whether they answer",
            self.peers.clone(),
        );
        metrics.register(
            "mainstay_network_edges_missing",
            "Declared connections of all networks that are not there",
            self.missing.clone(),
        );
        metrics.register(
            "mainstay_network_dials",
            "Connections that peers were told to dial, by what came of it",
            self.dials.clone(),
        );
        metrics.register(
            "mainstay_network_look_seconds",
            "Time that it took to ask all peers of a network",
            self.look_seconds.clone(),
        );
    }

    /// All peers of a network were asked.
    pub(crate) fn looked(&self, took: Duration) {
        self.look_seconds.observe(took.as_secs_f64());
    }

    /// A network was seen.
    pub(crate) fn decided(&self, uid: &str, decision: &Decision) {
        let status = &decision.status;
        let seen = Seen {
            is_ready: decision.told.iter().any(|told| told.condition == READY && told.state == State::True),
            ready: status.ready_replicas.into(),
            unready: (status.replicas - status.ready_replicas).max(0).into(),
            missing: status.edges.as_ref().map_or(0, |edges| edges.missing.into()),
        };
        let mut all = self.lock();
        all.insert(uid.to_owned(), seen);
        self.set(&all);
    }

    /// Peers were told to dial.
    pub(crate) fn dialled(&self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            let result = outcome.result.as_ref().map_or_else(RpcError::reason, |()| "Connected");
            self.dials.get_or_create(&ByResult { result: result.to_owned() }).inc();
        }
    }

    /// A network is gone.
    pub(crate) fn forget(&self, uid: &str) {
        let mut all = self.lock();
        all.remove(uid);
        self.set(&all);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        // A lock whose holder panicked holds consistent data: every critical section is a single change.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, all: &BTreeMap<String, Seen>) {
        for ready in [true, false] {
            let count = all.values().filter(|seen| seen.is_ready == ready).count();
            let by = ByReady { ready: ready.to_string() };
            self.networks.get_or_create(&by).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let sum = |of: fn(&Seen) -> i64| all.values().map(of).sum::<i64>();
        let by = |state: &str| ByState { state: state.to_owned() };
        self.peers.get_or_create(&by("ready")).set(sum(|seen| seen.ready));
        self.peers.get_or_create(&by("unready")).set(sum(|seen| seen.unready));
        self.missing.set(sum(|seen| seen.missing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Dial, Edges};
    use crate::kinds::{EdgesStatus, NetworkStatus};
    use crate::network::reason::Reason;
    use crate::network::tell::Told;

    fn seen(ready: bool, answering: i32, missing: i32) -> Decision {
        let edges = EdgesStatus { missing, ..EdgesStatus::default() };
        let told = Told {
            condition: READY,
            state: State::from(ready),
            reason: Reason::Ready,
            message: String::new(),
        };
        Decision {
            edges: Edges::new(),
            peers: Vec::new(),
            bootstrap: false,
            dials: Vec::new(),
            doubtful: Vec::new(),
            status: NetworkStatus {
                replicas: 3,
                ready_replicas: answering,
                edges: Some(edges),
                ..NetworkStatus::default()
            },
            told: vec![told],
            wake: Duration::ZERO,
        }
    }

    #[test]
    fn networks_are_counted_together_and_forgotten_one_by_one() {
        let metrics = NetworkMetrics::default();
        let served = Metrics::new("networks", "");
        metrics.register(&served);
        metrics.decided("a", &seen(true, 3, 0));
        metrics.decided("b", &seen(false, 1, 4));
        metrics.decided("c", &seen(false, 0, 9));
        metrics.forget("c");
        let dial = Dial { from: "a".into(), to: "b".into() };
        let refused = RpcError::Unreachable(String::new());
        metrics.dialled(&[
            Outcome { dial: dial.clone(), result: Ok(()) },
            Outcome { dial, result: Err(refused) },
        ]);
        let text = served.render().unwrap();
        for line in [
            r#"mainstay_networks{ready="true"} 1"#,
            r#"mainstay_networks{ready="false"} 1"#,
            r#"mainstay_network_peers{state="ready"} 4"#,
            r#"mainstay_network_peers{state="unready"} 2"#,
            "mainstay_network_edges_missing 4",
            r#"mainstay_network_dials_total{result="Connected"} 1"#,
            r#"mainstay_network_dials_total{result="RpcUnreachable"} 1"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn the_documentation_lists_every_metric_as_it_is() {
        let (metrics, served) = (NetworkMetrics::default(), Metrics::new("networks", ""));
        metrics.register(&served);
        metrics.decided("a", &seen(true, 3, 0));
        metrics.dialled(&[Outcome { dial: Dial { from: "a".into(), to: "b".into() }, result: Ok(()) }]);
        let text = served.render().unwrap();
        let told = text.lines().filter_map(|line| line.strip_prefix("# HELP "));
        let own = told
            .filter_map(|line| line.split_once(' ').filter(|(name, _)| name.starts_with("mainstay_network")));
        let docs = include_str!("../../../docs/networks.md");
        let mut count = 0;
        for (name, help) in own {
            let row = docs
                .lines()
                .find(|row| row.starts_with(&format!("| `{name}")) && row.ends_with(&format!("| {help} |")));
            assert!(row.is_some(), "{name}: {help}");
            count += 1;
        }
        assert_eq!(docs.lines().filter(|row| row.starts_with("| `mainstay_network")).count(), count);
    }
}
