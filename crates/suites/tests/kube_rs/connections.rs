//! The ways in: in process, over HTTP, over HTTPS with a token or a certificate; and who is kept out.

use std::net::SocketAddr;

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mainstay_apiserver::{ApiServer, Served};

use crate::kube_rs::{config_map, refusal};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A client by the served kubeconfig, with a change to who it says it is: by its token, unless it is made another.
async fn client(served: &Served, change: impl FnOnce(&mut AuthInfo)) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut kubeconfig = Kubeconfig::from_yaml(&served.kubeconfig()).unwrap();
    change(kubeconfig.auth_infos[0].auth_info.as_mut().unwrap());
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// The user of a served kubeconfig's other context, who shows a certificate.
fn certified(served: &Served) -> AuthInfo {
    let kubeconfig = Kubeconfig::from_yaml(&served.kubeconfig()).unwrap();
    let context = kubeconfig.contexts.iter().find(|context| context.name == "mainstay-certificate").unwrap();
    let user = context.context.as_ref().unwrap().user.clone().unwrap();
    let user = kubeconfig.auth_infos.into_iter().find(|info| info.name == user).unwrap().auth_info.unwrap();
    assert!(user.token.is_none());
    user
}

/// Writes, reads, lists and watches.
async fn works(client: Client, name: &str) {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let created = api.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    assert_eq!(api.get(name).await.unwrap(), created);
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut events = std::pin::pin!(api.watch(&params, &version).await.unwrap());
    let event = events.try_next().await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Added(object)) if object == created));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_is_reached_in_every_way_at_once() {
    let server = ApiServer::builder().build().unwrap();
    works(Client::new(server.clone(), "default"), "in-process").await;
    let http = server.serve_http(LOOPBACK).await.unwrap();
    works(client(&http, |_| ()).await, "http").await;
    let https = server.serve_https(LOOPBACK).await.unwrap();
    works(client(&https, |_| ()).await, "https").await;
    works(client(&https, |user| *user = certified(&https)).await, "certificate").await;
    let all: Api<ConfigMap> = Api::default_namespaced(Client::new(server, "default"));
    assert_eq!(
        all.list(&ListParams::default().fields("metadata.name!=kube-root-ca.crt")).await.unwrap().items.len(),
        4
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_kept_out() {
    let server = ApiServer::builder().build().unwrap();
    let (http, https) =
        (server.serve_http(LOOPBACK).await.unwrap(), server.serve_https(LOOPBACK).await.unwrap());
    for served in [&http, &https] {
        for token in [None, Some("wrong"), Some("")] {
            let stranger = client(served, |user| user.token = token.map(Into::into)).await;
            let namespaces: Api<Namespace> = Api::all(stranger.clone());
            assert_eq!(
                refusal(namespaces.list(&ListParams::default()).await),
                (401, "Unauthorized".into()),
                "{token:?}"
            );
            // Health and version are for everybody.
            stranger.apiserver_version().await.unwrap();
        }
    }
    // As in Kubernetes, nobody looks at the token of who shows a certificate.
    let mixed = client(&https, |user| {
        *user = certified(&https);
        user.token = Some("wrong".to_owned().into());
    })
    .await;
    Api::<Namespace>::all(mixed).list(&ListParams::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_authority_is_refused() {
    let server = ApiServer::builder().build().unwrap();
    let (own, other) =
        (server.serve_https(LOOPBACK).await.unwrap(), server.serve_https(LOOPBACK).await.unwrap());
    let stranger = client(&own, |user| *user = certified(&other)).await;
    let answer = Api::<Namespace>::all(stranger).list(&ListParams::default()).await;
    // The handshake fails; there is no answer to be had.
    assert!(!matches!(answer, Ok(_) | Err(kube::Error::Api(_))), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_longer_served_cannot_be_reached() {
    let server = ApiServer::builder().build().unwrap();
    let listening = server.serve_http(LOOPBACK).await.unwrap();
    let client = client(&listening, |_| ()).await;
    client.apiserver_version().await.unwrap();
    drop(listening);
    mainstay_testkit::eventually("the socket closes", async || client.apiserver_version().await.err()).await;
}
