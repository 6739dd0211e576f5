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
async fn defaults_that_come_later_lock_no_object_in() {
    let mut server = Limited::start().await;
    let namespace = json!({"metadata": {"name": "n"}}).to_string();
    assert_eq!(server.ask("POST", "/api/v1/namespaces", JSON, namespace).await.0, 201);
    let wides = "/apis/limits.test/v1/namespaces/n/wides";
    let rows = |count: usize| vec![json!({"a": "x"}); count];
    for (name, fields, is_held) in [
        ("free", json!({"rows": rows(1000)}), false),
        ("left", json!({"rows": rows(1000)}), false),
        ("held", json!({"rows": rows(1000)}), true),
        // Its defaults alone are not too large.
        ("heavy", json!({"rows": rows(250), "spec": {"x": "y".repeat(1_000_000)}}), true),
    ] {
        let mut object = wide(name, fields);
        if is_held {
            object["metadata"]["finalizers"] = json!(["limits.test/hold"]);
        }
        assert_eq!(server.ask("POST", wides, JSON, object.to_string()).await.0, 201);
    }
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/wides.limits.test";
    let (_, mut definition) = server.ask("GET", path, JSON, "").await;
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["rows"]["items"]["properties"]["b"] =
        json!({"type": "string", "default": "z".repeat(3000)});
    assert_eq!(server.ask("PUT", path, JSON, definition.to_string()).await.0, 200);
    let new = wide("new", json!({"rows": [{}]})).to_string();
    let mut is_served = false;
    for _ in 0..1200 {
        let (_, object) = server.ask("POST", &format!("{WIDES}?dryRun=All"), JSON, new.clone()).await;
        is_served = object["rows"][0]["b"].is_string();
        if is_served {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(is_served);
    let (code, list) = server.ask("GET", wides, JSON, "").await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(4)));
    assert!(list["items"].as_array().into_iter().flatten().all(|item| item["rows"][0]["a"] == "x"));
    assert_eq!(server.table(wides).await.0, 200);
    let at = |name: &str| format!("{wides}/{name}");
    let merge = "application/merge-patch+json";
    let label = json!({"metadata": {"labels": {"a": "b"}}}).to_string();
    assert_eq!(server.refused("PATCH", &at("left"), merge, label).await, (500, TOO_LARGE.to_owned()));
    assert_eq!(server.ask("DELETE", &at("free"), JSON, "").await.0, 200);
    assert_eq!(server.ask("GET", &at("free"), JSON, "").await.0, 404);
    for held in ["held", "heavy"] {
        let (code, marked) = server.ask("DELETE", &at(held), JSON, "").await;
        assert!(code == 200 && marked["metadata"]["deletionTimestamp"].is_string(), "{held}");
        let released = json!({"metadata": {"finalizers": null}}).to_string();
        assert_eq!(server.ask("PATCH", &at(held), merge, released).await.0, 200, "{held}");
        assert_eq!(server.ask("GET", &at(held), JSON, "").await.0, 404, "{held}");
    }
    assert_eq!(server.ask("DELETE", "/api/v1/namespaces/n", JSON, "").await.0, 200);
    for _ in 0..1200 {
        if server.ask("GET", "/api/v1/namespaces/n", JSON, "").await.0 == 404 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the namespace does not end");
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
