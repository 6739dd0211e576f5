//! A `CronJob` starts a Job at each time of its schedule.
//!
//! - One Job for each time, whatever happens in between: the Job's name says for which time it is, and the last time that a Job
//!   was started for follows from the Jobs that are there until the status says it. No Job is deleted before.
//! - Of times that were missed, only the last is made up for, and only if it is not too long ago.
//! - What is started is the `CronJob`'s until it is deleted; what is in the template now concerns the next Job only.

mod decide;
#[cfg(test)]
mod tests;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::ResourceExt as _;
use mainstay::{Controller, Error, SyncRequest, SyncResponse};

use super::pods::kept;
use decide::decide;

/// The controller of `CronJobs`.
pub(super) fn controller() -> Controller {
    Controller::of::<CronJob>().owns::<Job>().sync(sync)
}

fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let cron: CronJob = request.parent()?;
    let jobs = request.children::<Job>().iter().collect::<Result<Vec<Job>, Error>>()?;
    let decision = decide(&cron, &jobs, request.now());
    // The status records what was started before any of it can go.
    let mut response = SyncResponse::from_status(&decision.status)?.status_first();
    for job in jobs.iter().filter(|job| !decision.deleted.contains(&job.name_any())) {
        response.add_child(kept::<Job>(&job.name_any()))?;
    }
    if let Some(job) = decision.new {
        response.add_child(job)?;
    }
    if let Some(after) = decision.again_after {
        response = response.requeue_after(after);
    }
    Ok(decision.events.into_iter().fold(response, SyncResponse::with_event))
}
