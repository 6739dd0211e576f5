//! A stream's world in small: an API server, a Job controller, a user, and somebody who carries decisions out.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::config::StreamClassConfig;
use crate::kinds::{ActiveRun, Hashes, Purpose, StreamStatus};
use crate::lifecycle::{
    Asks, Decision, Desired, Health, JobState, LingeringPod, LiveJob, LiveSchedule, Permit, Request,
    Situation, decide,
};
use crate::wish::{Mode, Problem, Suspension, Wish};

/// What the user has written.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that a user writes or does not")]
pub(super) struct User {
    pub(super) is_suspended: bool,
    pub(super) is_scheduled: bool,
    pub(super) is_broken: bool,
    pub(super) is_stream_broken: bool,
    pub(super) is_backfill_broken: bool,
    pub(super) has_backfill_template: bool,
    pub(super) spec: u8,
    pub(super) template: u8,
    pub(super) secrets: u8,
    pub(super) restart: u8,
    pub(super) reload: u8,
}

#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and all combinations are walked through"
)]
pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) status: StreamStatus,
    pub(super) user: User,
    pub(super) jobs: Vec<LiveJob>,
    pub(super) schedule: Option<LiveSchedule>,
    pub(super) requests: Vec<Request>,
    pub(super) class: Arc<StreamClassConfig>,
    /// Pods of a former run have not ended.
    pub(super) has_pods: bool,
    /// Somebody sees to it that they end: their Job, or who deletes them.
    pub(super) pods_end: bool,
    /// The Job is deleted without its pods.
    pub(super) is_background: bool,
    pub(super) may_start: bool,
    pub(super) may_roll_out: bool,
}

/// A write of the operator.
#[derive(Debug, Clone)]
pub(super) enum Write {
    Status,
    LetGo(String),
    Delete(String),
    Create(ActiveRun),
    DeletePods,
}

pub(super) const RETRYABLE: i32 = 3;
pub(super) const FATAL: i32 = 4;
pub(super) const PLEASE_BACKFILL: i32 = 5;

pub(super) fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

impl Default for World {
    fn default() -> Self {
        let mut class = StreamClassConfig { history: 2, ..StreamClassConfig::default() };
        class.restart.exit_codes.retryable = vec![RETRYABLE];
        class.restart.exit_codes.fatal = vec![FATAL];
        class.restart.exit_codes.backfill = vec![PLEASE_BACKFILL];
        Self {
            now: Timestamp::from_second(1_000_000).unwrap(),
            status: StreamStatus::default(),
            user: User {
                is_suspended: false,
                is_scheduled: false,
                is_broken: false,
                is_stream_broken: false,
                is_backfill_broken: false,
                has_backfill_template: false,
                spec: 0,
                template: 0,
                secrets: 0,
                restart: 0,
                reload: 0,
            },
            jobs: Vec::new(),
            schedule: None,
            requests: Vec::new(),
            class: Arc::new(class),
            has_pods: false,
            pods_end: false,
            is_background: false,
            may_start: true,
            may_roll_out: true,
        }
    }
}

impl Asks for World {
    fn lingering(&self) -> Vec<LingeringPod> {
        let pod = LingeringPod { name: "old-pod".to_owned(), is_left_behind: !self.pods_end };
        if self.has_pods { vec![pod] } else { Vec::new() }
    }

    fn start(&self) -> Permit {
        if self.may_start { Permit::Granted } else { Permit::At(self.now + seconds(5)) }
    }

    fn rollout(&self) -> Permit {
        if self.may_roll_out { Permit::Granted } else { Permit::At(self.now + seconds(7)) }
    }
}

impl User {
    pub(super) fn hashes(&self, is_backfill: bool) -> Hashes {
        let kind = if is_backfill { 'b' } else { 's' };
        Hashes {
            spec: format!("{}", self.spec),
            template: format!("{kind}{}", self.template),
            secrets: if self.secrets > 0 { self.secrets.to_string() } else { String::new() },
            restart: (self.restart > 0).then(|| self.restart.to_string()),
        }
    }

