//! An operator, with its test.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, CustomResourceExt};
use mainstay::{Controller, Error, Kind, SyncRequest, SyncResponse};
use mainstay_testkit::{OperatorTest, for_each_cluster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What users write.
#[derive(Clone, Debug, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(group = "readme.mainstay.dev", version = "v1", kind = "Team", namespaced)]
struct TeamSpec {
    members: Vec<String>,
}

/// What should exist for a Team: a ConfigMap with its members.
fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let team: Team = request.parent()?;
    SyncResponse::new().with_child(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": request.name()},
        "data": {"members": team.spec.members.join(",")},
    }))
}

#[tokio::test]
async fn a_team_has_a_list_of_its_members() {
    for_each_cluster(async |cluster| {
        cluster.define(json!(Team::crd())).await;
        let controller = Controller::of::<Team>().owns::<ConfigMap>().sync(sync);
        let test = OperatorTest::new(&cluster, "teams", |operator| operator.controller(controller));
        let team = json!({"apiVersion": "readme.mainstay.dev/v1", "kind": "Team",
            "metadata": {"name": "compilers"}, "spec": {"members": ["ada", "grace"]}});
        test.create(team).await;
        test.settle().await;
        let map = test.get(&Kind::of::<ConfigMap>(), "compilers").await.unwrap();
        assert_eq!(map["data"]["members"], "ada,grace");
        test.assert_settled().await; // a second sync writes nothing
    })
    .await;
}
