//! A test on both clusters.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams};
use mainstay_testkit::{eventually, for_each_cluster};

#[tokio::test]
async fn a_deleted_namespace_goes_with_its_content() {
    for_each_cluster(async |cluster| {
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        namespaces.delete(cluster.namespace(), &DeleteParams::default()).await.unwrap();
        eventually("the namespace is gone", async || {
            namespaces.get_opt(cluster.namespace()).await.unwrap().is_none().then_some(())
        })
        .await;
    })
    .await;
}
