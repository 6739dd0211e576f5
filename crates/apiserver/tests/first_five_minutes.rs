//! The example of the README.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use mainstay_apiserver::ApiServer;
use serde_json::json;

#[tokio::test]
async fn a_field_has_one_owner() -> Result<(), Box<dyn std::error::Error>> {
    let server = ApiServer::builder().build()?; // in memory; nothing listens, nothing to clean up
    let maps: Api<ConfigMap> = Api::default_namespaced(kube::Client::new(server, "default"));
    let apply = async |manager: &str, colour: &str| {
        let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "paint"}, "data": {"colour": colour}});
        maps.patch("paint", &PatchParams::apply(manager), &Patch::Apply(wanted)).await
    };
    apply("alice", "blue").await?;
    let refused = apply("bob", "red").await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status)
        if status.code == 409 && status.message.contains(r#"conflict with "alice": .data.colour"#)));
    Ok(())
}
