//! Discovery, aggregated and legacy.

use std::collections::BTreeSet;

use kube::core::GroupVersionKind;
use kube::discovery::{self, Discovery, Scope, verbs};
use mainstay_testkit::{eventually, for_each_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn both_kinds_of_discovery_find_the_same() {
    for_each_cluster(async |cluster| {
        // Groups of other tests come and go meanwhile. One that goes between two requests makes a discovery fail.
        let legacy = eventually("a discovery while no group goes", async || {
            Discovery::new(cluster.client()).run().await.ok()
        })
        .await;
        let aggregated = Discovery::new(cluster.client()).run_aggregated().await.unwrap();
        let is_built_in = |group: &str| !group.contains('.') || group.ends_with(".k8s.io");
        let names = |discovery: &Discovery| -> BTreeSet<_> {
            let resources = discovery.groups().filter(|group| is_built_in(group.name())).flat_map(|group| {
                group.versions().flat_map(|version| group.versioned_resources(version)).map(
                    |(resource, capabilities)| {
                        let mut operations = capabilities.operations;
                        operations.sort();
                        (resource.api_version, resource.plural, resource.kind, operations)
                    },
                )
            });
            resources.collect()
        };
        assert_eq!(names(&legacy), names(&aggregated));
        for group in ["", "apps", "batch", "apiextensions.k8s.io", "coordination.k8s.io", "events.k8s.io"] {
            assert!(legacy.has_group(group), "{group}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_are_resolved() {
    for_each_cluster(async |cluster| {
        let discovery = Discovery::new(cluster.client()).filter(&["apps"]).run().await.unwrap();
        let deployment = GroupVersionKind::gvk("apps", "v1", "Deployment");
        let (resource, capabilities) = discovery.resolve_gvk(&deployment).unwrap();
        assert_eq!(resource.plural, "deployments");
        assert_eq!(capabilities.scope, Scope::Namespaced);
        assert!(capabilities.supports_operation(verbs::WATCH));
        assert!(capabilities.subresources.iter().any(|(sub, _)| sub.plural == "scale"));
        let (resource, capabilities) =
            discovery::pinned_kind(&cluster.client(), &GroupVersionKind::gvk("", "v1", "Node"))
                .await
                .unwrap();
        assert_eq!((resource.plural.as_str(), capabilities.scope), ("nodes", Scope::Cluster));
        let group = discovery::group(&cluster.client(), "batch").await.unwrap();
        assert_eq!(group.recommended_kind("Job").unwrap().0.api_version, "batch/v1");
        let missing = GroupVersionKind::gvk("none.example.com", "v1", "None");
        assert!(discovery::pinned_kind(&cluster.client(), &missing).await.is_err());
        let version = cluster.client().apiserver_version().await.unwrap();
        assert!(
            version.git_version.starts_with(mainstay_testkit::binaries::KUBERNETES_VERSION),
            "{version:?}"
        );
    })
    .await;
}
