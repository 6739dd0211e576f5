//! Why a network is not as it should be: one vocabulary for conditions, events and whoever prints them.

use std::fmt;

use crate::rpc::RpcError;

/// Why a peer is not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unready {
    /// Its pod does not run yet.
    PodPending(String),
    /// Its pod runs and is not ready.
    PodNotReady(String),
    /// Its pod is going.
    PodTerminating,
    /// Its pod has ended.
    PodEnded,
    /// Its pod only seems to run: there is nobody to ask.
    Simulated,
    /// It was asked, and did not answer as it should.
    Rpc(RpcError),
    /// None of its addresses can be reached by others.
    NoAddress,
    /// It answers, but `peers.json` has no room for it.
    NotListed,
    /// Another one says that it is the same peer. Nobody can tell which of them is right.
    DuplicateId {
        /// Who both say they are.
        peer_id: String,
        /// The first of the others.
        others: Vec<String>,
        /// Number of the others that are not named.
        more: usize,
    },
}

impl Unready {
    /// In a word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::PodPending(_) => "PodPending",
            Self::PodNotReady(_) => "PodNotReady",
            Self::PodTerminating => "PodTerminating",
            Self::PodEnded => "PodEnded",
            Self::Simulated => "Simulated",
            Self::Rpc(error) => error.reason(),
            Self::NoAddress => "NoAddress",
            Self::NotListed => "NotListed",
            Self::DuplicateId { .. } => "DuplicateId",
        }
    }

    /// Whether asking again soon may find it otherwise, without anything changing in the cluster.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Rpc(_) | Self::NoAddress | Self::DuplicateId { .. })
    }
}

impl fmt::Display for Unready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |f: &mut fmt::Formatter<'_>, what: &str, why: &str| {
            f.write_str(what)?;
            if why.is_empty() { Ok(()) } else { write!(f, ": {why}") }
        };
        match self {
            Self::PodPending(why) => with(f, "its pod does not run yet", why),
            Self::PodNotReady(why) => with(f, "its pod is not ready", why),
            Self::PodTerminating => f.write_str("its pod is being deleted"),
            Self::PodEnded => f.write_str("its pod has ended"),
            Self::Simulated => f.write_str("its pod is simulated: nothing runs in it that could be asked"),
            Self::Rpc(error) => error.fmt(f),
            Self::NoAddress => f.write_str("it announces no address of its pod that others can reach"),
            Self::NotListed => f.write_str("peers.json has no room for it: a ConfigMap holds a mebibyte"),
            Self::DuplicateId { peer_id, others, more } => {
                write!(f, "it says that it is {peer_id}, and so does {}", others.join(" and "))?;
                if *more > 0 { write!(f, " and {more} more") } else { Ok(()) }
            }
        }
    }
}

/// Why a condition is as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// All peers answer.
    AllAnswer,
    /// Some do not.
    PeersMissing,
    /// There are more than there shall be.
    PeersSurplus,
    /// The Job that connects peers has ended well.
    JobSucceeded,
    /// It has not.
    JobFailed,
    /// It runs, or is about to.
    JobRunning,
    /// It is not begun before all peers answer, or patience has ended.
    WaitingForPeers,
    /// Nothing is declared among these peers.
    NothingDeclared,
    /// Connections are none of the operator's business.
    Disabled,
    /// All that are declared are there.
    AllConnected,
    /// Some are not.
    EdgesMissing,
    /// Those that are not are kept apart by a fault of a simulation.
    EdgesSevered,
    /// Nobody answers.
    NobodyAnswers,
    /// All is as it should be.
    Ready,
    /// The spec cannot be carried out.
    InvalidSpec,
    /// The namespace is somebody else's.
    NamespaceTaken,
    /// The namespace is going.
    NamespaceTerminating,
    /// Its time is over.
    Expired,
}

impl Reason {
    /// As conditions carry it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllAnswer => "AllAnswer",
            Self::PeersMissing => "PeersMissing",
            Self::PeersSurplus => "PeersSurplus",
            Self::JobSucceeded => "JobSucceeded",
            Self::JobFailed => "JobFailed",
            Self::JobRunning => "JobRunning",
            Self::WaitingForPeers => "WaitingForPeers",
            Self::NothingDeclared => "NothingDeclared",
            Self::Disabled => "Disabled",
            Self::AllConnected => "AllConnected",
            Self::EdgesMissing => "EdgesMissing",
            Self::EdgesSevered => "EdgesSevered",
            Self::NobodyAnswers => "NobodyAnswers",
            Self::Ready => "Ready",
            Self::InvalidSpec => "InvalidSpec",
            Self::NamespaceTaken => "NamespaceTaken",
            Self::NamespaceTerminating => "NamespaceTerminating",
            Self::Expired => "Expired",
        }
    }
}
