//! Volumes of class `ephemeral`: each has a claim of its own, which is the pod's and goes with it.
//!
//! A claim of that name which is not the pod's is somebody else's data. It is neither used nor changed: the pod waits.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;

use super::pods::controller_uid;

/// The name of the claim of a pod's volume, if that is an ephemeral one.
pub(crate) fn claim_name(pod: &str, volume: &Volume) -> Option<String> {
    volume.ephemeral.as_ref().map(|_| format!("{pod}-{}", volume.name))
}

/// Why a claim that has the name of a pod's ephemeral volume is not for that, if so.
pub(crate) fn mismatch(pod: &Pod, claim: &PersistentVolumeClaim) -> Option<String> {
    if controller_uid(claim).is_some() && controller_uid(claim) == pod.metadata.uid.as_deref() {
        return None;
    }
    let namespace = pod.namespace().unwrap_or_default();
    let (claim, pod) = (claim.name_any(), pod.name_any());
    Some(format!("PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)"))
}

/// The claim of an ephemeral volume.
pub(super) fn claim(pod: &Pod, volume: &Volume) -> Option<PersistentVolumeClaim> {
    let template = volume.ephemeral.as_ref()?.volume_claim_template.clone()?;
    let given = template.metadata.unwrap_or_default();
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: pod.name_any(),
        uid: pod.uid()?,
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let metadata = ObjectMeta {
        name: claim_name(&pod.name_any(), volume),
        labels: given.labels,
        annotations: given.annotations,
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    Some(PersistentVolumeClaim { metadata, spec: Some(template.spec), status: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::{from_value, json};

    fn pod(uid: &str) -> Pod {
        let template = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        let volumes = json!([{"name": "cache", "ephemeral": {"volumeClaimTemplate": template}}, {"name": "tmp", "emptyDir": {}}]);
        let pod = json!({"metadata": {"namespace": "ns", "name": "web", "uid": uid}, "spec": {"containers": [], "volumes": volumes}});
        from_value(pod).unwrap()
    }

    #[test]
    fn an_ephemeral_volume_has_a_claim_that_is_the_pods() {
        let pod = pod("1");
        let volumes = pod.spec.as_ref().unwrap().volumes.as_ref().unwrap();
        let claims: Vec<_> = volumes.iter().filter_map(|volume| claim(&pod, volume)).collect();
        expect![[r#"[{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"labels":{"app":"web"},"name":"web-cache","ownerReferences":[{"apiVersion":"v1","blockOwnerDeletion":true,"controller":true,"kind":"Pod","name":"web","uid":"1"}]},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]"#]]
        .assert_eq(&json!(claims).to_string());
        assert_eq!(mismatch(&pod, &claims[0]), None);
    }

    #[test]
    fn a_claim_of_another_pod_of_that_name_is_not_for_it() {
        let (before, now) = (pod("1"), pod("2"));
        let theirs = claim(&before, &before.spec.as_ref().unwrap().volumes.as_ref().unwrap()[0]).unwrap();
        let why = "PVC ns/web-cache was not created for pod ns/web (pod is not owner)";
        assert_eq!(mismatch(&now, &theirs).as_deref(), Some(why));
        let nobodys = from_value(json!({"metadata": {"name": "web-cache"}})).unwrap();
        assert_eq!(mismatch(&now, &nobodys).as_deref(), Some(why));
    }
}
