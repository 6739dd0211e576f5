//! Pods whose Job is gone lose the finalizer by which the Job would have counted them: nobody counts them any more, and with it they
//! would never go.
//!
//! A pod that names a Job which is not there keeps it until the pod is being deleted: the garbage collector deletes it if the Job is
//! gone, and if the Job is only not known here yet, nothing is lost.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use mainstay::{Error, SyncRequest};

use super::job::TRACKING;
use super::pods::is_going;

/// Whether a pod has the finalizer, and nobody will take it off.
pub(super) fn waits_in_vain(request: &SyncRequest, pod: &Pod) -> Result<bool, Error> {
    let is_tracked = pod.finalizers().iter().any(|finalizer| finalizer == TRACKING);
    Ok(is_tracked && is_orphan(request, pod)?)
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