    pub(super) fn wish(&self) -> Result<Wish, Problem> {
        let problem = || Problem {
            reason: "Broken",
            path: "spec.jobTemplateRef".into(),
            message: "is a number".into(),
        };
        if self.is_broken {
            return Err(problem());
        }
        Ok(Wish {
            mode: if self.is_scheduled { Mode::Scheduled } else { Mode::ChangeCapture },
            suspensions: if self.is_suspended { vec![Suspension::Spec] } else { Vec::new() },
            stream: if self.is_stream_broken { Err(problem()) } else { Ok(self.hashes(false)) },
            backfill: if self.is_backfill_broken { Err(problem()) } else { Ok(self.hashes(true)) },
            has_backfill_template: self.has_backfill_template,
            reload: (self.reload > 0).then(|| self.reload.to_string()),
        })
    }
}

impl World {
    pub(super) fn decide(&self) -> Decision {
        self.decide_by(self)
    }

    /// With somebody else to answer questions.
    pub(super) fn decide_by(&self, asks: &dyn Asks) -> Decision {
        let wish = self.user.wish();
        let names = |purpose: &Purpose, number: u64| match purpose {
            Purpose::Stream => format!("s-{number}"),
            Purpose::Schedule => format!("c-{number}"),
            Purpose::Backfill { .. } => format!("b-{number}"),
        };
        decide(&Situation {
            now: self.now,
            status: &self.status,
            wish: &wish,
            jobs: &self.jobs,
            schedule: self.schedule.as_ref(),
            requests: &self.requests,
            class: &self.class,
            names: &names,
            asks,
        })
    }

    /// What carrying a decision out comes to, in order.
    pub(super) fn writes(&self, decision: &Decision) -> Vec<Write> {
        let held = |name: &&String| self.jobs.iter().any(|job| job.name == **name && job.is_held);
        let mut writes: Vec<Write> = decision.let_go.iter().filter(held).cloned().map(Write::LetGo).collect();
        let kept = match &decision.desired {
            Desired::Nothing => None,
            Desired::AsIs(name) => Some(name),
            Desired::Run(run) => Some(&run.job),
        };
        let jobs = self.jobs.iter().filter(|job| !job.is_deleting).map(|job| &job.name);
        let schedule =
            self.schedule.iter().filter(|schedule| !schedule.is_deleting).map(|schedule| &schedule.name);
        let there: Vec<&String> = jobs.chain(schedule).collect();
        let mut children: Vec<Write> = there
            .iter()
            .filter(|name| Some(**name) != kept)
            .map(|name| Write::Delete((*name).clone()))
            .collect();
        if let Desired::Run(run) = &decision.desired
            && !there.contains(&&run.job)
        {
            children.push(Write::Create(run.clone()));
        }
        children.extend((!decision.left_behind.is_empty()).then_some(Write::DeletePods));
        let is_new = decision.status != self.status;
        if is_new && decision.status_first {
            writes.insert(0, Write::Status);
        } else if is_new && children.is_empty() {
            writes.push(Write::Status);
        }
        writes.extend(children);
        writes
    }

    pub(super) fn carry_out(&mut self, decision: &Decision, write: &Write) -> Result<(), String> {
        match write {
            Write::Status => self.status = decision.status.clone(),
            Write::LetGo(name) => {
                self.jobs.iter_mut().filter(|job| job.name == *name).for_each(|job| job.is_held = false);
                if self.is_background {
                    self.collect()?;
                }
            }
            Write::Delete(name) => self.delete(name),
            Write::DeletePods => self.pods_end = true,
            Write::Create(run) => {
                if !self.jobs.is_empty() || self.schedule.is_some() || self.has_pods {
                    return Err(format!("{} is created while another is there", run.job));
                }
                self.create(run.clone());
            }
        }
        Ok(())
    }

    fn create(&mut self, run: ActiveRun) {
        let (name, is_deleting) = (run.job.clone(), false);
        if run.purpose == Purpose::Schedule {
            self.schedule = Some(LiveSchedule { name, run: Some(run), is_deleting, ended: Vec::new() });
        } else {
            let (run, state, is_held) = (Some(run), JobState::Running, true);
            let health = Health::NotYet { why: String::new(), is_stuck: false };
            self.jobs.push(LiveJob { name, run, state, is_deleting, is_held, health });
        }
    }

