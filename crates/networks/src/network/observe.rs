//! Asks peers who they are and whom they are connected to: all at once, each within its deadline. A hung peer delays nobody.
//!
//! Who a peer is, is asked once for each run of it. What was answered a moment ago is not asked again, whatever else changes meanwhile:
//! pods that come up one after the other do not make a thousand questions each. Only who dialled since, or was dialled, is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::pods::{Asked, PeerPod};
use super::reason::Unready;
use crate::rpc::multiaddr::published;
use crate::rpc::{Rpc, RpcError, each};

/// An answer is good for so long.
pub const FRESH: Duration = Duration::from_secs(1);
/// So many peers are asked at the same time.
const AT_ONCE: usize = 256;

/// What came of looking at a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The name of the pod.
    pub name: String,
    /// The place of its group.
    pub group: usize,
    /// What it answered, or why it did not.
    pub answer: Result<Answer, Unready>,
    /// Whether it was asked just now.
    pub is_fresh: bool,
}

/// What a peer answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Where it was asked.
    pub asked: Asked,
    /// Who it is.
    pub peer_id: String,
    /// Where others reach it.
    pub addresses: Vec<String>,
    /// Whom it is connected to, by their ids.
    pub connections: Vec<String>,
}

/// What peers answered last, by network and run. Nothing in it has to survive the process.
#[derive(Default)]
pub struct Memory(Mutex<BTreeMap<String, Known>>);

#[derive(Default)]
struct Known {
    answers: BTreeMap<String, (Timestamp, Answer)>,
    rounds: u32,
}

impl Known {
    fn expire<'a>(&mut self, runs: impl IntoIterator<Item = &'a str>) {
        for run in runs {
            if let Some((at, _)) = self.answers.get_mut(run) {
                *at = Timestamp::MIN;
            }
        }
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        // A lock whose holder panicked holds consistent data: every critical section is a single change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recall(&self, network: &str, run: &str) -> Option<(Timestamp, Answer)> {
        self.lock().get(network)?.answers.get(run).cloned()
    }

    fn knows(&self, network: &str, run: &str) -> bool {
        self.lock().get(network).is_some_and(|known| known.answers.contains_key(run))
    }

    fn keep(&self, network: &str, answers: BTreeMap<String, (Timestamp, Answer)>) {
        self.lock().entry(network.to_owned()).or_default().answers = answers;
    }

    /// How many times in a row connections had to be dialled.
    pub fn rounds(&self, network: &str) -> u32 {
        self.lock().get(network).map_or(0, |known| known.rounds)
    }

    /// Counts another time. What the peers with these runs answered before does not show it, so they are asked again.
    pub fn dialled<'a>(&self, network: &str, runs: impl IntoIterator<Item = &'a str>) {
        let mut all = self.lock();
        let known = all.entry(network.to_owned()).or_default();
        known.rounds = known.rounds.saturating_add(1);
        known.expire(runs);
    }

    /// The peers with these runs are asked in the next look.
    pub fn ask_again<'a>(&self, network: &str, runs: impl IntoIterator<Item = &'a str>) {
        if let Some(known) = self.lock().get_mut(network) {
            known.expire(runs);
        }
    }

    /// Nothing had to be dialled.
    pub fn complete(&self, network: &str) {
        self.lock().entry(network.to_owned()).or_default().rounds = 0;
    }

    /// A network is gone.
    pub fn forget(&self, network: &str) {
        self.lock().remove(network);
    }
}

/// Looks at the pods of a network, which is known by its uid. The answers are in the order of the pods.
pub async fn observe(
    rpc: &dyn Rpc,
    memory: &Memory,
    network: &str,
    pods: &[PeerPod],
    now: Timestamp,
) -> Vec<Seen> {
    let mut seen = each(pods, AT_ONCE, |pod| look(rpc, memory, network, pod, now)).await;
    drop_connections_of_former_runs(memory, network, &mut seen);
    let answers = seen.iter().filter_map(|seen| {
        let answer = seen.answer.as_ref().ok()?;
        let run = &answer.asked.run;
        let at = if seen.is_fresh { now } else { memory.recall(network, run)?.0 };
        Some((run.clone(), (at, answer.clone())))
    });
    let answers = answers.collect();
    memory.keep(network, answers);
    seen
}

async fn look(rpc: &dyn Rpc, memory: &Memory, network: &str, pod: &PeerPod, now: Timestamp) -> Seen {
    let (answer, is_fresh) = match &pod.standing {
        Err(unready) => (Err(unready.clone()), false),
        Ok(asked) => match memory.recall(network, &asked.run) {
            Some((at, answer)) if is_fresh(at, now) => (Ok(answer), false),
            known => (ask(rpc, asked, known.map(|(_, answer)| answer)).await, true),
        },
    };
    Seen { name: pod.name.clone(), group: pod.group, answer, is_fresh }
}

/// What was answered before a peer began anew tells of its former run's connections, which went with it.
fn drop_connections_of_former_runs(memory: &Memory, network: &str, seen: &mut [Seen]) {
    let answers = seen.iter().filter(|seen| seen.is_fresh).filter_map(|seen| seen.answer.as_ref().ok());
    let new = answers.filter(|answer| !memory.knows(network, &answer.asked.run));
    let new: BTreeSet<String> = new.map(|answer| answer.peer_id.clone()).collect();
    for answer in seen.iter_mut().filter(|seen| !seen.is_fresh).filter_map(|seen| seen.answer.as_mut().ok()) {
        answer.connections.retain(|id| !new.contains(id));
    }
}

/// A clock that was set back makes nothing last longer.
fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    at <= now && Duration::try_from(now.duration_since(at)).is_ok_and(|age| age < FRESH)
}

async fn ask(rpc: &dyn Rpc, asked: &Asked, known: Option<Answer>) -> Result<Answer, Unready> {
    let timeout = asked.endpoint.timeout;
    let (peer_id, addresses) = if let Some(known) = known {
        (known.peer_id, known.addresses)
    } else {
        let identity = answer(timeout, || rpc.identity(&asked.endpoint)).await?;
        let addresses = published(&identity, &asked.announced);
        (identity.peer_id, addresses)
    };
    if addresses.is_empty() {
        return Err(Unready::NoAddress);
    }
    let connections = answer(timeout, || rpc.connections(&asked.endpoint)).await?;
    Ok(Answer { asked: asked.clone(), peer_id, addresses, connections })
}

/// Asks within the timeout, and once more if the answer was lost or refused: one lost answer does not take a peer off the list.
async fn answer<T, F>(timeout: Duration, ask: impl Fn() -> F) -> Result<T, Unready>
where
    F: Future<Output = Result<T, RpcError>>,
{
    let within = async || {
        let answer = tokio::time::timeout(timeout, ask()).await;
        answer.unwrap_or(Err(RpcError::Timeout(timeout)))
    };
    let first = within().await;
    let is_lost = matches!(first, Err(RpcError::Unreachable(_) | RpcError::Refused { .. }));
    let last = if is_lost { within().await } else { first };
    last.map_err(Unready::Rpc)
}
