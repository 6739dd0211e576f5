//! How pods that are over are counted: each once, whatever happens in between.
//!
//! ```text
//! over, with the finalizer ─▶ named in status.uncountedTerminatedPods ─▶ without the finalizer ─▶ in the counters
//! ```
//!
//! The first arrow is a write of the status, the second one of the pod, the third one of the status again. A pod keeps its finalizer,
//! and therefore stays, until the status names it, and is named until it has lost the finalizer. So whatever is read
//! after a crash says what is left to do. A success in an indexed Job needs no name: its index says that it is counted.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus, UncountedTerminatedPods};

use super::indexes::Indexes;
use super::members::{Member, Stage, Terms};
use super::policy::Verdict;

/// So many names at most are in a status at once.
const UNCOUNTED_MAX: usize = 500;

/// How a Job is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Well. What is left of its pods goes uncounted.
    Success,
    /// Not well. What is left of its pods has failed.
    Failure,
}

/// That a Job is over, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) end: End,
    pub(super) reason: String,
    pub(super) message: String,
    /// The status says so already.
    pub(super) is_known: bool,
}

impl Ending {
    /// One that is decided now.
    pub(super) fn new(end: End, reason: &str, message: &str) -> Self {
        Self { end, reason: reason.to_owned(), message: message.to_owned(), is_known: false }
    }

    /// One that a condition tells of.
    pub(super) fn known(end: End, condition: &JobCondition) -> Self {
        let reason = condition.reason.clone().unwrap_or_default();
        let message = condition.message.clone().unwrap_or_default();
        Self { end, reason, message, is_known: true }
    }

    /// Whether a pod that has not succeeded counts as failed. Those that a success has ended do not, however they went.
    fn counts(&self, member: &Member<'_>, terms: &Terms<'_>) -> bool {
        match self.end {
            End::Failure => true,
            End::Success => !self.is_known && member.has_failed(terms),
        }
    }
}

/// What a status says of pods that are over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    /// Those that still have the finalizer, by uid.
    pub(super) uncounted_succeeded: Vec<String>,
    pub(super) uncounted_failed: Vec<String>,
    /// For indexed Jobs.
    pub(super) completed: Indexes,
    /// For indexed Jobs with a limit per index.
    pub(super) failed_indexes: Option<Indexes>,
}

impl Tally {
    /// As a status has it.
    pub(super) fn of(status: &JobStatus, terms: &Terms<'_>) -> Self {
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let read =
            |text: &Option<String>| Indexes::read(text.as_deref().unwrap_or_default(), terms.indexes());
        Self {
            succeeded: status.succeeded.unwrap_or(0),
            failed: status.failed.unwrap_or(0),
            uncounted_succeeded: uncounted.succeeded.unwrap_or_default(),
            uncounted_failed: uncounted.failed.unwrap_or_default(),
            completed: read(&status.completed_indexes),
            failed_indexes: terms.backoff_limit_per_index.map(|_| read(&status.failed_indexes)),
        }
    }

