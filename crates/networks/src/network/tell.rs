//! What the conditions of a network say. Pure.

use jiff::Timestamp;
use mainstay::conditions::State;

use super::decide::JobState;
use super::reason::{Reason, Unready};
use crate::config::NetworkConfig;
use crate::kinds::{EdgesStatus, NetworkStatus};

/// All peers answer.
pub const ASSEMBLED: &str = "Assembled";
/// The Job that connects them has ended well.
pub const BOOTSTRAPPED: &str = "Bootstrapped";
/// All connections that are declared are there.
pub const CONNECTED: &str = "Connected";
/// All is as it should be.
pub const READY: &str = "Ready";

/// So many peers are named in a message.
const NAMED: usize = 3;

/// What a condition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its type.
    pub condition: &'static str,
    /// Whether it is so.
    pub state: State,
    /// Why, in a word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: String,
}

/// What conditions are told from.
pub(super) struct Facts<'a> {
    pub(super) config: &'a NetworkConfig,
    pub(super) status: &'a NetworkStatus,
    pub(super) unready: &'a [(String, Unready)],
    pub(super) job: JobState,
    /// Whether there shall be a Job.
    pub(super) bootstrap: bool,
    pub(super) patience_ends: Option<Timestamp>,
}

/// All conditions.
pub(super) fn tell(facts: &Facts<'_>) -> Vec<Told> {
    let assembled = assembled(facts);
    let bootstrapped = bootstrapped(facts);
    let connected = connected(facts);
    let ready = ready(&assembled, &bootstrapped, &connected);
    vec![assembled, bootstrapped, connected, ready]
}

fn told(condition: &'static str, state: State, reason: Reason, message: impl Into<String>) -> Told {
    Told { condition, state, reason, message: message.into() }
}

fn assembled(facts: &Facts<'_>) -> Told {
    let (wanted, there) = (facts.status.replicas, facts.status.ready_replicas);
    let mut message = format!("{there} of {wanted} peers answer");
    let reason = match there.cmp(&wanted) {
        std::cmp::Ordering::Equal => return told(ASSEMBLED, State::True, Reason::AllAnswer, message),
        std::cmp::Ordering::Less => Reason::PeersMissing,
        std::cmp::Ordering::Greater => Reason::PeersSurplus,
    };
    let mut named: Vec<String> = facts
        .unready
        .iter()
        .take(NAMED)
        .map(|(name, unready)| format!("{name}: {}", unready.reason()))
        .collect();
    if facts.unready.len() > NAMED {
        named.push(format!("{} more", facts.unready.len() - NAMED));
    }
    if !named.is_empty() {
        message = format!("{message} ({})", named.join(", "));
    }
    told(ASSEMBLED, State::False, reason, message)
}

fn bootstrapped(facts: &Facts<'_>) -> Told {
    let says = |state, reason, message: &str| told(BOOTSTRAPPED, state, reason, message);
    if !facts.config.bootstrap.enabled {
        return disabled(BOOTSTRAPPED);
    }
    match facts.job {
        JobState::Succeeded => says(State::True, Reason::JobSucceeded, "peers have been connected"),
        JobState::Failed => says(
            State::False,
            Reason::JobFailed,
            "the Job has failed; connections that are missing are dialled by the operator",
        ),
        JobState::Running => says(State::False, Reason::JobRunning, "the Job runs"),
        JobState::Absent if facts.bootstrap => says(State::False, Reason::JobRunning, "the Job is made"),
        JobState::Absent if facts.status.ready_replicas == facts.status.replicas => {
            says(State::True, Reason::NothingDeclared, "no connections are declared among these peers")
        }
        JobState::Absent => {
            let until = match facts.patience_ends {
                Some(_) => {
                    format!("or {} seconds have passed", facts.config.bootstrap.patience_seconds)
                }
                None => "or two at least after a while".to_owned(),
            };
            let message = format!("peers are connected once all answer, {until}");
            told(BOOTSTRAPPED, State::False, Reason::WaitingForPeers, message)
        }
    }
}

fn disabled(condition: &'static str) -> Told {
    let message = "spec.bootstrap.enabled is false: nothing is declared about connections";
    told(condition, State::Unknown, Reason::Disabled, message)
}

fn connected(facts: &Facts<'_>) -> Told {
    if !facts.config.bootstrap.enabled {
        return disabled(CONNECTED);
    }
    let Some(edges) = &facts.status.edges else {
        return told(CONNECTED, State::Unknown, Reason::NobodyAnswers, "no peer answers");
    };
    let islands = match facts.status.components {
        Some(islands) if islands > 1 => format!("; there are {islands} islands"),
        _ => String::new(),
    };
    let EdgesStatus { desired, missing, severed, examples, .. } = edges;
    if *desired == 0 {
        let message = "no connections are declared among those that answer";
        return told(CONNECTED, State::True, Reason::NothingDeclared, message);
    }
    if *missing == 0 {
        let message = format!("all {desired} declared connections are there{islands}");
        return told(CONNECTED, State::True, Reason::AllConnected, message);
    }
    let message =
        format!("{missing} of {desired} declared connections are missing: {}{islands}", examples.join(", "));
    if missing == severed {
        let message = format!("{message}; a simulation keeps them apart");
        return told(CONNECTED, State::False, Reason::EdgesSevered, message);
    }
    told(CONNECTED, State::False, Reason::EdgesMissing, message)
}

/// What is wrong first. A Job that failed is no matter once all connections are there.
fn ready(assembled: &Told, bootstrapped: &Told, connected: &Told) -> Told {
    let is_bootstrapped = bootstrapped.state != State::False || bootstrapped.reason == Reason::JobFailed;
    let wrong = match () {
        () if assembled.state != State::True => assembled,
        () if !is_bootstrapped => bootstrapped,
        () if connected.state == State::False => connected,
        () => {
            let message = format!("{}; {}", assembled.message, connected.message);
            return told(READY, State::True, Reason::Ready, message);
        }
    };
    told(READY, State::False, wrong.reason, wrong.message.clone())
}
