//! Patches that copy and graft.

use super::{JSON, JSON_PATCH, Limited, WIDES, wide};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_copies_are_refused() {
    let mut server = Limited::start().await;
    let object = wide("a", json!({"spec": {"z": "x".repeat(1000), "d": {}}}));
    assert_eq!(server.ask("POST", WIDES, JSON, object.to_string()).await.0, 201);
    let path = format!("{WIDES}/a");

    let doubled: Value =
        (0..24).map(|at| json!({"op": "copy", "from": "/spec", "path": format!("/spec/z{at}")})).collect();
    let refused = server.refused("PATCH", &path, JSON_PATCH, doubled.to_string()).await;
    let nothing_more = "the server rejected our request due to an error in our request".to_owned();
    assert_eq!(refused, (422, nothing_more));

    let nested: Value =
        (0..9_000).map(|_| json!({"op": "copy", "from": "/spec/d", "path": "/spec/d/d"})).collect();
    let refused = server.refused("PATCH", &path, JSON_PATCH, nested.to_string()).await;
    let deep = "Request entity too large: the object would be nested deeper than 125 levels".to_owned();
    assert_eq!(refused, (413, deep));

    let (_, kept) = server.ask("GET", &path, JSON, "").await;
    assert_eq!(kept["spec"], object["spec"], "a refused patch changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_was_grafted_as_deep_as_it_can_be_keeps_its_finalizers() {
    let mut server = Limited::start().await;
    let mut object = wide("deep", json!({"spec": {}}));
    object["metadata"]["finalizers"] = json!(["limits.test/hold"]);
    assert_eq!(server.ask("POST", WIDES, JSON, object.to_string()).await.0, 201);
    let path = format!("{WIDES}/deep");
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
    // Grafts, each within what a body may be, that go deeper and deeper until one is refused.
    let (mut at, mut refusals) = ("/spec".to_owned(), 0);
    for levels in [100, 10, 5, 2, 1, 1, 1, 1, 1, 1] {
        let graft = json!([{"op": "add", "path": format!("{at}/a"), "value": nested(levels)}]);
        match server.ask("PATCH", &path, JSON_PATCH, graft.to_string()).await {
            (200, _) => at.push_str(&"/a".repeat(levels)),
            (code, status) => {
                assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")), "{status}");
                refusals += 1;
            }
        }
    }
    assert!(refusals > 0, "none was too deep");
    for read in [WIDES, &path] {
        for accept in ["?pretty=true", ""] {
            assert_eq!(server.ask("GET", &format!("{read}{accept}"), JSON, "").await.0, 200);
        }
    }
    let (code, marked) = server.ask("DELETE", &path, JSON, "").await;
    assert_eq!(code, 200, "{marked}");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let (code, kept) = server.ask("GET", &path, JSON, "").await;
    assert_eq!((code, &kept["metadata"]["finalizers"]), (200, &json!(["limits.test/hold"])));
    let (list, _) = server.ask("GET", "/api/v1/namespaces/default", JSON, "").await;
    assert_eq!(list, 200);
}
