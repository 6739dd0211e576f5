//! Takes away one thing that is left.

use super::find::{Leftover, What};
use crate::cluster::{Cluster, get, merge};
use crate::failure::Failure;
use http::Request;
use kube::Error;
use serde_json::{Value, json};

/// As which writes are signed.
const MANAGER: &str = "mainstay-uninstall";
/// How many times in a row somebody else may write first.
const CONFLICTS_MAX: usize = 5;

/// Takes it away. What is gone already is no failure, and neither is what somebody else has changed meanwhile: the next look finds it.
pub(super) async fn remove(cluster: &Cluster, leftover: &Leftover) -> Result<(), Failure> {
    let removed = match leftover.what {
        // It goes with its Deployment.
        What::Pod => Ok(()),
        What::Finalizer => take_off(cluster, leftover).await,
        What::Announcement => {
            let fields = json!({"data": {&leftover.part: null}});
            merge(&cluster.client, &leftover.path(), &fields, MANAGER).await.map(drop)
        }
        What::Operator | What::Object | What::Permission | What::Lease | What::Definition => {
            delete(cluster, leftover).await
        }
    };
    match removed {
        Err(Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        removed => removed.map_err(|error| {
            let failure = cluster.failed(&format!("remove {}", leftover.resource()), error);
            failure.unchanged("what was to go after it is still there; the same command goes on from here")
        }),
    }
}

/// Deletes the very object that was found, and not another of its name.
async fn delete(cluster: &Cluster, leftover: &Leftover) -> Result<(), Error> {
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        "preconditions": {"uid": leftover.uid},
    });
    let request = Request::delete(leftover.path())
        .header("content-type", "application/json")
        .body(options.to_string().into_bytes());
    cluster.client.request::<Value>(request.map_err(Error::HttpError)?).await.map(drop)
}

/// Takes a finalizer off, if the object still is as it was read: others may be added or taken off at the same time.
async fn take_off(cluster: &Cluster, leftover: &Leftover) -> Result<(), Error> {
    for _ in 0..CONFLICTS_MAX {
        let Some(object) = get(&cluster.client, &leftover.path()).await? else { return Ok(()) };
        let metadata = &object["metadata"];
        let all = metadata["finalizers"].as_array().cloned().unwrap_or_default();
        let others: Vec<Value> =
            all.iter().filter(|known| **known != leftover.part.as_str()).cloned().collect();
        if metadata["uid"] != leftover.uid.as_str() || others.len() == all.len() {
            return Ok(());
        }
        let version = &metadata["resourceVersion"];
        let fields = json!({"metadata": {"resourceVersion": version, "finalizers": others}});
        match merge(&cluster.client, &leftover.path(), &fields, MANAGER).await {
            Err(Error::Api(status)) if status.code == 409 => {}
            done => return done.map(drop),
        }
    }
    Ok(())
}