    /// What will be counted of all that is over by now.
    pub(super) fn forecast(&self, members: &[Member<'_>], terms: &Terms<'_>) -> Forecast {
        let new = |member: &&Member<'_>| member.is_tracked && member.is_valid(terms);
        let is_named = |names: &[String], member: &Member<'_>| names.iter().any(|uid| uid == member.uid());
        let succeeded = members.iter().filter(new).filter(|member| {
            member.stage == Stage::Succeeded && !is_named(&self.uncounted_succeeded, member)
        });
        let failed = members.iter().filter(new).filter(|member| {
            member.has_failed(terms)
                && !is_named(&self.uncounted_failed, member)
                && terms.judge(member).counts()
        });
        let in_all = |counted: i32, named: &[String], new: usize| {
            counted.saturating_add(i32::try_from(named.len() + new).unwrap_or(i32::MAX))
        };
        let completed =
            self.completed.with(new_indexes(members, terms, |member| member.stage == Stage::Succeeded));
        Forecast {
            succeeded: if terms.is_indexed {
                completed.count()
            } else {
                in_all(self.succeeded, &self.uncounted_succeeded, succeeded.count())
            },
            failed: in_all(self.failed, &self.uncounted_failed, failed.count()),
            completed,
            failed_indexes: self
                .failed_indexes
                .as_ref()
                .map(|known| known.with(new_indexes(members, terms, |member| is_index_lost(member, terms)))),
        }
    }

    /// Counts those that have lost the finalizer, and names those that are over and have it. What is returned may lose it once the
    /// status is written. Members in `kept` keep theirs.
    pub(super) fn take_in<'a>(
        &mut self,
        members: &[Member<'a>],
        terms: &Terms<'_>,
        ending: Option<&Ending>,
        kept: &BTreeSet<&str>,
    ) -> Vec<Member<'a>> {
        let tracked: BTreeSet<&str> =
            members.iter().filter(|member| member.is_tracked).map(Member::uid).collect();
        self.succeeded = self.succeeded.saturating_add(settle(&mut self.uncounted_succeeded, &tracked));
        self.failed = self.failed.saturating_add(settle(&mut self.uncounted_failed, &tracked));
        let mut counted = Vec::new();
        let mut new_indexes = 0;
        for member in members.iter().filter(|member| member.is_tracked) {
            if self.uncounted_succeeded.len() + self.uncounted_failed.len() + new_indexes >= UNCOUNTED_MAX {
                break;
            }
            let is_over =
                member.stage == Stage::Succeeded || member.has_failed(terms) && !kept.contains(member.uid());
            if !is_over && ending.is_none() {
                continue;
            }
            counted.push(*member);
            if member.stage == Stage::Succeeded && !self.has_failure(member) {
                new_indexes += usize::from(self.add_success(member, terms));
            } else if ending.is_none_or(|ending| ending.counts(member, terms)) {
                self.add_failure(member, terms);
            }
        }
        if terms.is_indexed {
            self.succeeded = self.completed.count();
        }
        counted
    }

    /// Whether nobody waits to be counted.
    pub(super) fn is_settled(&self) -> bool {
        self.uncounted_succeeded.is_empty() && self.uncounted_failed.is_empty()
    }

    /// As the status shall say it.
    pub(super) fn uncounted(&self) -> UncountedTerminatedPods {
        let listed = |uids: &[String]| (!uids.is_empty()).then(|| uids.to_vec());
        UncountedTerminatedPods {
            succeeded: listed(&self.uncounted_succeeded),
            failed: listed(&self.uncounted_failed),
        }
    }

    fn has_failure(&self, member: &Member<'_>) -> bool {
        self.uncounted_failed.iter().any(|uid| uid == member.uid())
    }

    /// Whether this is a new index.
    fn add_success(&mut self, member: &Member<'_>, terms: &Terms<'_>) -> bool {
        if terms.is_indexed {
            let Some(index) = member.index.filter(|index| !self.completed.has(*index)) else { return false };
            self.completed = self.completed.with([index]);
            return true;
        }
        if !self.uncounted_succeeded.iter().any(|uid| uid == member.uid()) {
            self.uncounted_succeeded.push(member.uid().to_owned());
        }
        false
    }

    fn add_failure(&mut self, member: &Member<'_>, terms: &Terms<'_>) {
        if member.is_valid(terms) && !self.has_failure(member) && terms.judge(member).counts() {
            self.uncounted_failed.push(member.uid().to_owned());
        }
    }
}

/// What a tally comes to when all that is over has been counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Forecast {
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    pub(super) completed: Indexes,
    pub(super) failed_indexes: Option<Indexes>,
}

/// Takes the names of those out that are no longer tracked, and tells how many they were.
fn settle(uncounted: &mut Vec<String>, tracked: &BTreeSet<&str>) -> i32 {
    let before = uncounted.len();
    uncounted.retain(|uid| tracked.contains(uid.as_str()));
    i32::try_from(before - uncounted.len()).unwrap_or(i32::MAX)
}

/// The indexes of tracked pods that are such.
fn new_indexes(
    members: &[Member<'_>],
    terms: &Terms<'_>,
    are: impl Fn(&Member<'_>) -> bool,
) -> BTreeSet<i32> {
    let such = members.iter().filter(|member| terms.is_indexed && member.is_tracked && are(member));
    such.filter_map(|member| member.index).collect()
}

/// Whether an index is not tried again after this pod.
fn is_index_lost(member: &Member<'_>, terms: &Terms<'_>) -> bool {
    let Some(limit) = terms.backoff_limit_per_index.filter(|_| member.has_failed(terms)) else {
        return false;
    };
    match terms.judge(member) {
        Verdict::FailsIndex => true,
        Verdict::Ignored => false,
        Verdict::Counts | Verdict::FailsJob(_) => member.failures_before().0 >= limit,
    }
}
