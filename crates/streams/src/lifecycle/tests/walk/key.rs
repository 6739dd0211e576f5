//! What states are told apart by: all of a world but its user that a decision can depend on, now or later, with numbers and times as far
//! as it does.

use std::hash::{Hash, Hasher};

use jiff::{SignedDuration, Timestamp};

use super::digest::Digest;
use super::wishes::{Change, Configuration};
use crate::kinds::{ActiveRun, Purpose};
use crate::lifecycle::tests::world::{FATAL, PLEASE_BACKFILL, RETRYABLE, World};
use crate::lifecycle::{Health, JobState, LiveJob};

/// What a state is told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Key {
    /// Nothing was written to the status yet.
    is_new: bool,
    is_initialised: bool,
    is_backfill_asked: bool,
    is_waiting: bool,
    failures: u64,
    request: RequestKey,
    crash: Option<CrashKey>,
    rollout: Option<RolloutKey>,
    /// The status has a run whose Job or `CronJob` is gone.
    is_run_gone: bool,
    job: JobKey,
    schedule: Option<ScheduleKey>,
    pods: Option<Pods>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RequestKey {
    None,
    Open {
        failed: u32,
    },
    Cancelled,
    /// The status says how it ended.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CrashKey {
    is_backfill: bool,
    /// Between what crashed and what the run was made from that may go on.
    change: Option<Change>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RolloutKey {
    /// Of the new Job that runs.
    is_ready: Option<bool>,
    /// The status says so. True: it has for long enough.
    is_due: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum JobKey {
    None,
    /// It is over, and the status says how: it only waits to be gone.
    Spent {
        is_deleting: bool,
        is_held: bool,
        leaves_pods: bool,
    },
    Known {
        is_deleting: bool,
        is_held: bool,
        is_in_status: bool,
        is_recorded: bool,
        is_background: bool,
        purpose: PurposeKey,
        state: StateKey,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PurposeKey {
    Stream,
    Backfill {
        has_reload: bool,
    },
    Requested,
    /// Its request is cancelled, over or gone.
    Unwanted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum StateKey {
    Running {
        is_young: bool,
    },
    /// With or without a pause to come, and likewise below.
    Completed {
        pauses: bool,
    },
    AsksForBackfill {
        pauses: bool,
    },
    Retryable {
        pauses: bool,
    },
    Disrupted {
        pauses: bool,
    },
    Counted {
        pauses: bool,
        was_healthy: bool,
    },
    Fatal,
    /// It has failed, and nobody cares.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ScheduleKey {
    is_deleting: bool,
    is_in_status: bool,
    slot: Option<SlotKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SlotKey {
    /// The status says how it ended.
    Told,
    Completed,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Pods {
    End,
    Stay,
}

pub(super) fn key(world: &World) -> Key {
    let status = &world.status;
    let crash = status.crashed.as_ref().map(|crashed| CrashKey {
        is_backfill: crashed.template.starts_with('b'),
        change: subject(world)
            .map(|run| Configuration::of(&run.made_from).change(Configuration::of(crashed))),
    });
    let is_there = |name: &str| {
        world.jobs.iter().any(|job| job.name == name) || world.schedule.iter().any(|on| on.name == name)
    };
    let pods = if world.pods_end { Pods::End } else { Pods::Stay };
    Key {
        is_new: status.phase.is_none(),
        is_initialised: status.initialised,
        is_backfill_asked: status.backfill_asked,
        // A crash loop lets no attempt be made, and one that is over forgets the time of the next.
        is_waiting: crash.is_none() && status.next_attempt.is_some_and(|at| at > world.now),
        failures: failures(world),
        request: request_key(world),
        crash,
        rollout: rollout_key(world),
        is_run_gone: status.run.as_ref().is_some_and(|run| !is_there(&run.job)),
        job: world.jobs.first().map_or(JobKey::None, |job| job_key(world, job)),
        schedule: schedule_key(world),
        pods: world.has_pods.then_some(pods),
    }
}

/// As far as they are counted: with as many as the budget has, one more is too many.
fn failures(world: &World) -> u64 {
    world.status.failures.min(u64::from(world.class.restart.budget))
}

/// The run that goes on, or that has ended in a way that may become a crash loop: what it was made from matters.
pub(super) fn subject(world: &World) -> Option<&ActiveRun> {
    let job = world.jobs.iter().find(|job| match job_key(world, job) {
        JobKey::Known { state, .. } => {
            matches!(state, StateKey::Running { .. } | StateKey::Counted { .. } | StateKey::Fatal)
        }
        JobKey::None | JobKey::Spent { .. } => false,
    });
    let schedule = world.schedule.iter().find(|on| !on.is_deleting);
    job.and_then(|job| job.run.as_ref()).or_else(|| schedule.and_then(|on| on.run.as_ref()))
}

/// Whether a Job runs that a roll-out waits for.
pub(super) fn is_new(world: &World, job: &LiveJob) -> bool {
    let is_live = job.state == JobState::Running && !job.is_deleting;
    let stopped = world.status.rollout.as_ref().map(|rollout| rollout.stopped);
    is_live && job.run.as_ref().is_some_and(|run| stopped.is_some_and(|stopped| run.number > stopped))
}

fn rollout_key(world: &World) -> Option<RolloutKey> {
    let rollout = world.status.rollout.as_ref()?;
    let least = SignedDuration::from_secs(world.class.rollout.min_ready_seconds.into());
    Some(RolloutKey {
        is_ready: world.jobs.iter().find(|job| is_new(world, job)).map(|job| job.health == Health::Ready),
        is_due: rollout.ready_since.map(|since| since + least <= world.now),
    })
}

fn request_key(world: &World) -> RequestKey {
    let Some(request) = world.requests.first() else { return RequestKey::None };
    if world.status.backfills.iter().any(|over| over.request == request.uid) {
        RequestKey::Over
    } else if request.is_cancelled {
        RequestKey::Cancelled
    } else {
        let begun = world.status.begun.as_ref().filter(|begun| begun.request == request.uid);
        RequestKey::Open { failed: begun.map_or(0, |begun| begun.failed) }
    }
}

fn job_key(world: &World, job: &LiveJob) -> JobKey {
    let (is_deleting, is_held) = (job.is_deleting, job.is_held);
    let is_recorded = world.status.history.iter().any(|past| past.job == job.name);
    let is_running = job.state == JobState::Running;
    let is_background = world.is_background;
    let Some(run) = job.run.as_ref().filter(|_| !is_recorded || (is_running && !is_deleting)) else {
        return JobKey::Spent { is_deleting, is_held, leaves_pods: is_background };
    };
    let (mut purpose, state) = (purpose_key(world, &run.purpose), state_key(world, job, run));
    let may_crash = matches!(state, StateKey::Running { .. } | StateKey::Counted { .. } | StateKey::Fatal);
    if purpose == (PurposeKey::Backfill { has_reload: true }) && !may_crash {
        purpose = PurposeKey::Backfill { has_reload: false };
    }
    JobKey::Known {
        is_deleting,
        is_held,
        is_in_status: world.status.run.as_ref().is_some_and(|run| run.job == job.name),
        is_recorded,
        is_background,
        purpose,
        state,
    }
}

fn purpose_key(world: &World, purpose: &Purpose) -> PurposeKey {
    match purpose {
        Purpose::Stream | Purpose::Schedule => PurposeKey::Stream,
        Purpose::Backfill { request: None, reload, .. } => {
            PurposeKey::Backfill { has_reload: reload.is_some() }
        }
        Purpose::Backfill { request: Some(uid), .. } => {
            let is_open = matches!(request_key(world), RequestKey::Open { .. });
            let is_it = world.requests.iter().any(|request| request.uid == *uid);
            if is_open && is_it { PurposeKey::Requested } else { PurposeKey::Unwanted }
        }
    }
}

fn state_key(world: &World, job: &LiveJob, run: &ActiveRun) -> StateKey {
    let policy = &world.class.restart;
    let is_after =
        |from: Timestamp, seconds: u32| from + SignedDuration::from_secs(seconds.into()) > world.now;
    let (purpose, is_backfill) = (purpose_key(world, &run.purpose), run.purpose.is_backfill());
    let pauses_for_start = is_after(run.started_at, policy.minimum_interval_seconds);
    match &job.state {
        JobState::Running => StateKey::Running { is_young: is_after(run.started_at, policy.healthy_seconds) },
        JobState::Completed { .. } => StateKey::Completed { pauses: !is_backfill && pauses_for_start },
        JobState::Failed { .. } if purpose == PurposeKey::Unwanted => StateKey::Failed,
        JobState::Failed { is_disrupted: true, .. } => StateKey::Disrupted { pauses: pauses_for_start },
        JobState::Failed { at, exit_code, .. } => {
            let pauses = is_after(*at, policy.backoff_seconds);
            match *exit_code {
                Some(FATAL) => StateKey::Fatal,
                Some(RETRYABLE) => StateKey::Retryable { pauses },
                Some(PLEASE_BACKFILL) if !is_backfill => {
                    StateKey::AsksForBackfill { pauses: pauses_for_start }
                }
                _ => {
                    let lived = at.duration_since(run.started_at).as_secs();
                    let was_healthy = lived >= policy.healthy_seconds.into();
                    let is_counted_anew = failures(world) > 0 && purpose != PurposeKey::Requested;
                    StateKey::Counted { pauses, was_healthy: was_healthy && is_counted_anew }
                }
            }
        }
    }
}

fn schedule_key(world: &World) -> Option<ScheduleKey> {
    let on = world.schedule.as_ref()?;
    let is_told = |name: &str| world.status.history.iter().any(|past| past.job == name);
    Some(ScheduleKey {
        is_deleting: on.is_deleting,
        is_in_status: world.status.run.as_ref().is_some_and(|run| run.job == on.name),
        slot: on.ended.first().map(|(name, _, state)| match state {
            _ if is_told(name) => SlotKey::Told,
            JobState::Failed { .. } => SlotKey::Failed,
            JobState::Running | JobState::Completed { .. } => SlotKey::Completed,
        }),
    })
}

/// What tells worlds of one state apart: whatever a mistake in leaving it out would show by.
pub(super) fn remainder(world: &World) -> u64 {
    let status = &world.status;
    let mut digest = Digest::default();
    let begun = status.begun.as_ref().map(|begun| begun.failed);
    let outcomes = status.history.iter().map(|past| past.outcome as u8);
    let over = status.backfills.iter().map(|over| over.phase as u8);
    let waits = status.next_attempt.map(|at| at > world.now);
    (status.phase, status.failures, waits, status.reloaded.is_some(), begun).hash(&mut digest);
    (outcomes.collect::<Vec<u8>>(), over.collect::<Vec<u8>>(), world.is_background).hash(&mut digest);
    for job in &world.jobs {
        let exit_code = match job.state {
            JobState::Failed { exit_code, .. } => exit_code,
            JobState::Running | JobState::Completed { .. } => None,
        };
        let run = job.run.as_ref().map(|run| (run.purpose.request().is_some(), run.started_at == world.now));
        (exit_code, run).hash(&mut digest);
    }
    digest.finish()
}
