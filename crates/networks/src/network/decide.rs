//! What is done for a network: from its config, what its peers answered, its Job, its last status and the time, to `peers.json`, the Job, dials
//! and the status. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use mainstay::conditions::Conditions;

use super::observe::{Answer, FRESH, Seen};
use super::reason::{Reason, Unready};
use super::tell::{self, Told};
use crate::config::{Lifetime, NetworkConfig};
use crate::graph::{self, Cut, Dial, Edges};
use crate::kinds::{NetworkStatus, Repair, UnreadyPeer};
use crate::peers::{self, Peer};
use crate::sizes::{CONFIG_MAP_BYTES_MAX, STATUS_PEERS_BYTES_MAX, STATUS_UNREADY_MAX};
use crate::topology;

/// While peers come up that nobody tells of, they are asked so often.
const SOON: Duration = Duration::from_secs(2);
/// Peers with the same id that each of them names.
const DUPLICATES_NAMED: usize = 3;
/// Characters of a message about a peer: the status has one for each.
const MESSAGE_CHARS_MAX: usize = 160;
/// For so long.
const HASTE: Duration = Duration::from_mins(2);

/// All that a decision is made from.
#[derive(Debug)]
pub struct Situation<'a> {
    /// The name of the network.
    pub name: &'a str,
    /// What its spec says.
    pub config: &'a NetworkConfig,
    /// When it was made.
    pub created: Timestamp,
    /// The time.
    pub now: Timestamp,
    /// What its pods answered, in the order of `peers.json`.
    pub seen: &'a [Seen],
    /// The Job that connects peers as the present spec says.
    pub job: JobState,
    /// The conditions that the network has.
    pub conditions: &'a Conditions,
    /// The partitions that are active.
    pub partitions: &'a [Cut],
    /// How many times in a row connections had to be dialled.
    pub rounds: u32,
}

/// How the Job that connects peers stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// There is none.
    Absent,
    /// It has not ended.
    Running,
    /// It has connected all.
    Succeeded,
    /// It has not.
    Failed,
}

impl JobState {
    /// Whether it has ended, however.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// What is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The peers that answer, for `peers.json`.
    pub peers: Vec<Peer>,
    /// How they are connected.
    pub edges: Edges,
    /// Whether there shall be a Job that connects them.
    pub bootstrap: bool,
    /// The connections that are dialled now.
    pub dials: Vec<Dial>,
    /// Connections that seem to be missing, but an end of them was not asked in this look. They may have been made since it was.
    pub doubtful: Vec<Dial>,
    /// The status, without its conditions.
    pub status: NetworkStatus,
    /// What conditions say.
    pub told: Vec<Told>,
    /// When to look again.
    pub wake: Duration,
}

