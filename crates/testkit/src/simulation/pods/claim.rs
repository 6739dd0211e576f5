//! A claim is bound a second after it was made.

use std::time::Duration;

use mainstay::{Error, SyncRequest, SyncResponse};

use super::{still_to_wait, text};

const BOUND_AFTER: Duration = Duration::from_secs(1);

pub(super) fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let claim = request.parent_json();
    if text(&claim["status"]["phase"]) != "Pending" {
        return Ok(SyncResponse::new());
    }
    if let Some(wait) = still_to_wait(&claim["metadata"]["creationTimestamp"], BOUND_AFTER, request.now()) {
        return Ok(SyncResponse::new().requeue_after(wait));
    }
    let mut status = claim["status"].clone();
    status["phase"] = "Bound".into();
    status["accessModes"] = claim["spec"]["accessModes"].clone();
    status["capacity"] = claim["spec"]["resources"]["requests"].clone();
    SyncResponse::from_status(status)
}
