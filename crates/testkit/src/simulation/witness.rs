//! The eye of a world in an API server: each change is told to the record while it is made.

use std::sync::{Arc, Weak};

use mainstay_apiserver::Observer;
use serde_json::Value;

use super::stage::Stage;
use super::state::{Place, resource_of};

/// Tells the record of one cluster's changes.
pub(super) struct Witness {
    pub(super) cluster: Arc<str>,
    /// The stage holds the server that holds this.
    pub(super) stage: Weak<Stage>,
}

impl Observer for Witness {
    fn committed(&self, change: &mainstay_apiserver::Change<'_>) {
        let Some(stage) = self.stage.upgrade() else { return };
        let resource = resource_of(change.group, change.resource);
        let place = Place::new(&resource, change.namespace, change.name).in_cluster(&self.cluster);
        stage.record.committed(place, change.after.and_then(read), change.revision);
    }
}

/// An object without what is only bookkeeping.
fn read(json: &[u8]) -> Option<Value> {
    let mut object: Value = serde_json::from_slice(json).ok()?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Some(object)
}
