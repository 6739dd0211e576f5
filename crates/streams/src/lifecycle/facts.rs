//! What the rules ask about a situation. Nothing here changes anything.

use std::cell::OnceCell;

use jiff::{SignedDuration, Timestamp};

use super::{Health, JobState, LingeringPod, LiveJob, LiveSchedule, Permit, Request, Situation, tidy};
use crate::config::InitialBackfill;
use crate::kinds::{ActiveRun, Hashes, Purpose, StreamStatus};
use crate::wish::{Mode, Problem, Wish};

/// A situation as the rules see it.
pub struct Facts<'a> {
    pub(super) on: &'a Situation<'a>,
    /// The status with all in it that follows from what there is, whichever rule fits.
    pub(super) status: StreamStatus,
    /// What runs and is not being deleted.
    pub(super) live: Vec<Live<'a>>,
    lingering: OnceCell<Vec<LingeringPod>>,
    start: OnceCell<Permit>,
    rollout: OnceCell<Permit>,
}

/// A Job or `CronJob` that runs and is not being deleted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live<'a> {
    pub(super) name: &'a str,
    /// None: nobody can tell what it was made as.
    pub(super) run: Option<&'a ActiveRun>,
    /// None: it is a `CronJob`, which has no pods.
    pub(super) health: Option<&'a Health>,
}

/// A backfill that comes before the stream itself.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// A request's.
    Request(&'a Request),
    /// One of the stream's own: it is new, is reloaded, or its program asked for it.
    Own,
}

/// How what a run was made from differs from what it would be made from now, the gravest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Not at all.
    None,
    /// A restart is asked for.
    Restart,
    /// The stream's spec.
    Spec,
    /// Only a template or a Secret.
    Surroundings,
}

impl<'a> Facts<'a> {
    /// Of a situation.
    pub fn of(situation: &'a Situation<'a>) -> Self {
        let live = live(situation);
        let status = tidy::tidied(situation, &live);
        let (lingering, start, rollout) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { on: situation, status, live, lingering, start, rollout }
    }

