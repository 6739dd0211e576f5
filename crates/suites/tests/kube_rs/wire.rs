//! The text of answers: a client that reads a stream knows what it gets before it has all of it.

use http::Request;
use kube::api::{Api, PostParams};
use mainstay_testkit::for_each_cluster;

use crate::kube_rs::labelled;

const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

#[tokio::test(flavor = "multi_thread")]
async fn answers_begin_with_kind_and_version() {
    for_each_cluster(async |cluster| {
        let client = cluster.client();
        let api = Api::namespaced(client.clone(), cluster.namespace());
        api.create(&PostParams::default(), &labelled("a", "x")).await.unwrap();
        let maps = format!("/api/v1/namespaces/{}/configmaps", cluster.namespace());
        let (one, list) = (format!("{maps}/a"), format!("{maps}?labelSelector=app"));
        let watch = format!("{list}&watch=1&timeoutSeconds=1");
        let row = r#""object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","#;
        for (path, accept, beginning, part) in [
            (&one, JSON, r#"{"kind":"ConfigMap","apiVersion":"v1","#, ""),
            (&list, JSON, r#"{"kind":"ConfigMapList","apiVersion":"v1","#, ""),
            (&watch, JSON, r#"{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","#, ""),
            (&one, TABLE, r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","#, row),
            (&list, TABLE, r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","#, row),
            (
                &watch,
                TABLE,
                r#"{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","#,
                row,
            ),
            (&list, METADATA, r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","#, ""),
        ] {
            let request = Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
            let text = client.request_text(request).await.unwrap();
            let shown: String = text.chars().take(200).collect();
            assert!(text.starts_with(beginning), "{path} as {accept}: {shown}");
            assert!(text.contains(part), "{path} as {accept}: {text}");
        }
    })
    .await;
}