/// When a network is deleted.
pub fn expiration(config: &NetworkConfig, created: Timestamp) -> Option<Timestamp> {
    match config.ttl_seconds {
        Lifetime::Endless => None,
        Lifetime::Seconds(seconds) => {
            Some(created.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
        }
    }
}

/// Decides. See the [module](self).
pub fn decide(situation: &Situation<'_>) -> Decision {
    let config = situation.config;
    let assembly = assemble(config, situation.seen);
    let names: Vec<String> = assembly.peers.iter().map(|peer| peer.name.clone()).collect();
    let declared =
        if config.bootstrap.enabled { topology::declared(&config.bootstrap, &names) } else { Vec::new() };
    let comparison = graph::compare(&declared, &assembly.edges).severed(situation.partitions);
    let all_answer = i32::try_from(names.len()) == Ok(config.replicas);
    let patience_ends = patience_ends(situation);
    let bootstrap = config.bootstrap.enabled
        && (situation.job != JobState::Absent
            || !declared.is_empty() && (all_answer || patience_ends.is_some_and(|at| at <= situation.now)));
    let repairs =
        config.bootstrap.enabled && config.topology.repair == Repair::Missing && situation.job.is_over();
    let missing = if repairs { comparison.missing.clone() } else { Vec::new() };
    let (dials, doubtful): (Vec<Dial>, Vec<Dial>) = certain(missing, situation.seen);
    let islands = graph::components(&names, &assembly.edges);
    let has_peers = !names.is_empty();
    let shown = peers::fit(&assembly.peers, STATUS_PEERS_BYTES_MAX);
    let status = NetworkStatus {
        observed_generation: None,
        replicas: config.replicas,
        ready_replicas: count(names.len()),
        namespace: NetworkConfig::namespace(situation.name),
        peers: shown.peers,
        peers_omitted: count(shown.omitted),
        unready: assembly.unready.iter().take(STATUS_UNREADY_MAX).map(unready_status).collect(),
        unready_omitted: count(assembly.unready.len().saturating_sub(STATUS_UNREADY_MAX)),
        expiration_time: expiration(config, situation.created).map(Time),
        edges: has_peers.then(|| comparison.status()),
        components: has_peers.then_some(count(islands)),
        conditions: Vec::new(),
    };
    let told = tell::tell(&tell::Facts {
        config,
        status: &status,
        unready: &assembly.unready,
        job: situation.job,
        bootstrap,
        patience_ends,
    });
    let wake = wake(situation, &assembly, &dials, patience_ends);
    let Assembly { peers, edges, .. } = assembly;
    Decision { peers, edges, bootstrap, dials, doubtful, status, told, wake }
}

/// Splits off the connections of which one end was not asked in this look. What it answered before may be older than the Job's dials.
fn certain(missing: Vec<Dial>, seen: &[Seen]) -> (Vec<Dial>, Vec<Dial>) {
    let asked = seen.iter().filter(|seen| seen.is_fresh).map(|seen| seen.name.as_str());
    let asked: BTreeSet<&str> = asked.collect();
    let is_certain = |dial: &Dial| asked.contains(dial.from.as_str()) && asked.contains(dial.to.as_str());
    missing.into_iter().partition(is_certain)
}

/// The peers that answer, those that do not, and how the former are connected.
struct Assembly {
    peers: Vec<Peer>,
    unready: Vec<(String, Unready)>,
    edges: Edges,
}

fn assemble(config: &NetworkConfig, seen: &[Seen]) -> Assembly {
    let mut named: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (seen, answer) in answers(seen) {
        named.entry(&answer.peer_id).or_default().push(&seen.name);
    }
    let mut assembly = Assembly { peers: Vec::new(), unready: Vec::new(), edges: Edges::new() };
    for seen in seen {
        match &seen.answer {
            Err(unready) => assembly.unready.push((seen.name.clone(), unready.clone())),
            Ok(answer) if named[answer.peer_id.as_str()].len() > 1 => {
                let all = &named[answer.peer_id.as_str()];
                let others = all.iter().filter(|name| **name != seen.name).take(DUPLICATES_NAMED);
                let others: Vec<String> = others.map(|name| (*name).to_owned()).collect();
                let more = all.len() - 1 - others.len();
                let unready = Unready::DuplicateId { peer_id: answer.peer_id.clone(), others, more };
                assembly.unready.push((seen.name.clone(), unready));
            }
            Ok(answer) => assembly.peers.push(peer(config, seen, answer)),
        }
    }
    let answering = assembly.peers.len();
    let listed = peers::fit(&assembly.peers, CONFIG_MAP_BYTES_MAX);
    let omitted = &assembly.peers[answering - listed.omitted..];
    assembly.unready.extend(omitted.iter().map(|peer| (peer.name.clone(), Unready::NotListed)));
    assembly.peers = listed.peers;
    let told = answers(seen).filter(|(_, answer)| named[answer.peer_id.as_str()].len() == 1);
    let told = told.map(|(seen, answer)| (seen.name.as_str(), answer.connections.as_slice()));
    assembly.edges = graph::observed(&assembly.peers, told);
    assembly
}

fn answers(seen: &[Seen]) -> impl Iterator<Item = (&Seen, &Answer)> {
    seen.iter().filter_map(|seen| Some((seen, seen.answer.as_ref().ok()?)))
}

fn peer(config: &NetworkConfig, seen: &Seen, answer: &Answer) -> Peer {
    let group = config.peers.get(seen.group).cloned().unwrap_or_default();
    let url = &answer.asked.endpoint.url;
    // The same host, with another port.
    let host = url.rsplit_once(':').map_or(url.as_str(), |(host, _)| host);
    let others =
        group.ports.iter().map(|port| (format!("{}Addr", port.name), format!("{host}:{}", port.port)));
    Peer {
        tag: group.tag,
        name: seen.name.clone(),
        peer_id: answer.peer_id.clone(),
        adapter: group.rpc.adapter,
        rpc_addr: url.clone(),
        p2p_addrs: answer.addresses.clone(),
        others: others.collect(),
    }
}

fn unready_status((name, unready): &(String, Unready)) -> UnreadyPeer {
    let text = unready.to_string();
    let mut message: String = text.chars().take(MESSAGE_CHARS_MAX).collect();
    if message.len() < text.len() {
        message.push('…');
    }
    UnreadyPeer { name: name.clone(), reason: unready.reason().into(), message }
}

/// When those peers that answer are connected without the others: only if there are two at least.
fn patience_ends(situation: &Situation<'_>) -> Option<Timestamp> {
    if answers(situation.seen).count() < 2 {
        return None;
    }
    let since = assembling_since(situation);
    let patience = SignedDuration::from_secs(i64::from(situation.config.bootstrap.patience_seconds));
    since.checked_add(patience).ok()
}

/// Since when not all peers answer, as far as the status tells.
fn assembling_since(situation: &Situation<'_>) -> Timestamp {
    match situation.conditions.get(tell::ASSEMBLED) {
        Some(assembled) if assembled.status == "False" => assembled.last_transition_time.0,
        _ => situation.now,
    }
}

/// Soon while something is under way that nobody tells of; otherwise as often as the spec says, and when it expires.
fn wake(
    situation: &Situation<'_>,
    assembly: &Assembly,
    dials: &[Dial],
    patience_ends: Option<Timestamp>,
) -> Duration {
    let config = situation.config;
    let mut wake = Duration::from_secs(u64::try_from(config.topology.observe_seconds).unwrap_or(10));
    let until = |at: Timestamp| Duration::try_from(at.duration_since(situation.now)).unwrap_or_default();
    if !dials.is_empty() {
        wake = wake.min(FRESH.saturating_mul(1 << situation.rounds.min(10)));
    }
    // A peer that does not answer for minutes is broken, and needs no haste.
    let is_new = Duration::try_from(situation.now.duration_since(assembling_since(situation)))
        .is_ok_and(|age| age < HASTE);
    if is_new && assembly.unready.iter().any(|(_, unready)| unready.may_pass()) {
        wake = wake.min(SOON);
    }
    let is_old = |seen: &Seen| seen.answer.is_ok() && !seen.is_fresh;
    if situation.seen.iter().any(is_old) {
        wake = wake.min(FRESH);
    }
    if situation.job == JobState::Absent {
        wake = patience_ends.filter(|at| *at > situation.now).map_or(wake, |at| wake.min(until(at)));
    }
    if let Some(at) = expiration(config, situation.created) {
        wake = wake.min(until(at));
    }
    // A moment at least: what is due already is seen in the next look.
    wake.max(Duration::from_millis(10))
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

impl Decision {
    /// Whether a condition is told to be so, and why.
    pub fn reason(&self, condition: &str) -> Option<Reason> {
        self.told.iter().find(|told| told.condition == condition).map(|told| told.reason)
    }
}