    pub(super) fn wish(&self) -> Option<&'a Wish> {
        self.on.wish.as_ref().ok()
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.wish().is_some_and(|wish| !wish.suspensions.is_empty())
    }

    /// Who wants that it does not run, for people.
    pub(super) fn suspended_by(&self) -> String {
        let suspensions = self.wish().into_iter().flat_map(|wish| &wish.suspensions);
        let by: Vec<String> = suspensions.map(ToString::to_string).collect();
        format!("Suspended {}", by.join(", "))
    }

    /// The only thing that runs.
    pub(super) fn run(&self) -> Option<&'a ActiveRun> {
        match self.live[..] {
            [Live { run, .. }] => run,
            _ => None,
        }
    }

    /// What runs will not be ready without somebody's help.
    pub(super) fn is_stuck(&self) -> bool {
        self.live.iter().any(|live| matches!(live.health, Some(Health::NotYet { is_stuck: true, .. })))
    }

    /// The time at which the run has been ready for long enough to end the stream's part in a roll-out.
    pub(super) fn settles_at(&self, status: &StreamStatus) -> Option<Timestamp> {
        settles_at(self.on, status.rollout.as_ref()?.ready_since?)
    }

    /// The oldest Job that has ended and whose outcome is not in the status.
    pub(super) fn ended(&self) -> Option<(&'a LiveJob, &'a ActiveRun)> {
        let jobs = self.on.jobs.iter().filter(|job| job.state != JobState::Running);
        let known = jobs.filter_map(|job| Some((job, run_of(self.on, job)?)));
        let unrecorded = known.filter(|(_, run)| !is_recorded(self.on, run));
        unrecorded.min_by_key(|(_, run)| run.number)
    }

    /// A run that was stopped, which the status does not say yet.
    pub(super) fn stopped(&self) -> Option<&'a ActiveRun> {
        let of_status = self.on.status.run.as_ref().filter(|run| !self.is_there(&run.job));
        of_status.or_else(|| {
            let deleting = self.on.jobs.iter().filter(|job| is_stopping(job));
            let known = deleting.filter_map(|job| run_of(self.on, job));
            known.filter(|run| !is_recorded(self.on, run)).min_by_key(|run| run.number)
        })
    }

    fn is_there(&self, name: &str) -> bool {
        let is_job = self.on.jobs.iter().any(|job| job.name == name && !is_stopping(job));
        is_job || self.on.schedule.is_some_and(|schedule| schedule.name == name && !schedule.is_deleting)
    }

    /// Jobs of the `CronJob` that have ended, which the status does not say yet.
    pub(super) fn slots(&self) -> Vec<&'a (String, Timestamp, JobState)> {
        let Some(schedule) = self.on.schedule else { return Vec::new() };
        let past = self.on.status.history.iter();
        let of_slots = past.filter(|past| past.kind == Purpose::Schedule.kind() && past.job != schedule.name);
        // They end one after the other, and one that the history has no room for any more is older than those that it tells of.
        let newest = of_slots.map(|past| (past.ended_at, past.job.as_str())).max();
        let is_new = |name: &str, at: Option<Timestamp>| at.is_some_and(|at| newest < Some((at, name)));
        schedule.ended.iter().filter(|(name, _, state)| is_new(name, state.ended_at())).collect()
    }

    /// Something is there that is over or on its way out, and nothing else.
    pub(super) fn is_ending(&self) -> bool {
        self.live.is_empty() && (!self.on.jobs.is_empty() || self.on.schedule.is_some())
    }

    /// The backfill that comes next, if one does.
    pub(super) fn wanted(&self) -> Option<Wanted<'a>> {
        let wish = self.wish()?;
        let begun = self.status.begun.as_ref().map(|begun| begun.request.as_str());
        let mut open = self.on.requests.iter().filter(|request| is_open(self.on, &self.status, &request.uid));
        let request =
            open.clone().find(|request| Some(request.uid.as_str()) == begun).or_else(|| open.next());
        let is_own = self.status.backfill_asked || self.reload().is_some() || self.is_new(wish);
        request.map(Wanted::Request).or_else(|| is_own.then_some(Wanted::Own))
    }

    fn is_new(&self, wish: &Wish) -> bool {
        let is_asked = match self.on.class.initial_backfill {
            InitialBackfill::IfTemplate => wish.has_backfill_template,
            InitialBackfill::Always => true,
            InitialBackfill::Never => false,
        };
        is_asked && !self.status.initialised
    }

    /// The value of the reload annotation, if no backfill was made for it.
    pub(super) fn reload(&self) -> Option<&'a str> {
        unseen_reload(self.wish()?, &self.status)
    }

    /// The run is for a request that is not wanted any more.
    pub(super) fn is_cancelled(&self, run: &ActiveRun) -> bool {
        run.purpose.request().is_some_and(|uid| !is_open(self.on, &self.status, uid))
    }

    /// What a run for this purpose would be made from.
    pub(super) fn hashes(&self, is_backfill: bool) -> Result<&'a Hashes, &'a Problem> {
        let wish = self.on.wish.as_ref()?;
        if is_backfill { wish.backfill.as_ref() } else { wish.stream.as_ref() }
    }

    /// What is wrong with what the user wrote, as far as the present or the next run needs it.
    pub(super) fn problem(&self) -> Option<&'a Problem> {
        let present = self.run().map(|run| run.purpose.is_backfill());
        let next = present.is_none_or(|is_backfill| !is_backfill).then(|| self.wanted().is_some());
        present.into_iter().chain(next).find_map(|is_backfill| self.hashes(is_backfill).err())
    }

    /// How a run differs from what it would be made as now.
    pub(super) fn change(&self, run: &ActiveRun) -> Change {
        let Ok(now) = self.hashes(run.purpose.is_backfill()) else { return Change::None };
        let then = &run.made_from;
        if then.restart != now.restart {
            Change::Restart
        } else if then.spec != now.spec {
            Change::Spec
        } else if then != now {
            Change::Surroundings
        } else {
            Change::None
        }
    }

    /// The run is of the other mode.
    pub(super) fn is_switched(&self, run: &ActiveRun) -> bool {
        match self.wish().map(|wish| wish.mode) {
            Some(Mode::Scheduled) => run.purpose == Purpose::Stream,
            Some(Mode::ChangeCapture) => run.purpose == Purpose::Schedule,
            None => false,
        }
    }

    /// Why a run was stopped, by what is true now: in a word, as the history tells it.
    pub(super) fn stop_reason(&self, run: &ActiveRun) -> &'static str {
        let change = self.change(run);
        if self.is_suspended() {
            "Suspended"
        } else if self.is_cancelled(run) {
            "BackfillCancelled"
        } else if change == Change::Restart {
            "RestartRequested"
        } else if !run.purpose.is_backfill() && self.wanted().is_some() {
            "BackfillRequested"
        } else if change != Change::None || self.is_switched(run) {
            "ConfigurationChanged"
        } else {
            "Deleted"
        }
    }

    /// The time of the next attempt, if it has not come yet.
    pub(super) fn pause(&self) -> Option<Timestamp> {
        self.status.next_attempt.filter(|at| *at > self.on.now)
    }

    pub(super) fn lingering(&self) -> &[LingeringPod] {
        self.lingering.get_or_init(|| self.on.asks.lingering())
    }

    /// Those of them that nobody will ever end.
    pub(super) fn left_behind(&self) -> Vec<String> {
        let left = self.lingering().iter().filter(|pod| pod.is_left_behind);
        left.map(|pod| pod.name.clone()).collect()
    }

    pub(super) fn start(&self) -> Permit {
        *self.start.get_or_init(|| self.on.asks.start())
    }

    pub(super) fn rollout(&self) -> Permit {
        *self.rollout.get_or_init(|| self.on.asks.rollout())
    }

    /// Jobs that hold nothing any more that the status does not say.
    pub(super) fn spent(&self) -> impl Iterator<Item = &'a LiveJob> {
        self.on.jobs.iter().filter(|job| {
            let is_over = job.is_deleting || job.state != JobState::Running;
            job.is_held && is_over && run_of(self.on, job).is_none_or(|run| is_recorded(self.on, run))
        })
    }
}

