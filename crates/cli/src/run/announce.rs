//! Where operators that run outside of the cluster can be asked, for `mainstay explain` to find.
//!
//! One `ConfigMap` in the namespace that the kubeconfig names, with an entry for each system: its name and a URL. Each
//! process owns its own entry by server-side apply, so they do not get in each other's way. Only addresses of this machine are
//! left there; operators in pods are found by their labels.

use crate::cluster::{Cluster, apply, list, reason};
use serde_json::{Value, json};

/// The name of the `ConfigMap`, and of the label by which it is found in any namespace.
const NAME: &str = "mainstay-operators";
pub(crate) const LABEL: &str = "mainstay.dev/operators";

/// Leaves the address of a system's operator, or takes it back.
pub(crate) async fn announce(cluster: &Cluster, system: &str, url: Option<&str>) -> Result<(), kube::Error> {
    let namespace = &cluster.namespace;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{NAME}");
    let manager = format!("mainstay-run-{system}");
    apply(&cluster.client, &path, &entry(system, url), &manager).await.map(drop)
}

fn entry(system: &str, url: Option<&str>) -> Value {
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": NAME, "labels": {LABEL: "true"}}});
    if let Some(url) = url {
        map["data"] = json!({system: url});
    }
    map
}

/// That others will have to be told the address.
pub(super) fn unannounced(system: &str, url: &str, error: &kube::Error) -> String {
    format!(
        "{system}: its address could not be left in ConfigMap {NAME}: {}\n  next: mainstay explain … --at {url}\n",
        reason(error)
    )
}

/// The URLs that were left for a system, in any namespace that may be looked at.
pub(crate) async fn announced(cluster: &Cluster, system: &str) -> Result<Vec<String>, kube::Error> {
    let everywhere = format!("/api/v1/configmaps?labelSelector={LABEL}");
    let maps = match list(&cluster.client, &everywhere).await {
        Err(kube::Error::Api(status)) if status.code == 403 => {
            let own = format!("/api/v1/namespaces/{}/configmaps?labelSelector={LABEL}", cluster.namespace);
            list(&cluster.client, &own).await?
        }
        answer => answer?,
    };
    Ok(maps.iter().filter_map(|map| Some(map["data"].get(system)?.as_str()?.to_owned())).collect())
}
