//! From live objects to what a decision rests on.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::Value;

use super::health::health;
use crate::kinds::{ActiveRun, labels};
use crate::lifecycle::{JobState, LiveJob, LiveSchedule};

/// The label of a pod that names its Job.
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The finalizer of a pod that its Job has not counted yet.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Reasons of pods that failed for no fault of their own.
const DISRUPTIONS: [&str; 5] = ["Evicted", "Preempting", "Terminated", "NodeShutdown", "NodeLost"];
/// The failed pods that a Job allows, if it does not say.
const BACKOFF_LIMIT: u64 = 6;

/// Reads a Job. The pods may be those of other Jobs as well.
pub fn read_job(job: &Value, pods: &[Value]) -> LiveJob {
    let finalizers = job["metadata"]["finalizers"].as_array();
    LiveJob {
        name: text(&job["metadata"]["name"]),
        run: run(job),
        state: state(job, pods),
        is_deleting: is_deleting(job),
        is_held: finalizers.into_iter().flatten().any(|finalizer| finalizer == labels::OUTCOME),
        health: health(job, &pods.iter().filter(|pod| is_of(pod, job)).collect::<Vec<_>>()),
    }
}

/// Reads a `CronJob`. The Jobs and pods may be those of others as well.
pub fn read_schedule(cron_job: &Value, jobs: &[Value], pods: &[Value]) -> LiveSchedule {
    let own = jobs.iter().filter(|job| is_of(job, cron_job));
    let mut ended: Vec<(String, Timestamp, JobState)> = own
        .map(|job| (text(&job["metadata"]["name"]), began_at(job), state(job, pods)))
        .filter(|(_, _, state)| *state != JobState::Running)
        .collect();
    ended.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    LiveSchedule {
        name: text(&cron_job["metadata"]["name"]),
        run: run(cron_job),
        is_deleting: is_deleting(cron_job),
        ended,
    }
}

/// Whether a Job has failed for good: then its pods can tell more.
pub fn has_failed(job: &Value) -> bool {
    matches!(state(job, &[]), JobState::Failed { .. })
}

/// Whether the pods of a Job can tell more than the Job: it has failed, or runs and no pod is ready.
pub fn needs_pods(job: &Value) -> bool {
    match state(job, &[]) {
        JobState::Running => !super::health::is_ready(job) && !is_deleting(job),
        JobState::Completed { .. } => false,
        JobState::Failed { .. } => true,
    }
}

/// Whether a pod's Job is gone without it. `has_job` tells whether there is a Job of a name.
pub fn is_left_behind(pod: &Pod, has_job: impl Fn(&str) -> bool) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    let is_owned = owners.into_iter().any(|owner| owner.controller == Some(true));
    // The controller of Jobs still has to let go of it, and would not if it were somebody else's.
    let is_tracked = pod.finalizers().iter().any(|finalizer| finalizer == TRACKING);
    let is_deleting = pod.metadata.deletion_timestamp.is_some();
    let job = pod.labels().get(JOB_NAME);
    !is_owned && !is_tracked && !is_deleting && job.is_some_and(|job| !has_job(job))
}

fn run(object: &Value) -> Option<ActiveRun> {
    serde_json::from_str(object["metadata"]["annotations"][labels::RUN].as_str()?).ok()
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether an object is controlled by another.
fn is_of(object: &Value, owner: &Value) -> bool {
    let uid = &owner["metadata"]["uid"];
    let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    !uid.is_null() && references.into_iter().any(|reference| reference["uid"] == *uid)
}

fn state(job: &Value, pods: &[Value]) -> JobState {
    let condition = |kind: &str| {
        let mut all = job["status"]["conditions"].as_array().into_iter().flatten();
        all.find(|condition| condition["type"] == kind && condition["status"] == "True")
    };
    // A Job without any of these times has none to tell; its beginning is the nearest.
    let since = |condition: &Value| {
        time(&condition["lastTransitionTime"]).or_else(|| time(&condition["lastProbeTime"]))
    };
    if let Some(complete) = condition("Complete") {
        let at = time(&job["status"]["completionTime"]).or_else(|| since(complete));
        return JobState::Completed { at: at.unwrap_or_else(|| began_at(job)) };
    }
    if let Some(failed) = condition("Failed") {
        let exit_code = exit_code(pods.iter().filter(|pod| is_of(pod, job)));
        // News of a Job may come before those of its pod, which tell what its failure means.
        let is_over = |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if exit_code.is_none()
            && !is_deleting(job)
            && pods.iter().any(|pod| is_of(pod, job) && !is_over(pod) && !is_deleting(pod))
        {
            return JobState::Running;
        }
        return JobState::Failed {
            at: since(failed).unwrap_or_else(|| began_at(job)),
            exit_code,
            reason: Some(text(&failed["reason"]))
                .filter(|reason| !reason.is_empty())
                .unwrap_or("Failed".into()),
            is_disrupted: failed["reason"] == "BackoffLimitExceeded"
                && is_disrupted(job, pods.iter().filter(|pod| is_of(pod, job))),
        };
    }
    JobState::Running
}

/// Whether a Job would not have failed but for pods that were evicted, preempted, or ended with their node. Most Jobs have a policy by which
/// these do not count; those of other restart policies cannot, and those of older operators do not.
fn is_disrupted<'a>(job: &Value, pods: impl Iterator<Item = &'a Value>) -> bool {
    let failed = pods.filter(|pod| pod["status"]["phase"] == "Failed");
    let (disrupted, own): (Vec<&Value>, Vec<&Value>) = failed.partition(|pod| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let is_said = conditions
            .into_iter()
            .any(|condition| condition["type"] == "DisruptionTarget" && condition["status"] == "True");
        is_said || pod["status"]["reason"].as_str().is_some_and(|reason| DISRUPTIONS.contains(&reason))
    });
    let limit = job["spec"]["backoffLimit"].as_u64().unwrap_or(BACKOFF_LIMIT);
    !disrupted.is_empty() && u64::try_from(own.len()).is_ok_and(|own| own <= limit)
}

fn began_at(job: &Value) -> Timestamp {
    let times = [&job["status"]["startTime"], &job["metadata"]["creationTimestamp"]];
    times.into_iter().find_map(time).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The exit code of the container that failed first, in the pod that failed last: that one has used up the Job's patience, and what else
/// failed in it may have done so because of the first.
fn exit_code<'a>(pods: impl Iterator<Item = &'a Value>) -> Option<i32> {
    let of_pod = |pod: &'a Value| first_failure(pod).map(|failure| (failure, text(&pod["metadata"]["name"])));
    let last = pods
        .filter_map(of_pod)
        .max_by(|((one, _), one_name), ((other, _), other_name)| (one, one_name).cmp(&(other, other_name)));
    last.map(|((_, code), _)| code)
}

/// When the first container of a pod failed, and how. One that was restarted tells of the last time.
fn first_failure(pod: &Value) -> Option<(Option<Timestamp>, i32)> {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let statuses = lists.into_iter().filter_map(|list| pod["status"][list].as_array()).flatten();
    let failure = |ended: &Value| {
        let code = i32::try_from(ended["exitCode"].as_i64()?).ok().filter(|code| *code != 0)?;
        Some((time(&ended["finishedAt"]), code))
    };
    let failures = statuses.filter_map(|status| {
        failure(&status["state"]["terminated"]).or_else(|| failure(&status["lastState"]["terminated"]))
    });
    failures.min_by_key(|(at, _)| (at.is_none(), *at))
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
