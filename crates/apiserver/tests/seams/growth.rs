//! Work grows linearly with its size. Sixteen times as much takes about sixteen times as long; if it were quadratic, it would take
//! 256 times. The bound is far from both, because other programs may run at the same time.

use crate::seams::{MAPS, map, send, succeed};
use mainstay_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const RATIO_MAX: f64 = 80.0;

/// Times `work` at 1× and 16×, the best of two each.
async fn check(size: usize, work: impl AsyncFn(usize) -> Duration) {
    let small = work(size).await.min(work(size).await).max(Duration::from_millis(1));
    let large = work(size * 16).await;
    let ratio = large.as_secs_f64() / small.as_secs_f64();
    println!("{size}: {small:?}, {}: {large:?}, {ratio:.0} times", size * 16);
    assert!(ratio < RATIO_MAX, "{ratio:.0} times as long for 16 times as much ({small:?}, {large:?})");
}

fn owner(name: &str, uid: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true})
}

/// Waits by real time, in which the work is done.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !is_so().await {
        assert!(begin.elapsed() < Duration::from_mins(2), "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn owner_references_of_one_object() {
    check(500, async |size| {
        let server = ApiServer::builder().build().unwrap();
        let made = succeed(&server, "POST", MAPS, map("owner", "1")).await;
        let missing = |index: usize| owner(&format!("o{index}"), &json!(format!("uid-{index}")));
        let mut owners: Vec<Value> = (1..size).map(missing).collect();
        owners.push(owner("owner", &made["metadata"]["uid"]));
        let mut child = map("child", "1");
        child["metadata"]["ownerReferences"] = owners.into();
        let begin = Instant::now();
        succeed(&server, "POST", MAPS, child).await;
        until("owners that never were are dropped", async || {
            let child = succeed(&server, "GET", &format!("{MAPS}/child"), Value::Null).await;
            child["metadata"]["ownerReferences"].as_array().unwrap().len() == 1
        })
        .await;
        begin.elapsed()
    })
    .await;
}

#[tokio::test]
async fn dependents_of_one_owner() {
    check(100, async |size| {
        let server = ApiServer::builder().build().unwrap();
        let made = succeed(&server, "POST", MAPS, map("owner", "1")).await;
        for index in 0..size {
            let mut child = map(&format!("child-{index}"), "1");
            child["metadata"]["ownerReferences"] = json!([owner("owner", &made["metadata"]["uid"])]);
            succeed(&server, "POST", MAPS, child).await;
        }
        let begin = Instant::now();
        succeed(&server, "DELETE", &format!("{MAPS}/owner?propagationPolicy=Foreground"), Value::Null).await;
        until("the owner is gone", async || {
            send(&server, "GET", &format!("{MAPS}/owner"), Value::Null).await.0 == 404
        })
        .await;
        begin.elapsed()
    })
    .await;
}

fn definition(number: usize) -> Value {
    let fields: serde_json::Map<String, Value> =
        (0..10).map(|index| (format!("field{index}"), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    let version = |version: usize| {
        json!({
            "name": format!("v{version}"), "served": true, "storage": version == 1,
            "schema": {"openAPIV3Schema": schema},
        })
    };
    let versions: Vec<Value> = (1..=10).map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things{number}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": versions,
            "names": {"plural": format!("things{number}"), "kind": format!("Thing{number}")},
        },
    })
}

#[tokio::test]
async fn definitions() {
    check(10, async |size| {
        let server = ApiServer::builder().build().unwrap();
        let begin = Instant::now();
        for number in 0..size {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            succeed(&server, "POST", path, definition(number)).await;
        }
        for number in 0..size {
            let path = format!("/apis/example.com/v10/namespaces/default/things{number}");
            until("all are served", async || send(&server, "GET", &path, Value::Null).await.0 == 200).await;
        }
        begin.elapsed()
    })
    .await;
}

#[tokio::test]
async fn objects_of_a_namespace() {
    check(100, async |size| {
        let server = ApiServer::builder().build().unwrap();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "full"}});
        succeed(&server, "POST", "/api/v1/namespaces", namespace).await;
        for index in 0..size {
            let path = "/api/v1/namespaces/full/configmaps";
            succeed(&server, "POST", path, map(&format!("m{index}"), "1")).await;
        }
        let begin = Instant::now();
        succeed(&server, "DELETE", "/api/v1/namespaces/full", Value::Null).await;
        until("it is gone", async || {
            send(&server, "GET", "/api/v1/namespaces/full", Value::Null).await.0 == 404
        })
        .await;
        begin.elapsed()
    })
    .await;
}

#[tokio::test]
async fn objects_of_a_namespace_that_wait_for_finalizers() {
    check(50, async |size| {
        let server = ApiServer::builder().build().unwrap();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "full"}});
        succeed(&server, "POST", "/api/v1/namespaces", namespace).await;
        let path = "/api/v1/namespaces/full/configmaps";
        for index in 0..size {
            let mut held = map(&format!("m{index}"), "1");
            held["metadata"]["finalizers"] = json!(["example.com/hold"]);
            succeed(&server, "POST", path, held).await;
        }
        let begin = Instant::now();
        succeed(&server, "DELETE", "/api/v1/namespaces/full", Value::Null).await;
        let last = format!("{path}/m{}", size - 1);
        until("all are marked", async || {
            succeed(&server, "GET", &last, Value::Null).await["metadata"]["deletionTimestamp"].is_string()
        })
        .await;
        for index in 0..size {
            let release = json!({"metadata": {"finalizers": null}});
            succeed(&server, "PATCH", &format!("{path}/m{index}"), release).await;
        }
        until("it is gone", async || {
            send(&server, "GET", "/api/v1/namespaces/full", Value::Null).await.0 == 404
        })
        .await;
        begin.elapsed()
    })
    .await;
}

#[tokio::test]
async fn claims_that_wait_for_their_pods() {
    check(30, async |size| {
        let server = ApiServer::builder().build().unwrap();
        let (claims, pods) =
            ("/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/namespaces/default/pods");
        for index in 0..size {
            let claim = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": format!("c{index}")},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            });
            succeed(&server, "POST", claims, claim).await;
            let volume =
                json!({"name": "v", "persistentVolumeClaim": {"claimName": format!("c{index}")}});
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{index}")},
                "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]},
            });
            succeed(&server, "POST", pods, pod).await;
        }
        let begin = Instant::now();
        for index in 0..size {
            succeed(&server, "DELETE", &format!("{claims}/c{index}"), Value::Null).await;
        }
        let first = succeed(&server, "GET", &format!("{claims}/c0"), Value::Null).await;
        assert!(first["metadata"]["deletionTimestamp"].is_string(), "it is protected");
        for index in 0..size {
            succeed(&server, "DELETE", &format!("{pods}/p{index}"), Value::Null).await;
        }
        until("all claims are gone", async || {
            let left = succeed(&server, "GET", claims, Value::Null).await;
            left["items"].as_array().unwrap().is_empty()
        })
        .await;
        begin.elapsed()
    })
    .await;
}
