//! Daemon sets.

use serde_json::{Value, json};

use super::super::case::Case;
use super::{daemon_sets, is_observed, pods, revisions, template};

fn is_updated(set: &Value) -> bool {
    is_observed(set) && set["status"]["updatedNumberScheduled"] == 1 && set["status"]["numberAvailable"] == 1
}

pub(crate) async fn on_every_node(mut case: Case) -> Case {
    let (sets, pods, revisions) = (daemon_sets(), pods(), revisions());
    case.create(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("agent:1", &json!({}))},
    }))
    .await;
    case.until(&sets, "agent", "available", is_updated).await;
    case.show("created", &[&sets, &revisions, &pods]).await;
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "agent:2"}]}}}});
    case.patch(&sets, "agent", image).await;
    case.until(&sets, "agent", "updated", is_updated).await;
    case.show("with another image", &[&sets, &revisions, &pods]).await;
    let nowhere = json!({"spec": {"template": {"spec": {"nodeSelector": {"there": "is-none"}}}}});
    case.patch(&sets, "agent", nowhere).await;
    case.until(&sets, "agent", "nowhere", |set| {
        is_observed(set)
            && set["status"]["desiredNumberScheduled"] == 0
            && set["status"]["numberMisscheduled"] == 0
    })
    .await;
    case.show("where no node is", &[&sets, &revisions, &pods]).await;
    case
}
