//! Endpoints on loopback, where the embedder wants them.

use crate::seams::{send, succeed};
use mainstay_apiserver::ApiServer;
use serde_json::{Value, json};

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";

fn slice(address: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "a"},
        "addressType": "IPv4", "endpoints": [{"addresses": [address]}],
    })
}

fn endpoints(address: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "a"},
        "subsets": [{"addresses": [{"ip": address}], "ports": [{"port": 80}]}],
    })
}

#[tokio::test]
async fn endpoints_on_loopback_pass_where_pods_are_processes() {
    let server = ApiServer::builder().loopback_endpoints().build().unwrap();
    succeed(&server, "POST", SLICES, slice("127.4.5.6")).await;
    succeed(&server, "POST", ENDPOINTS, endpoints("127.4.5.6")).await;
    succeed(&server, "PATCH", &format!("{SLICES}/a"), json!({"endpoints": [{"addresses": ["127.4.5.7"]}]}))
        .await;
    let (code, _) =
        send(&server, "PATCH", &format!("{SLICES}/a"), json!({"endpoints": [{"addresses": ["127.0.0.1"]}]}))
            .await;
    assert_eq!(code, 422, "the machine's own address is nobody's");
}

#[tokio::test]
async fn endpoints_on_loopback_are_refused_as_kubernetes_refuses_them() {
    let server = ApiServer::builder().build().unwrap();
    for (path, object) in [(SLICES, slice("127.4.5.6")), (ENDPOINTS, endpoints("127.4.5.6"))] {
        let (code, status) = send(&server, "POST", path, object).await;
        assert_eq!(code, 422);
        assert!(status["message"].as_str().unwrap().contains("may not be in the loopback range"), "{status}");
    }
}
