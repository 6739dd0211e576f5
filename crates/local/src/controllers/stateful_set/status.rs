//! What a set's status says of its pods.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSetCondition, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::decide::Update;
use super::pod::revision;
use crate::controllers::bounds::{CONDITION, REASON};
use crate::controllers::pods::{Availability, availability, count, is_going, is_ready, phase, unless_zero};
use crate::time::whole_seconds;

/// What it is computed from besides the pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course<'a> {
    pub(super) current: &'a str,
    pub(super) update: &'a str,
    pub(super) replicas: i32,
    pub(super) strategy: Update,
    pub(super) min_ready_seconds: Option<i32>,
    pub(super) collisions: i32,
    pub(super) now: Timestamp,
}

/// The status. An update is over, and its revision the current one, when all pods are made from it and ready.
pub(super) fn status(course: Course<'_>, pods: &[Pod]) -> StatefulSetStatus {
    let is_running = |pod: &Pod| phase(pod) == "Running" && is_ready(pod);
    let is_available = |pod: &Pod| {
        is_running(pod) && availability(pod, course.min_ready_seconds, course.now) == Availability::Available
    };
    let at = |name: &str| count(pods, |pod| !is_going(pod) && revision(pod) == name);
    let replicas = count(pods, |_| true);
    let (ready, updated) = (count(pods, is_running), at(course.update));
    let is_over = matches!(course.strategy, Update::Rolling { .. })
        && [updated, ready, replicas].iter().all(|count| *count == course.replicas);
    let current = if is_over { course.update } else { course.current };
    StatefulSetStatus {
        replicas,
        ready_replicas: unless_zero(ready),
        available_replicas: Some(count(pods, is_available)),
        current_replicas: unless_zero(at(current)),
        updated_replicas: unless_zero(updated),
        current_revision: Some(current.to_owned()),
        update_revision: Some(course.update.to_owned()),
        collision_count: Some(course.collisions),
        conditions: None,
        observed_generation: None,
    }
}

/// The condition of a set that asks for more pods than it gets.
pub(super) fn held_back(before: &StatefulSetStatus, message: String, now: Timestamp) -> StatefulSetCondition {
    let mut known = before.conditions.iter().flatten();
    let known = known.find(|known| known.type_ == CONDITION && known.status == "True");
    StatefulSetCondition {
        type_: CONDITION.to_owned(),
        status: "True".to_owned(),
        reason: Some(REASON.to_owned()),
        message: Some(message),
        last_transition_time: known
            .map_or_else(|| Some(whole_seconds(now)), |known| known.last_transition_time.clone()),
    }
}
