//! What there is of a stream, as the lifecycle wants to know it.

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt as _;
use mainstay::{Error, Kind, SyncRequest};
use serde_json::Value;

use super::of_stream;
use crate::config::StreamClassConfig;
use crate::job;
use crate::kinds::{BackfillRequest, Purpose, StreamingJobTemplate};
use crate::lifecycle::{Asks, LingeringPod, LiveJob, LiveSchedule, Permit, Request};
use crate::pace::Pace;
use crate::wish::{self, Materials, Stream};

pub(super) fn live_jobs(request: &SyncRequest) -> Result<Vec<LiveJob>, Error> {
    let kind = Kind::of::<Job>();
    let mut jobs = Vec::new();
    for child in request.children_of(&kind).iter() {
        let job = child.json();
        // Pods tell exit codes, which matter only until they are recorded, and what holds them up.
        let pods = if job::needs_pods(&job) {
            pods_of(request, &format!("{}={}", job::JOB_NAME, child.name()))?
        } else {
            Vec::new()
        };
        jobs.push(job::read_job(&job, &pods));
    }
    Ok(jobs)
}

pub(super) fn live_schedule(request: &SyncRequest) -> Result<Option<LiveSchedule>, Error> {
    let kind = Kind::of::<CronJob>();
    let Some(child) = request.children_of(&kind).iter().next() else { return Ok(None) };
    let jobs: Vec<Job> = request.select(&of_stream(request))?;
    let jobs: Vec<Value> = jobs.iter().filter_map(|job| serde_json::to_value(job).ok()).collect();
    let failed = jobs.iter().any(job::has_failed);
    let pods = if failed { pods_of(request, &of_stream(request))? } else { Vec::new() };
    Ok(Some(job::read_schedule(&child.json(), &jobs, &pods)))
}

fn pods_of(request: &SyncRequest, selector: &str) -> Result<Vec<Value>, Error> {
    let kind = Kind::of::<Pod>();
    request.related(&mainstay::Related::selected(&kind, request.namespace(), selector))
}

/// Requests, each with the reason why no Job can be made for it: that must be known before the stream is stopped.
pub(super) fn with_problems(
    stream: &Stream<'_>,
    requests: &[BackfillRequest],
    on: &SyncRequest,
) -> Result<Vec<Request>, Error> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let purpose = Purpose::Backfill { request: None, id: String::new(), reload: None };
    let template = wish::template_for(stream, &purpose, &Found(on))?.ok();
    let check = |request: &BackfillRequest| {
        job::check_request(stream, template.as_ref()?, &request.name_any(), &request.spec).err()
    };
    let one = |request: &BackfillRequest| Request {
        uid: request.uid().unwrap_or_default(),
        name: request.name_any(),
        retries: request.spec.retries.unwrap_or_default(),
        is_cancelled: request.spec.cancelled == Some(true),
        problem: check(request),
    };
    Ok(requests.iter().map(one).collect())
}

/// What a stream refers to.
pub(super) struct Found<'a>(pub(super) &'a SyncRequest);

impl Materials for Found<'_> {
    fn template(&self, name: &str) -> Result<Option<StreamingJobTemplate>, Error> {
        self.0.get(name)
    }

    fn secret(&self, name: &str) -> Result<Option<Secret>, Error> {
        self.0.get(name)
    }
}

/// What the lifecycle asks only if it matters.
pub(super) struct Questions<'a> {
    pub(super) request: &'a SyncRequest,
    pub(super) pace: &'a Pace,
    pub(super) config: &'a StreamClassConfig,
}

impl Questions<'_> {
    /// Whether there is a Job of this name. One that nobody has seen yet may be there.
    fn has_job(&self, name: &str) -> bool {
        self.request.get::<Job>(name).map_or(true, |job| job.is_some())
    }
}

impl Asks for Questions<'_> {
    fn lingering(&self) -> Vec<LingeringPod> {
        // Pods that nobody has seen yet may be there.
        let Ok(pods) = self.request.select::<Pod>(&of_stream(self.request)) else {
            let name = "pods that have not been listed yet".to_owned();
            return vec![LingeringPod { name, is_left_behind: false }];
        };
        let is_over = |pod: &Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            matches!(phase, Some("Succeeded" | "Failed"))
        };
        let lingering = pods.iter().filter(|pod| !is_over(pod));
        let told = |pod: &Pod| LingeringPod {
            name: pod.name_any(),
            is_left_behind: job::is_left_behind(pod, |job| self.has_job(job)),
        };
        lingering.map(told).collect()
    }

    fn start(&self) -> Permit {
        self.pace.start(self.request.uid(), self.request.now(), &self.config.start_rate)
    }

    fn rollout(&self) -> Permit {
        self.pace.rollout(self.request.uid(), self.request.now(), self.config.rollout.max_unavailable)
    }
}
