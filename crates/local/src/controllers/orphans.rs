//! Pods whose Job is gone lose the finalizer by which the Job would have counted them: nobody counts them any more, and with it they
//! would never go.
//!
//! A pod that names a Job which is not there keeps it until the pod is being deleted: the garbage collector deletes it if the Job is
//! gone, and if the Job is only not known here yet, nothing is lost.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use mainstay::{Controller, Error, SyncRequest, SyncResponse};

use super::job::TRACKING;
use super::pods::is_going;

/// The controller of pods that Jobs leave behind.
pub(super) fn controller() -> Controller {
    Controller::of::<Pod>().until_gone().writes_parents().reads::<Job>().sync(sync)
}

fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let pod: Pod = request.parent()?;
    let is_tracked = pod.finalizers().iter().any(|finalizer| finalizer == TRACKING);
    if is_tracked && is_orphan(request, &pod)? {
        return Ok(SyncResponse::new().let_go(request.reference(), TRACKING));
    }
    Ok(SyncResponse::new())
}

fn is_orphan(request: &SyncRequest, pod: &Pod) -> Result<bool, Error> {
    let Some(owner) = pod.owner_references().iter().find(|owner| owner.controller == Some(true)) else {
        return Ok(true);
    };
    if owner.kind != "Job" || !owner.api_version.starts_with("batch/") {
        return Ok(false);
    }
    let job: Option<Job> = request.get(&owner.name)?;
    let is_there = job.is_some_and(|job| job.uid().as_deref() == Some(&owner.uid));
    Ok(!is_there && is_going(pod))
}
