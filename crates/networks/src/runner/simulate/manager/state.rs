//! What a manager knows. Pure: the time is given.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use tokio::time::Instant;

use crate::runner::simulate::settings::ManagerSettings;
use crate::runner::simulate::wire::{Block, Registration};
use crate::simulation::report::{Progress, Report, Stage, WorkerReport};

/// As many blocks are remembered.
const BLOCKS_MAX: usize = 1024;

/// What time it is: for people, and to measure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) at: Timestamp,
    pub(super) instant: Instant,
}

impl Now {
    pub(super) fn get() -> Self {
        Self { at: Timestamp::now(), instant: Instant::now() }
    }
}

/// Why a worker is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("this is run {0}")]
    OtherRun(String),
    #[error("there are {0} workers, from 0")]
    NoSuchWorker(usize),
    #[error("the run has begun without it")]
    TooLate,
    #[error("the run has not begun")]
    TooEarly,
    #[error("the load is not over")]
    NotDone,
}

/// A run.
#[derive(Debug)]
pub(super) struct Run {
    settings: ManagerSettings,
    registered: BTreeMap<usize, String>,
    began: Option<Now>,
    interim: BTreeMap<usize, WorkerReport>,
    told: BTreeMap<usize, WorkerReport>,
    report: Option<Report>,
    blocks: VecDeque<Block>,
    dismissed: bool,
}

impl Run {
    pub(super) fn new(settings: ManagerSettings) -> Self {
        Self {
            settings,
            registered: BTreeMap::new(),
            began: None,
            interim: BTreeMap::new(),
            told: BTreeMap::new(),
            report: None,
            blocks: VecDeque::new(),
            dismissed: false,
        }
    }

    fn check(&self, run: &str, worker: usize) -> Result<(), Refused> {
        if run != self.settings.load.run {
            return Err(Refused::OtherRun(self.settings.load.run.clone()));
        }
        if worker < self.settings.workers {
            Ok(())
        } else {
            Err(Refused::NoSuchWorker(self.settings.workers))
        }
    }

    /// A worker is there. It may say so again.
    pub(super) fn register(&mut self, registration: Registration) -> Result<(), Refused> {
        self.check(&registration.run, registration.worker)?;
        if self.began.is_some() && !self.registered.contains_key(&registration.worker) {
            return Err(Refused::TooLate);
        }
        self.registered.insert(registration.worker, registration.peer);
        Ok(())
    }

    /// What a worker has found so far.
    pub(super) fn hear(&mut self, report: WorkerReport) -> Result<(), Refused> {
        self.check(&report.run, report.worker)?;
        self.interim.insert(report.worker, report);
        Ok(())
    }

    /// What a worker has found. It may say so again; the first time counts.
    pub(super) fn tell(&mut self, report: WorkerReport) -> Result<(), Refused> {
        self.check(&report.run, report.worker)?;
        if self.began.is_none() {
            return Err(Refused::TooEarly);
        }
        if self.report.is_some() && !self.told.contains_key(&report.worker) {
            return Err(Refused::TooLate);
        }
        self.told.entry(report.worker).or_insert(report);
        Ok(())
    }

    pub(super) fn announce(&mut self, block: Block) {
        self.blocks.push_back(block);
        while self.blocks.len() > BLOCKS_MAX {
            self.blocks.pop_front();
        }
    }

    /// The latest blocks of all workers but one.
    pub(super) fn blocks_but_of(&self, worker: usize, most: usize) -> Vec<Block> {
        let others = self.blocks.iter().rev().filter(|block| block.worker != worker);
        others.take(most).cloned().collect()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.registered.len() == self.settings.workers
    }

    pub(super) fn missing(&self) -> Vec<usize> {
        (0..self.settings.workers).filter(|worker| !self.registered.contains_key(worker)).collect()
    }

    pub(super) fn begin(&mut self, now: Now) {
        self.began = Some(now);
    }

    pub(super) fn is_told(&self) -> bool {
        self.told.len() == self.settings.workers
    }

    /// The load is over: what was told becomes the report.
    pub(super) fn finish(&mut self, now: Now) -> Report {
        let load = &self.settings.load;
        let began = self.began.unwrap_or(now).at;
        let what = (load.run.as_str(), load.scenario, load.users);
        let report = Report::of(what, (began, now.at), self.settings.workers, &self.told);
        self.report = Some(report.clone());
        report
    }

    pub(super) fn report(&self) -> Result<&Report, Refused> {
        self.report.as_ref().ok_or(Refused::NotDone)
    }

    pub(super) fn dismiss(&mut self) -> Result<(), Refused> {
        self.report()?;
        self.dismissed = true;
        Ok(())
    }

    pub(super) fn is_dismissed(&self) -> bool {
        self.dismissed
    }

    /// What is known of each worker, the final word first.
    pub(super) fn latest(&self) -> BTreeMap<usize, &WorkerReport> {
        self.interim.iter().chain(&self.told).map(|(worker, report)| (*worker, report)).collect()
    }

    pub(super) fn progress(&self, now: Instant) -> Progress {
        let stage = match (&self.report, self.began) {
            (Some(_), _) => Stage::Done,
            (None, Some(_)) => Stage::Running,
            (None, None) => Stage::Waiting,
        };
        let elapsed =
            self.began.map(|began| now.saturating_duration_since(began.instant)).unwrap_or_default();
        Progress {
            run: self.settings.load.run.clone(),
            stage,
            expected: self.settings.workers,
            registered: self.registered.len(),
            reported: self.told.len(),
            elapsed_milliseconds: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }
}