/// The time at which a run that has been ready since a time has been so for long enough.
pub(super) fn settles_at(on: &Situation<'_>, ready_since: Timestamp) -> Option<Timestamp> {
    let least = SignedDuration::from_secs(on.class.rollout.min_ready_seconds.into());
    ready_since.checked_add(least).ok()
}

/// A value of the reload annotation that no backfill was made for.
pub(super) fn unseen_reload<'a>(wish: &'a Wish, status: &StreamStatus) -> Option<&'a str> {
    wish.reload.as_deref().filter(|value| status.reloaded.as_deref() != Some(value))
}

/// Whether a request is there, and is neither cancelled nor over.
pub(super) fn is_open(on: &Situation<'_>, status: &StreamStatus, uid: &str) -> bool {
    let is_wanted = on.requests.iter().any(|request| request.uid == uid && !request.is_cancelled);
    is_wanted && !status.backfills.iter().any(|outcome| outcome.request == uid)
}

fn live<'a>(on: &'a Situation<'a>) -> Vec<Live<'a>> {
    let jobs = on.jobs.iter().filter(|job| job.state == JobState::Running && !job.is_deleting);
    let jobs = jobs.map(|job| Live { name: &job.name, run: run_of(on, job), health: Some(&job.health) });
    let schedule = on.schedule.filter(|schedule| !schedule.is_deleting);
    let schedule = schedule.map(|schedule| Live {
        name: &schedule.name,
        run: run_of_schedule(on, schedule),
        health: None,
    });
    jobs.chain(schedule).collect()
}

/// What a Job was made as: as it says itself, else as the status knows it by its name.
fn run_of<'a>(on: &'a Situation<'a>, job: &'a LiveJob) -> Option<&'a ActiveRun> {
    job.run.as_ref().or_else(|| known(on, &job.name))
}

fn run_of_schedule<'a>(on: &'a Situation<'a>, schedule: &'a LiveSchedule) -> Option<&'a ActiveRun> {
    schedule.run.as_ref().or_else(|| known(on, &schedule.name))
}

fn known<'a>(on: &'a Situation<'a>, name: &str) -> Option<&'a ActiveRun> {
    on.status.run.as_ref().filter(|run| run.job == name)
}

fn is_stopping(job: &LiveJob) -> bool {
    job.is_deleting && job.state == JobState::Running
}

/// The status says how this run ended, or did and has no room for it any more.
fn is_recorded(on: &Situation<'_>, run: &ActiveRun) -> bool {
    let history = &on.status.history;
    let is_full = history.len() >= on.class.history.max(1) as usize;
    let is_told = history.iter().any(|past| past.number == run.number && past.job == run.job);
    is_told || (is_full && history.last().is_some_and(|oldest| run.number < oldest.number))
}
