//! Why a simulation stands as it does: one vocabulary for conditions and events.

/// Why a simulation stands as it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its spec cannot be used.
    InvalidSpec,
    /// It is not in the namespace of a network.
    NetworkMissing,
    /// Its network is not ready.
    NetworkNotReady,
    /// No peer is told in `peers.json`.
    NoPeers,
    /// What was started for a former spec is still there.
    StoppingFormerRun,
    /// A partition of a former spec is still there.
    MendingPartition,
    /// The manager is not there yet.
    StartingManager,
    /// Workers are not there yet.
    StartingWorkers,
    /// The load is there.
    Running,
    /// There is a verdict.
    Judged,
    /// The manager ended before it told.
    ManagerLost,
    /// A worker ended before it told.
    WorkerLost,
    /// Manager and workers were not there in time.
    StartDeadlineExceeded,
    /// The report was not there in time.
    RunDeadlineExceeded,
}

impl Reason {
    /// As conditions and events carry it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidSpec => "InvalidSpec",
            Self::NetworkMissing => "NetworkMissing",
            Self::NetworkNotReady => "NetworkNotReady",
            Self::NoPeers => "NoPeers",
            Self::StoppingFormerRun => "StoppingFormerRun",
            Self::MendingPartition => "MendingPartition",
            Self::StartingManager => "StartingManager",
            Self::StartingWorkers => "StartingWorkers",
            Self::Running => "Running",
            Self::Judged => "Judged",
            Self::ManagerLost => "ManagerLost",
            Self::WorkerLost => "WorkerLost",
            Self::StartDeadlineExceeded => "StartDeadlineExceeded",
            Self::RunDeadlineExceeded => "RunDeadlineExceeded",
        }
    }
}
