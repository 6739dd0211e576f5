//! Jobs whose stream can no longer record how they ended: they are let go.
//!
//! A Job waits with a finalizer until its outcome is in its stream's status. When the stream is gone, or nobody looks after its kind any
//! more, nothing would ever take the finalizer off.

use k8s_openapi::api::batch::v1::Job;
use mainstay::{Controller, Error, Key, Related, SyncRequest, SyncResponse};
use serde_json::Value;

use crate::class::kind_of;
use crate::config::StreamClassConfig;
use crate::kinds::{ClassPhase, StreamClass, labels};

/// The controller of Jobs that are being deleted.
pub(crate) fn controller() -> Controller {
    Controller::of::<Job>().reads::<StreamClass>().reads_any_kind().writes_parents().until_gone().sync(sync)
}

fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let metadata = &request.parent_json()["metadata"];
    let is_held =
        metadata["finalizers"].as_array().is_some_and(|all| all.iter().any(|name| name == labels::OUTCOME));
    if !request.is_deleting() || !is_held || is_looked_after(request, metadata)? {
        return Ok(SyncResponse::new());
    }
    Ok(SyncResponse::new().let_go(request.reference(), labels::OUTCOME))
}

/// Whether there is a stream that will record how the Job ended.
fn is_looked_after(request: &SyncRequest, metadata: &Value) -> Result<bool, Error> {
    let owners = metadata["ownerReferences"].as_array();
    let Some(owner) = owners.and_then(|owners| owners.iter().find(|owner| owner["controller"] == true))
    else {
        return Ok(false);
    };
    for class in request.select::<StreamClass>("")? {
        let kind = kind_of(&StreamClassConfig::from(&class.spec));
        if owner["kind"] != kind.kind() || owner["apiVersion"] != kind.api_version() {
            continue;
        }
        if !is_at_work(&class) {
            continue;
        }
        let name = owner["name"].as_str().unwrap_or_default();
        let streams = request.related(&Related::named(&kind, Key::new(request.namespace(), name)))?;
        return Ok(streams.iter().any(|stream| stream["metadata"]["uid"] == owner["uid"]));
    }
    Ok(false)
}

/// Whether the class looks after its streams, or will in a moment. One whose kind is not there has none.
fn is_at_work(class: &StreamClass) -> bool {
    let Some(status) = &class.status else { return false };
    let is_defined = status.conditions.iter().any(|known| known.type_ == "Defined" && known.status == "True");
    status.phase == ClassPhase::Ready || (status.phase == ClassPhase::Pending && is_defined)
}
