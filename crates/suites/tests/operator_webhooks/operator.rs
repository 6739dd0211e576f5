//! Webhooks as part of an operator: served while it runs, registered by the replica that leads, told of in `/readyz`.

use std::net::{Ipv4Addr, SocketAddr};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use mainstay::replicas::Replicas;
use mainstay::webhook::{Denied, Hook, Serving, Webhooks};
use mainstay::{Controller, Operator, SyncRequest, SyncResponse};
use mainstay_testkit::{Cluster, RunningOperator, eventually, for_each_cluster};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::operator_webhooks::{clear, here, in_force, map, maps, refusal};

fn webhooks(cluster: &Cluster) -> Webhooks {
    let refuse = Hook::validate::<ConfigMap>(|request| {
        let value = request.object().data.as_ref().and_then(|data| data.get("key"));
        match value.map(String::as_str) {
            Some("probe" | "bad") => Err(Denied::invalid("data.key", "must not be bad")),
            _ => Ok(()),
        }
    });
    Webhooks::new(cluster.namespace()).with(here(cluster, refuse))
}

/// Every config map gets a secret of its name.
fn sync(request: &SyncRequest) -> Result<SyncResponse, mainstay::Error> {
    SyncResponse::new().with_child(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{}-twin", request.name())},
    }))
}

async fn readyz(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /readyz?verbose HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_serves_its_webhooks_while_it_runs() {
    for_each_cluster(async |cluster| {
        let controller = Controller::of::<ConfigMap>().owns::<Secret>().sync(sync);
        let operator = Operator::builder("twins", cluster.client())
            .namespace(cluster.namespace())
            .replicas(Replicas::leader(cluster.namespace()))
            .serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .webhooks(webhooks(&cluster), Serving::on_loopback())
            .controller(controller)
            .build()
            .unwrap();
        let roles = operator.rbac().to_string();
        assert!(roles.contains("validatingwebhookconfigurations"), "{roles}");
        let running = RunningOperator::start(operator.clone());
        in_force(&cluster).await;
        let refused = maps(&cluster).create(&PostParams::default(), &map("paint", "bad")).await;
        assert!(refusal(refused).2.contains("data.key"), "the field is named");
        maps(&cluster).create(&PostParams::default(), &map("paint", "good")).await.unwrap();
        let secrets = mainstay::Kind::of::<Secret>();
        eventually("the sync goes on beside", async || cluster.find(&secrets, "paint-twin").await).await;
        let address = eventually("health to be served", async || operator.address()).await;
        eventually("the webhooks to be ready", async || {
            readyz(address).await.contains("[+]webhooks ok").then_some(())
        })
        .await;
        running.stop().await;
        clear(&cluster).await;
    })
    .await;
}
