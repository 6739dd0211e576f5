//! What is done for pods themselves, whoever made them: claims for their ephemeral volumes, and a way out for those whose Job is gone.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use mainstay::events::Event;
use mainstay::{ChildKind, Controller, Error, SyncRequest, SyncResponse};

use super::job::TRACKING;
use super::names::Gone;
use super::{ephemeral, orphans};

/// The controller of pods. It reports to `gone` which of them vanish.
pub(super) fn controller(gone: Gone) -> Controller {
    Controller::of::<Pod>()
        .child(ChildKind::of::<PersistentVolumeClaim>().unowned())
        .reads::<PersistentVolumeClaim>()
        .reads::<Job>()
        .until_gone()
        .writes_parents()
        .when_gone(move |pod, _| gone.add(pod))
        .sync(sync)
}

fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let pod: Pod = request.parent()?;
    let mut response = SyncResponse::new();
    if orphans::waits_in_vain(request, &pod)? {
        response = response.let_go(request.reference(), TRACKING);
    }
    if request.is_deleting() {
        return Ok(response);
    }
    for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        let Some(claim) = ephemeral::claim(&pod, volume) else { continue };
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let there: Option<PersistentVolumeClaim> = request.get(name)?;
        match there.and_then(|there| ephemeral::mismatch(&pod, &there)) {
            Some(why) => {
                let message = format!("ephemeral volume {}: {why}", volume.name);
                response = response.with_event(Event::warning("FailedBinding", &message));
            }
            None => {
                response.add_child(claim)?;
            }
        }
    }
    Ok(response)
}
