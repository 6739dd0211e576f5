//! From a `CronJob` and its Jobs to what is done next. Pure.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use mainstay::events::Event;
use mainstay_apiserver::{NoSchedule, Schedule};

use crate::controllers::job::conditions::{COMPLETE, finished};
use crate::controllers::pods::is_going;

/// On Jobs: the time that they are for.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// Whoever has missed more times than this is told.
const MISSED_MAX: usize = 100;

/// What is done about a `CronJob`.
#[derive(Debug, Default)]
pub(super) struct Decision {
    pub(super) status: CronJobStatus,
    pub(super) new: Option<Job>,
    /// Names of Jobs; all others stay.
    pub(super) deleted: BTreeSet<String>,
    pub(super) again_after: Option<Duration>,
    pub(super) events: Vec<Event>,
}

/// Decides about a `CronJob` that is not being deleted.
pub(super) fn decide(cron: &CronJob, jobs: &[Job], now: Timestamp) -> Decision {
    let spec = &cron.spec;
    let before = cron.status.clone().unwrap_or_default();
    let mut decision = Decision { status: status(cron, &before, jobs), ..Decision::default() };
    decision.events = transitions(&before, jobs);
    decision.deleted = outlived(spec, jobs);
    if spec.suspend != Some(true) {
        match plan(spec) {
            Ok((schedule, zone)) => start(cron, jobs, &schedule, &zone, now, &mut decision),
            Err(event) => decision.events.push(event),
        }
    }
    if let Some(active) = &mut decision.status.active {
        active.retain(|job| job.name.as_ref().is_none_or(|name| !decision.deleted.contains(name)));
        decision.status.active = decision.status.active.filter(|active| !active.is_empty());
    }
    let told = decision.deleted.iter();
    let told = told.map(|name| Event::normal("SuccessfulDelete", &format!("Deleted job {name}")));
    decision.events.extend(told);
    decision
}

/// The schedule, and the zone that times are told in.
fn plan(spec: &CronJobSpec) -> Result<(Schedule, TimeZone), Event> {
    let name = spec.time_zone.as_deref().unwrap_or_default();
    let unknown =
        |why: NoSchedule| Event::warning("UnknownTimeZone", &format!("invalid timeZone: {name:?}: {why}"));
    let zone = Schedule::zone(name).map_err(unknown)?;
    let text = &spec.schedule;
    let unread = |why: NoSchedule| {
        Event::warning("UnparseableSchedule", &format!("unparseable schedule: {text:?} : {why}"))
    };
    let schedule = Schedule::parse(text).map_err(unread)?;
    // A schedule may name a zone by itself, but not if the field does.
    let schedule = if spec.time_zone.is_some() { schedule.within(zone.clone()) } else { schedule };
    Ok((schedule, zone))
}

/// The last time that is due, if there is one, and what comes of it.
fn start(
    cron: &CronJob,
    jobs: &[Job],
    schedule: &Schedule,
    zone: &TimeZone,
    now: Timestamp,
    decision: &mut Decision,
) {
    let spec = &cron.spec;
    let next = schedule.next_after(now).and_then(|next| Duration::try_from(next.duration_since(now)).ok());
    decision.again_after = next;
    let since = since(cron, &decision.status, now);
    let Some(due) = schedule.last_between(since, now) else { return };
    let active: Vec<&Job> = jobs.iter().filter(|job| is_active(job, &decision.status)).collect();
    let policy = spec.concurrency_policy.as_deref().unwrap_or_default();
    if policy == "Forbid" && !active.is_empty() {
        let note = "Not starting job because prior execution is running and concurrency policy is Forbid";
        decision.events.push(Event::normal("JobAlreadyActive", note));
        return;
    }
    let replaced = active.iter().filter(|job| policy == "Replace" && !is_going(**job));
    let replaced: BTreeSet<String> = replaced.map(|job| job.name_any()).collect();
    if !replaced.is_empty() {
        // The new one is made when these are gone.
        decision.deleted.extend(replaced);
        return;
    }
    if is_behind(schedule, since, now) {
        let note =
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        decision.events.push(Event::warning("TooManyMissedTimes", note));
    }
    let job = new_job(cron, due, zone);
    decision.events.push(Event::normal("SuccessfulCreate", &format!("Created job {}", job.name_any())));
    decision.new = Some(job);
}

/// The time after which times are due: the last that was started for, but not longer ago than the deadline for starting.
fn since(cron: &CronJob, status: &CronJobStatus, now: Timestamp) -> Timestamp {
    let last = status.last_schedule_time.as_ref().or(cron.metadata.creation_timestamp.as_ref());
    let last = last.map_or(now, |time| time.0);
    let deadline = cron.spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    let limit = deadline.and_then(|deadline| now.checked_sub(deadline).ok());
    limit.map_or(last, |limit| limit.max(last))
}

