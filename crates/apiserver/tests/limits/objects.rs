//! Objects that outgrow the store.

use super::{JSON, Limited, WIDES, wide};
use serde_json::{Value, json};

const TOO_LARGE: &str = "etcdserver: request is too large";

#[tokio::test(flavor = "multi_thread")]
async fn defaults_do_not_make_megabytes_of_kilobytes() {
    let mut server = Limited::start().await;
    let object = wide("rows", json!({"rows": vec![json!({}); 20_000]})).to_string();
    assert!(object.len() < 70_000);
    assert_eq!(server.refused("POST", WIDES, JSON, object).await, (500, TOO_LARGE.to_owned()));
    let object = wide("rows", json!({"rows": vec![json!({}); 500]})).to_string();
    assert_eq!(server.ask("POST", WIDES, JSON, object).await.0, 201);
    // A patch and an apply of it are defaulted too.
    let (path, rows) = (format!("{WIDES}/rows"), json!({"rows": vec![json!({}); 20_000]}));
    let merge = "application/merge-patch+json";
    assert_eq!(server.refused("PATCH", &path, merge, rows.to_string()).await, (500, TOO_LARGE.to_owned()));
    let applied = wide("rows", rows).to_string();
    let path = format!("{path}?fieldManager=m&force=true");
    let refused = server.refused("PATCH", &path, "application/apply-patch+yaml", applied).await;
    assert_eq!(refused, (500, TOO_LARGE.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_for_etcd_is_too_large() {
    let mut server = Limited::start().await;
    let object = |bytes: usize| wide("large", json!({"spec": {"x": "y".repeat(bytes)}})).to_string();
    assert_eq!(server.refused("POST", WIDES, JSON, object(1_700_000)).await, (500, TOO_LARGE.to_owned()));
    assert_eq!(server.ask("POST", WIDES, JSON, object(1_571_500)).await.0, 201);
    let patch = json!({"spec": {"x": "y".repeat(1_700_000)}}).to_string();
    let path = format!("{WIDES}/large");
    let merge = "application/merge-patch+json";
    assert_eq!(server.refused("PATCH", &path, merge, patch).await, (500, TOO_LARGE.to_owned()));
    // The managers of many fields are given up before the fields are.
    let many: serde_json::Map<String, Value> =
        (0..90_000).map(|at| (format!("k{at:05}"), json!("v"))).collect();
    let (code, object) =
        server.ask("POST", WIDES, JSON, wide("many", json!({"spec": many})).to_string()).await;
    assert_eq!((code, object["metadata"].get("managedFields")), (201, None));
    // One that is as large as can be can still be deleted.
    let mut held = wide("held", json!({"spec": {"x": "y".repeat(1_571_500)}}));
    held["metadata"]["finalizers"] = json!(["limits.test/hold"]);
    assert_eq!(server.ask("POST", WIDES, JSON, held.to_string()).await.0, 201);
    let (code, marked) = server.ask("DELETE", &format!("{WIDES}/held"), JSON, "").await;
    assert!(code == 200 && marked["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_shows_no_more_than_it_may() {
    let mut server = Limited::start().await;
    let deep = (0..110).fold(json!("x".repeat(1 << 20)), |inner, _| json!({"a": inner, "b": [{}]}));
    assert_eq!(server.ask("POST", WIDES, JSON, wide("deep", json!({"spec": deep})).to_string()).await.0, 201);
    let (code, table) = server.table(WIDES).await;
    assert_eq!((code, &table["kind"]), (200, &json!("Table")));
    assert_eq!(table["rows"][0]["cells"].as_array().map(Vec::len), Some(5001));
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_requests_at_once_are_answered() {
    let server = Limited::start().await;
    let rows = wide("rows", json!({"rows": vec![json!({}); 20_000]})).to_string();
    let requests = (0..50).map(|_| server.client.send_as("POST", WIDES, JSON, rows.clone()));
    for answer in futures::future::join_all(requests).await {
        assert_eq!(answer.expect("an answer").0, 500);
    }
}