    pub(super) fn delete(&mut self, name: &str) {
        self.jobs.iter_mut().filter(|job| job.name == name).for_each(|job| job.is_deleting = true);
        self.schedule.iter_mut().filter(|on| on.name == name).for_each(|on| on.is_deleting = true);
    }

    /// Decides, and carries all of it out.
    pub(super) fn step(&mut self) -> Decision {
        let decision = self.decide();
        for write in self.writes(&decision) {
            self.carry_out(&decision, &write).unwrap();
        }
        decision
    }

    /// What is being deleted and held by nobody is gone, with its pods.
    pub(super) fn collect(&mut self) -> Result<(), String> {
        let goes = |job: &LiveJob| job.is_deleting && !job.is_held;
        for job in self.jobs.iter().filter(|job| goes(job)) {
            let is_told = self.status.history.iter().any(|past| past.job == job.name);
            if matches!(job.state, JobState::Failed { .. }) && !is_told {
                return Err(format!("{} has failed and is gone, and the history does not say so", job.name));
            }
            if self.is_background && job.state == JobState::Running {
                (self.has_pods, self.pods_end) = (true, false);
            }
        }
        if self.jobs.iter().any(goes) {
            self.is_background = false;
        }
        self.jobs.retain(|job| !goes(job));
        self.schedule.take_if(|on| on.is_deleting);
        Ok(())
    }

    /// All that happens by itself, and what is decided, until nothing changes. Jobs run on.
    pub(super) fn settle(&mut self) -> Decision {
        for _ in 0..50 {
            if !self.pass() {
                return self.decide();
            }
        }
        panic!("it does not come to rest: {self:?}");
    }

    /// One round of that. Whether anything has changed.
    pub(super) fn pass(&mut self) -> bool {
        self.try_pass().unwrap()
    }

    pub(super) fn try_pass(&mut self) -> Result<bool, String> {
        (self.may_start, self.may_roll_out) = (true, true);
        let has_happened = self.go_by_itself()?;
        let decision = self.decide();
        let writes = self.writes(&decision);
        for write in &writes {
            self.carry_out(&decision, write)?;
        }
        let mut has_changed = !writes.is_empty() || has_happened;
        if let Some(at) = decision.wake_at.filter(|at| !has_changed && *at > self.now) {
            (self.now, has_changed) = (at, true);
        }
        Ok(has_changed)
    }

    /// What happens without anybody's decision, but for time. Whether anything did.
    pub(super) fn go_by_itself(&mut self) -> Result<bool, String> {
        let things =
            |world: &Self| (world.jobs.len(), world.schedule.is_some(), world.requests.len(), world.has_pods);
        let before = things(self);
        self.collect()?;
        self.has_pods &= !self.pods_end;
        let outcomes = &self.status.backfills;
        self.requests.retain(|request| !outcomes.iter().any(|over| over.request == request.uid));
        Ok(before != things(self))
    }

    pub(super) fn class(mut self, change: impl FnOnce(&mut StreamClassConfig)) -> Self {
        change(Arc::make_mut(&mut self.class));
        self
    }

    pub(super) fn end(&mut self, state: &JobState) {
        // Pods that have ended are no harm, however their Job goes.
        self.is_background = false;
        self.jobs
            .iter_mut()
            .filter(|job| job.state == JobState::Running)
            .for_each(|job| job.state = state.clone());
    }

    pub(super) fn complete(&mut self) {
        self.end(&JobState::Completed { at: self.now });
    }

    pub(super) fn fail(&mut self, exit_code: i32) {
        let reason = "BackoffLimitExceeded".to_owned();
        let (exit_code, is_disrupted) = (Some(exit_code), false);
        self.end(&JobState::Failed { at: self.now, exit_code, reason, is_disrupted });
    }

    /// The pod is evicted, or ends with its node.
    pub(super) fn disrupt(&mut self) {
        let (exit_code, reason) = (Some(143), "BackoffLimitExceeded".to_owned());
        self.end(&JobState::Failed { at: self.now, exit_code, reason, is_disrupted: true });
    }

    pub(super) fn request(&mut self, uid: &str, retries: u32) {
        let name = format!("request-{uid}");
        self.requests.push(Request {
            uid: uid.to_owned(),
            name,
            retries,
            is_cancelled: false,
            problem: None,
        });
    }
}
