//! The conditions of a Job.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};

use crate::controllers::bounds::{CONDITION, REASON};
use crate::time::whole_seconds;

/// It is finished, well.
pub(in crate::controllers) const COMPLETE: &str = "Complete";
/// It is finished, not well.
pub(in crate::controllers) const FAILED: &str = "Failed";
/// It will be complete when its last pods are gone.
pub(super) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
/// It will have failed when its last pods are gone.
pub(super) const FAILURE_TARGET: &str = "FailureTarget";
/// It is suspended.
pub(super) const SUSPENDED: &str = "Suspended";

/// A condition, if it is true.
pub(super) fn is_true<'a>(status: &'a JobStatus, type_: &str) -> Option<&'a JobCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == type_ && condition.status == "True")
}

/// The condition that says that a Job is finished, [`COMPLETE`] or [`FAILED`].
pub(in crate::controllers) fn finished(job: &Job) -> Option<&JobCondition> {
    let status = job.status.as_ref()?;
    is_true(status, COMPLETE).or_else(|| is_true(status, FAILED))
}

/// Says something of a Job. What is said already keeps its time.
pub(super) fn set(
    status: &mut JobStatus,
    type_: &str,
    holds: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let condition = JobCondition {
        type_: type_.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(whole_seconds(now)),
        last_transition_time: Some(whole_seconds(now)),
    };
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|known| known.type_ == type_) {
        Some(known)
            if (&known.status, &known.reason, &known.message)
                == (&condition.status, &condition.reason, &condition.message) => {}
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// Says that pods are held back, for as long as they are.
pub(super) fn tell_held_back(status: &mut JobStatus, message: Option<&str>, now: Timestamp) {
    if let Some(message) = message {
        set(status, CONDITION, true, REASON, message, now);
    } else {
        let others = status.conditions.take().into_iter().flatten().filter(|known| known.type_ != CONDITION);
        status.conditions = Some(others.collect::<Vec<_>>()).filter(|others| !others.is_empty());
    }
}
