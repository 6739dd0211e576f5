//! The served form: who is let in, by which protocols, and how large a request may be.

use crate::seams::{MAPS, map, request, send};
use bytes::Bytes;
use http::{Request, StatusCode, Version};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams};
use kube::config::KubeConfigOptions;
use mainstay_apiserver::{ApiServer, Credentials, Pair, Served};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

async fn https() -> (ApiServer, Served) {
    let server = ApiServer::builder().build().unwrap();
    let served = server.serve_https("127.0.0.1:0".parse().unwrap()).await.unwrap();
    (server, served)
}

/// A TLS client that trusts the server, with or without a certificate of its own.
fn tls(served: &Served, certificate: Option<&Pair>, protocol: &str) -> TlsConnector {
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der(&served.credentials().ca)).unwrap();
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
    let mut config = match certificate {
        None => config.with_no_client_auth(),
        Some(pair) => {
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            config.with_client_auth_cert(vec![der(&pair.certificate)], key).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Sends one request over a connection of its own.
async fn ask(
    served: &Served,
    certificate: Option<&Pair>,
    protocol: &str,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Version, Bytes), Box<dyn std::error::Error>> {
    let socket = TcpStream::connect(served.address()).await?;
    let name = ServerName::try_from("127.0.0.1")?;
    let stream = TokioIo::new(tls(served, certificate, protocol).connect(name, socket).await?);
    let response = if protocol == "h2" {
        let (mut sender, driver) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(driver);
        sender.send_request(request).await?
    } else {
        let (mut sender, driver) = hyper::client::conn::http1::handshake(stream).await?;
        tokio::spawn(driver);
        sender.send_request(request).await?
    };
    let (status, version) = (response.status(), response.version());
    Ok((status, version, response.into_body().collect().await?.to_bytes()))
}

fn get(served: &Served, path: &str, authorization: Option<&str>) -> Request<Full<Bytes>> {
    let mut request = request("GET", &format!("{}{path}", served.url()), &Value::Null);
    if let Some(value) = authorization {
        request.headers_mut().insert("authorization", value.parse().unwrap());
    }
    request.headers_mut().insert("host", served.address().to_string().parse().unwrap());
    request
}

#[tokio::test]
async fn token_or_certificate_lets_in_and_nothing_else_does() {
    let (_server, served) = https().await;
    let credentials = served.credentials();
    let right = format!("Bearer {}", credentials.token);
    let admin = Some(&credentials.admin);
    let cases = [
        ("token", None, Some(right.as_str()), 200),
        ("token in lower case", None, Some(&*right.replace("Bearer", "bearer")), 200),
        ("certificate", admin, None, 200),
        ("both", admin, Some(right.as_str()), 200),
        ("nothing", None, None, 401),
        ("wrong token", None, Some("Bearer wrong"), 401),
        ("empty token", None, Some("Bearer "), 401),
        // As in Kubernetes, nobody looks at the token of who has shown a certificate.
        ("wrong token with the right certificate", admin, Some("Bearer wrong"), 200),
        ("another scheme", None, Some("Basic YTpi"), 401),
    ];
    for (what, certificate, authorization, expected) in cases {
        for protocol in ["http/1.1", "h2"] {
            let request = get(&served, "/api/v1/namespaces", authorization);
            let (status, version, body) = ask(&served, certificate, protocol, request).await.unwrap();
            assert_eq!(status.as_u16(), expected, "{what} over {protocol}");
            assert_eq!(version == Version::HTTP_2, protocol == "h2");
            let body: Value = serde_json::from_slice(&body).unwrap();
            let kind = if expected == 200 { "NamespaceList" } else { "Status" };
            assert_eq!(body["kind"], kind);
        }
    }
}

#[tokio::test]
async fn certificate_of_another_authority_lets_nobody_in() {
    let (_server, served) = https().await;
    let other = Credentials::generate().unwrap();
    let request = get(&served, "/api/v1/namespaces", None);
    assert!(ask(&served, Some(&other.admin), "http/1.1", request).await.is_err());
    // The server's own certificate was not made for clients.
    let request = get(&served, "/api/v1/namespaces", None);
    assert!(ask(&served, Some(&served.credentials().server), "http/1.1", request).await.is_err());
}

#[tokio::test]
async fn health_and_version_are_open_and_nothing_below_them_is_changed() {
    let (_server, served) = https().await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/version"] {
        let (status, _, _) = ask(&served, None, "http/1.1", get(&served, path, None)).await.unwrap();
        assert_eq!(status, 200, "{path}");
    }
    for path in ["/api", "/apis", "/openapi/v3", "/openapi/v2", "/metrics", "/", "/healthz-not"] {
        let (status, _, _) = ask(&served, None, "http/1.1", get(&served, path, None)).await.unwrap();
        assert_eq!(status, 401, "{path}");
    }
}

#[tokio::test]
async fn kubeconfig_is_read_by_kube_and_works() {
    let (server, served) = https().await;
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&served.kubeconfig()).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    assert_eq!(config.cluster_url.to_string(), format!("{}/", served.url()));
    let client = kube::Client::try_from(config).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map: ConfigMap = serde_json::from_value(map("a", "1")).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    assert_eq!(send(&server, "GET", &format!("{MAPS}/a"), Value::Null).await.0, 200);
    let namespaces: Api<Namespace> = Api::all(client);
    assert!(namespaces.list(&ListParams::default()).await.unwrap().items.len() >= 4);
}

#[tokio::test]
async fn plain_http_takes_the_token_only() {
    let server = ApiServer::builder().build().unwrap();
    let served = server.serve_http("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&served.kubeconfig()).unwrap();
    let mut config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(kube::Client::try_from(config.clone()).unwrap());
    namespaces.list(&ListParams::default()).await.unwrap();
    config.auth_info.token = None;
    let namespaces: Api<Namespace> = Api::all(kube::Client::try_from(config).unwrap());
    let refused = namespaces.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 401));
}

/// A config map of exactly so many bytes.
fn sized(length: usize) -> Bytes {
    let mut map = map("large", "");
    let padding = length - map.to_string().len();
    map["data"]["key"] = json!("x".repeat(padding));
    map.to_string().into()
}

#[tokio::test]
async fn body_of_more_than_three_mebibytes_is_refused_in_process_and_over_the_wire() {
    const LIMIT: usize = 3 << 20;
    let (server, served) = https().await;
    let admin = Some(&served.credentials().admin);
    for (length, expected) in [(LIMIT, 422), (LIMIT + 1, 413)] {
        let request = || {
            let post =
                Request::post(format!("{}{MAPS}", served.url())).header("content-type", "application/json");
            let host = served.address().to_string();
            post.header("host", host).body(Full::new(sized(length))).unwrap()
        };
        assert_eq!(server.handle(request()).await.status(), expected, "{length} in process");
        for protocol in ["http/1.1", "h2"] {
            let (status, _, body) = ask(&served, admin, protocol, request()).await.unwrap();
            assert_eq!(status, expected, "{length} over {protocol}");
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["kind"], "Status");
        }
    }
    assert_eq!(send(&server, "GET", &format!("{MAPS}/large"), Value::Null).await.0, 404);
}
