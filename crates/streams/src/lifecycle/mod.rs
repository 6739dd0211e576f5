//! What becomes of a stream: one pure function from what there is to a phase, and to what shall be there.
//!
//! ```text
//! status so far, what the user asks for, Jobs as they are, requests ─▶ facts ─▶ the first rule that fits ─▶ decision
//! ```
//!
//! - Never two Jobs of a stream at once, nor the pods of two.
//! - Suspended means: no Job.
//! - How a Job ended is in the status before the Job can go.
//! - Events only wake; whatever happened while nobody looked is seen from what there is.

mod acts;
mod decide;
mod facts;
mod record;
mod rules;
mod table;
#[cfg(test)]
mod tests;
mod tidy;

use jiff::Timestamp;

pub use self::decide::decide;
pub use self::facts::Facts;
pub use self::rules::{RULES, Rule};
pub use self::table::render_table;
use crate::config::{RestartConfig, StreamClassConfig};
use crate::kinds::{ActiveRun, Phase, Purpose, StreamStatus};
use crate::wish::{Problem, Wish};

/// All that a decision about a stream rests on.
pub struct Situation<'a> {
    /// The time.
    pub now: Timestamp,
    /// What was known after the last decision.
    pub status: &'a StreamStatus,
    /// What the user asks for, or why that cannot be told.
    pub wish: &'a Result<Wish, Problem>,
    /// The stream's Jobs, those that are being deleted included.
    pub jobs: &'a [LiveJob],
    /// Its `CronJob`, if there is one.
    pub schedule: Option<&'a LiveSchedule>,
    /// Requests for backfills that are not over by their own account, in the order of the queue.
    pub requests: &'a [Request],
    /// How its class has it run.
    pub class: &'a StreamClassConfig,
    /// The name of the Job or `CronJob` of a run, by what it is for and its number.
    pub names: &'a dyn Fn(&Purpose, u64) -> String,
    /// What is asked only if it matters.
    pub asks: &'a dyn Asks,
}

impl Situation<'_> {
    /// What happens when a Job ends.
    pub fn policy(&self) -> &RestartConfig {
        &self.class.restart
    }
}

/// Questions that cost something, and are asked only if the answer matters.
pub trait Asks {
    /// Pods of former runs that have not ended.
    fn lingering(&self) -> Vec<LingeringPod>;
    /// Whether a Job may be started now, as far as the class's rate goes.
    fn start(&self) -> Permit;
    /// Whether the Job may be stopped now because a template or a Secret has changed.
    fn rollout(&self) -> Permit;
}

/// A pod of a former run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LingeringPod {
    /// Its name.
    pub name: String,
    /// Its Job is gone and has left it behind, so that nobody will ever end it.
    pub is_left_behind: bool,
}

/// Whether something may be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// It may.
    Granted,
    /// Not before this time; then it is to be asked again.
    At(Timestamp),
    /// Not while the streams that went before fail. To be asked again at this time.
    Halted(Timestamp),
}

/// A Job of the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveJob {
    /// Its name.
    pub name: String,
    /// What it was made as. None: it does not say, or nobody can read it.
    pub run: Option<ActiveRun>,
    /// How far it is.
    pub state: JobState,
    /// It is being deleted.
    pub is_deleting: bool,
    /// It waits for its outcome to be recorded.
    pub is_held: bool,
    /// Whether its pods do their work.
    pub health: Health,
}

/// Whether the pods of a Job do their work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// One is ready at least.
    Ready,
    /// None is ready.
    NotYet {
        /// Why, in the words of the node or the scheduler. Empty if there is nothing to say.
        why: String,
        /// It will not be ready without somebody's help, as far as can be seen: the image cannot be pulled, no node fits.
        is_stuck: bool,
    },
}

/// How far a Job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// It has not ended.
    Running,
    /// It is done.
    Completed {
        /// When.
        at: Timestamp,
    },
    /// It has failed for good.
    Failed {
        /// When.
        at: Timestamp,
        /// Of the container that failed, if its pod still tells.
        exit_code: Option<i32>,
        /// The Job's own reason: `BackoffLimitExceeded`.
        reason: String,
        /// It would not have failed but for pods that were evicted, preempted, or ended with their node.
        is_disrupted: bool,
    },
}

/// The stream's `CronJob`.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveSchedule {
    /// Its name.
    pub name: String,
    /// What it was made as.
    pub run: Option<ActiveRun>,
    /// It is being deleted.
    pub is_deleting: bool,
    /// Its Jobs that have ended and are still there, the oldest first. They carry the number of the Job's own time instead of a run's.
    pub ended: Vec<(String, Timestamp, JobState)>,
}

/// A request for a backfill of this stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its uid.
    pub uid: String,
    /// Its name, which the program gets as the backfill's id.
    pub name: String,
    /// So many failed Jobs are followed by another.
    pub retries: u32,
    /// It is not wanted any more.
    pub is_cancelled: bool,
    /// Why no Job can be made for it.
    pub problem: Option<Problem>,
}

/// What shall be there.
#[derive(Debug, Clone, PartialEq)]
pub enum Desired {
    /// No Job and no `CronJob`: whatever is there is deleted.
    Nothing,
    /// The Job or `CronJob` of this name stays as it is, whatever it would be made from now. Others are deleted.
    AsIs(String),
    /// This run, as it would be made now. If it is there and somebody has changed it, it is made anew.
    /// Others are deleted.
    Run(ActiveRun),
}

/// What is decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The rule that decided, as a condition's reason.
    pub rule: &'static str,
    /// For people: why, and what is waited for.
    pub message: String,
    /// What the status shall be, but for conditions and `observedGeneration`.
    pub status: StreamStatus,
    /// What shall be there.
    pub desired: Desired,
    /// The status is to be written before anything else is done. Otherwise it is written if there is nothing to do for what shall be
    /// there, and left to the next decision if there is.
    pub status_first: bool,
    /// Jobs that may go now, by name: after the status, if that comes first.
    pub let_go: Vec<String>,
    /// Pods that their Job has left behind, by name: to be deleted.
    pub left_behind: Vec<String>,
    /// Something is wrong with what the user wrote, while an older Job runs on.
    pub problem: Option<Problem>,
    /// Why the run that stays is of no use yet: its pods are not ready.
    pub unready: Option<String>,
    /// What the stream has of its class's roll-out.
    pub seat: Seat,
    /// To be looked at again then, whatever happens.
    pub wake_at: Option<Timestamp>,
    /// What has happened, for those who read events: to be told when the status is written. Empty if it will not be.
    pub happened: Vec<Happened>,
}

impl Decision {
    /// The phase that is decided.
    pub fn phase(&self) -> Phase {
        self.status.phase.unwrap_or(Phase::Pending)
    }
}

/// What a stream has of its class's roll-out of a changed template or Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// Nothing: it takes no part in it, or is done.
    None,
    /// A place in the line.
    Waits,
    /// One of the seats: it is stopped or was restarted, and has not been ready for long enough.
    Held {
        /// Its new run has failed, or is stuck.
        is_failing: bool,
    },
}

/// Something that has happened to a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    /// It is bad news.
    pub is_warning: bool,
    /// One word in `CamelCase`.
    pub reason: &'static str,
    /// For people.
    pub note: String,
}
