//! What the operator writes into the status of a user's stream: all that it knows, so that a new one can go on from it.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a stream stands.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StreamStatus {
    /// In a word. None: nobody has looked at it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What the present run was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration_hash: Option<String>,
    /// The generation that all of this is about. The framework fills it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The number of the latest run.
    #[serde(skip_serializing_if = "is_zero")]
    pub runs_started: u64,
    /// The run that goes on, as far as this status knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<ActiveRun>,
    /// How often a run was followed by another, for whatever reason.
    pub restarts: u64,
    /// Failed runs in a row, as the budget counts them.
    #[serde(skip_serializing_if = "is_zero")]
    pub failures: u64,
    /// The next run does not begin before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Timestamp>,
    /// What the run was made from that ended in a crash loop. The loop is over when it is not what the next one would be made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crashed: Option<Hashes>,
    /// The stream takes part in a roll-out of a changed template or Secret: its run is stopped for it, or its new one has not been ready
    /// for long enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// The stream has been backfilled at its beginning, or needed not be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub initialised: bool,
    /// The last value of the reload annotation that a backfill was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reloaded: Option<String>,
    /// The program has asked for a backfill by its exit code.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub backfill_asked: bool,
    /// The request whose backfill has begun and is not over, while no Job runs for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun: Option<BegunBackfill>,
    /// Requests that are over and do not say so themselves yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backfills: Vec<BackfillOutcome>,
    /// The last runs that are over, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PastRun>,
    /// `Ready`, and others while there is something to tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(layout: &u32) -> bool {
    *layout == 0
}

/// How a stream stands, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
pub enum Phase {
    /// It has no Job, and will have one.
    Pending,
    /// Its Job runs.
    Running,
    /// Its backfill runs.
    Backfilling,
    /// A `CronJob` runs it when its time has come.
    Scheduled,
    /// It has no Job because somebody wants it so.
    Suspended,
    /// It cannot have a Job: see its conditions.
    Failed,
    /// Its Job has failed for good.
    CrashLoopDetected,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Backfilling,
        Self::Scheduled,
        Self::Suspended,
        Self::Failed,
        Self::CrashLoopDetected,
    ];

    /// As the status carries it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Backfilling => "Backfilling",
            Self::Scheduled => "Scheduled",
            Self::Suspended => "Suspended",
            Self::Failed => "Failed",
            Self::CrashLoopDetected => "CrashLoopDetected",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a run was made from. Two runs with the same hashes are the same program with the same environment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hashes {
    /// Of the stream's spec as the program sees it, with the names of its templates and Secrets, and its schedule.
    pub spec: String,
    /// Of the template.
    pub template: String,
    /// Of what the Secrets hold. Empty without any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub secrets: String,
    /// The restart annotation's value when the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
}

impl Hashes {
    /// The first characters of each, for people: `3f9a-07c2-b1d8`.
    pub fn short(&self) -> String {
        let parts = [&self.spec, &self.template, &self.secrets];
        let starts = parts.into_iter().filter(|part| !part.is_empty());
        starts.map(|part| part.chars().take(4).collect()).collect::<Vec<String>>().join("-")
    }
}

/// What a run is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Purpose {
    /// The stream itself.
    #[default]
    Stream,
    /// The stream itself, each time its schedule says so.
    Schedule,
    /// A backfill.
    #[serde(rename_all = "camelCase")]
    Backfill {
        /// The uid of the request; none if the stream is new, is reloaded, or its program asked for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        request: Option<String>,
        /// What the program knows it by.
        id: String,
        /// The value of the reload annotation that it is for.
        #[serde(skip_serializing_if = "Option::is_none")]
        reload: Option<String>,
    },
}

impl Purpose {
    /// `Stream`, `Schedule` or `Backfill`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stream => "Stream",
            Self::Schedule => "Schedule",
            Self::Backfill { .. } => "Backfill",
        }
    }

    /// The uid of the request that it is for.
    pub fn request(&self) -> Option<&str> {
        match self {
            Self::Backfill { request, .. } => request.as_deref(),
            Self::Stream | Self::Schedule => None,
        }
    }

    /// Whether it is a backfill.
    pub fn is_backfill(&self) -> bool {
        matches!(self, Self::Backfill { .. })
    }
}

/// A run that goes on. It is on the Job as an annotation, and in the stream's status.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveRun {
    /// Its number, from 1.
    pub number: u64,
    /// What it is for.
    #[serde(flatten)]
    pub purpose: Purpose,
    /// What it was made from.
    pub made_from: Hashes,
    /// Which attempt at the same thing it is, from 1. Only backfills count.
    #[serde(default)]
    pub attempt: u32,
    /// The name of the Job or `CronJob`.
    pub job: String,
    /// When it was decided on.
    pub started_at: Timestamp,
    /// Which additions of the operator the Job has. An older Job is compared with what it was made as, so a new version of the operator
    /// does not replace it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub layout: u32,
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PastRun {
    /// Its number.
    pub number: u64,
    /// `Stream`, `Schedule` or `Backfill`.
    pub kind: String,
    /// The name of the Job.
    pub job: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was over, or was seen to be.
    pub ended_at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// Of the container that failed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why, in a word: `Completed`, `BackoffLimitExceeded`, `ConfigurationChanged`, `Suspended`.
    pub reason: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum Outcome {
    /// Its program was done.
    Completed,
    /// Its program failed.
    Failed,
    /// It was ended.
    Stopped,
}

/// How far the roll-out to a stream is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rollout {
    /// The number of the run that is stopped for it.
    pub stopped: u64,
    /// Since when its new run is ready. Absent while it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_since: Option<Timestamp>,
}

/// A request whose backfill has begun and is not over.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BegunBackfill {
    /// The request's uid.
    pub request: String,
    /// How many Jobs have been started for it.
    pub attempts: u32,
    /// How many of them have failed, as its retries count.
    pub failed: u32,
    /// When the first one began.
    pub started_at: Timestamp,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackfillOutcome {
    /// The request's uid.
    pub request: String,
    /// `Completed`, `Failed` or `Cancelled`.
    pub phase: super::BackfillPhase,
    /// How many Jobs it took.
    pub attempts: u32,
    /// When the first one began, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it was over.
    pub ended_at: Timestamp,
    /// Why, for people.
    pub message: String,
    /// Why, in a word, if no Job could be made for it: `PayloadTooLarge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
