//! The server has the last word on what a schema allows: it takes every change and stores what was foreseen.

use http::Request;
use proptest::prelude::*;

use super::*;
use crate::Cluster;

const THINGS: &str = "/apis/example.org/v1/things";

async fn send(cluster: &Cluster, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let (status, answer) = cluster.send(request.body(body.to_string().into_bytes()).unwrap()).await;
    (status.as_u16(), answer)
}

/// Applies each change on its own, as a patch and in a new object.
async fn apply_all(json: &Value, spec: &Value, walk: &SpecWalk) {
    let cluster = Cluster::embedded().await.unwrap();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (status, answer) = send(&cluster, "POST", definitions, &definition(json)).await;
    assert_eq!(status, 201, "{answer}");
    let (status, answer) = send(&cluster, "POST", THINGS, &thing(spec)).await;
    assert_eq!(status, 201, "{answer} of {spec}");
    let schema = Schema::read(json);
    for change in &walk.changes {
        let expected = schema.complete(&change.spec);
        let patched = send(&cluster, "PATCH", &format!("{THINGS}/one?dryRun=All"), &change.patch).await;
        assert_eq!((patched.0, &patched.1["spec"]), (200, &expected), "{}: {}", change.label, patched.1);
        let mut other = thing(&change.spec);
        other["metadata"]["name"] = json!("two");
        let created = send(&cluster, "POST", &format!("{THINGS}?dryRun=All"), &other).await;
        assert_eq!((created.0, &created.1["spec"]), (201, &expected), "{}: {}", change.label, created.1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_server_takes_every_change_as_foreseen(json in super::laws::schemas()) {
        let Some((spec, walk)) = super::laws::sample(&json) else { return Ok(()) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(apply_all(&json, &spec, &walk));
    }
}