fn is_behind(schedule: &Schedule, since: Timestamp, now: Timestamp) -> bool {
    let times = std::iter::successors(schedule.next_after(since), |time| schedule.next_after(*time));
    times.take_while(|time| *time <= now).take(MISSED_MAX + 1).count() > MISSED_MAX
}

fn job_name(cron: &str, time: Timestamp) -> String {
    format!("{cron}-{}", time.as_second().div_euclid(60))
}

/// The time that a Job was started for, unless somebody else made it.
fn scheduled_for(job: &Job) -> Option<Timestamp> {
    let time = job.annotations().get(SCHEDULED)?.parse().ok()?;
    let owner = job.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    (job.name_any() == job_name(&owner.name, time)).then_some(time)
}

fn new_job(cron: &CronJob, due: Timestamp, zone: &TimeZone) -> Job {
    let template = &cron.spec.job_template;
    let given = template.metadata.clone().unwrap_or_default();
    let mut annotations = given.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED.to_owned(), time_in(due, zone));
    let metadata = ObjectMeta {
        name: Some(job_name(&cron.name_any(), due)),
        labels: given.labels,
        annotations: Some(annotations),
        ..ObjectMeta::default()
    };
    Job { metadata, spec: template.spec.clone(), status: None }
}

/// A time with the offset that its zone has then.
fn time_in(time: Timestamp, zone: &TimeZone) -> String {
    let text = time.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    text.strip_suffix("+00:00").map_or_else(|| text.clone(), |text| format!("{text}Z"))
}

/// Whether a Job runs that was started on schedule, or that the status lists.
fn is_active(job: &Job, status: &CronJobStatus) -> bool {
    finished(job).is_none() && (scheduled_for(job).is_some() || listed(status, job).is_some())
}

fn listed<'a>(status: &'a CronJobStatus, job: &Job) -> Option<&'a ObjectReference> {
    let mut active = status.active.iter().flatten();
    active.find(|reference| reference.uid.is_some() && reference.uid == job.metadata.uid)
}

fn status(cron: &CronJob, before: &CronJobStatus, jobs: &[Job]) -> CronJobStatus {
    let mut active: Vec<&Job> = jobs.iter().filter(|job| is_active(job, before)).collect();
    let place = |job: &Job| {
        let known = before.active.iter().flatten().position(|reference| reference.uid == job.metadata.uid);
        (known.is_none(), known)
    };
    active.sort_by_key(|job| (place(job), scheduled_for(job)));
    let references =
        active.iter().map(|job| listed(before, job).cloned().unwrap_or_else(|| refer(cron, job)));
    let references: Vec<ObjectReference> = references.collect();
    let scheduled = jobs.iter().filter_map(scheduled_for).map(Time);
    let succeeded = jobs.iter().filter(|job| has_succeeded(job));
    let succeeded = succeeded.filter_map(|job| job.status.as_ref()?.completion_time.clone());
    CronJobStatus {
        active: (!references.is_empty()).then_some(references),
        last_schedule_time: before.last_schedule_time.clone().into_iter().chain(scheduled).max(),
        last_successful_time: before.last_successful_time.clone().into_iter().chain(succeeded).max(),
    }
}

fn refer(cron: &CronJob, job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        name: Some(job.name_any()),
        namespace: cron.namespace(),
        uid: job.uid(),
        resource_version: job.resource_version(),
        field_path: None,
    }
}

fn has_succeeded(job: &Job) -> bool {
    finished(job).is_some_and(|condition| condition.type_ == COMPLETE)
}

/// What is said of Jobs that were active and no longer are.
fn transitions(before: &CronJobStatus, jobs: &[Job]) -> Vec<Event> {
    let tell = |reference: &ObjectReference| {
        let name = reference.name.as_deref().unwrap_or_default();
        let Some(job) = jobs.iter().find(|job| job.metadata.uid == reference.uid) else {
            return Some(Event::normal("MissingJob", &format!("Active job went missing: {name}")));
        };
        let condition = &finished(job)?.type_;
        Some(Event::normal("SawCompletedJob", &format!("Saw completed job: {name}, condition: {condition}")))
    };
    before.active.iter().flatten().filter_map(tell).collect()
}

/// The oldest of the finished Jobs, as far as there are more than are to be kept.
fn outlived(spec: &CronJobSpec, jobs: &[Job]) -> BTreeSet<String> {
    let surplus = |well: bool, limit: Option<i32>| {
        let mut ended: Vec<&Job> =
            jobs.iter().filter(|job| finished(job).is_some() && has_succeeded(job) == well).collect();
        ended.sort_by_key(|job| {
            let start = job.status.as_ref().and_then(|status| status.start_time.clone());
            Reverse((start.is_none(), start, job.name_any()))
        });
        let kept = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(0));
        ended.into_iter().skip(kept).map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    let succeeded = surplus(true, spec.successful_jobs_history_limit);
    succeeded.into_iter().chain(surplus(false, spec.failed_jobs_history_limit)).collect()
}
