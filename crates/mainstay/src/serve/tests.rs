use std::sync::Mutex;

use axum::body::{Body, to_bytes};
use http::Request;
use k8s_openapi::api::core::v1::Service;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{advance, timeout};
use tower::ServiceExt as _;

use super::*;
use crate::Kind;

struct Shop;

impl DebugSource for Shop {
    fn parents(&self, filter: &ParentFilter) -> Value {
        json!({"kind": filter.kind, "namespace": filter.namespace, "limit": filter.limit})
    }

    fn parent(&self, kind: &str, namespace: Option<&str>, name: &str) -> Option<Value> {
        (name == "web").then(|| json!([kind, namespace, name]))
    }
}

fn endpoints(pulse: Pulse, readiness: impl Readiness) -> Endpoints {
    let metrics = Metrics::new("shop", "1.2.3");
    metrics.written(&Kind::of::<Service>(), "create");
    Endpoints::new("shop", "1.2.3", metrics, pulse, readiness)
}

fn quiet() -> Endpoints {
    endpoints(Pulse::new(Duration::from_mins(1)), Vec::<Check>::new)
}

async fn ask(endpoints: &Endpoints, path: &str) -> (u16, String, String) {
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    let response = endpoints.clone().router().oneshot(request).await.unwrap();
    let (status, content) =
        (response.status().as_u16(), response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned());
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, content, String::from_utf8(body.to_vec()).unwrap())
}

async fn check(endpoints: &Endpoints, path: &str, status: u16, body: &str) {
    let (found, _, text) = ask(endpoints, path).await;
    assert_eq!((found, text.as_str()), (status, body), "{path}");
}

#[tokio::test(start_paused = true)]
async fn liveness_follows_the_loop() {
    let pulse = Pulse::new(Duration::from_secs(10));
    let endpoints = endpoints(pulse.clone(), Vec::<Check>::new);
    check(&endpoints, "/livez", 200, "ok\n").await;
    check(&endpoints, "/livez?verbose", 200, "[+]loop ok\nlivez check passed\n").await;
    advance(Duration::from_secs(11)).await;
    let said = "[-]loop failed: the main loop has not ticked for 11.0 s, limit 10.0 s\n";
    check(&endpoints, "/livez", 500, &format!("{said}livez check failed\n")).await;
    check(&endpoints, "/livez/loop", 500, said).await;
    check(&endpoints, "/readyz", 200, "ok\n").await;
    pulse.beat();
    check(&endpoints, "/livez/loop", 200, "ok\n").await;
}

#[tokio::test]
async fn readiness_is_asked_anew_and_names_what_is_missing() {
    let state = Arc::new(Mutex::new(Err("the kind is not served; waiting for its definition".to_owned())));
    let seen = state.clone();
    let readiness = move || vec![("WebApp.example.com/v1".to_owned(), seen.lock().unwrap().clone())];
    let endpoints = endpoints(Pulse::new(Duration::from_mins(1)), readiness);
    let said = "[-]WebApp.example.com/v1 failed: the kind is not served; waiting for its definition\n";
    check(&endpoints, "/readyz", 500, &format!("{said}readyz check failed\n")).await;
    check(&endpoints, "/readyz/WebApp.example.com/v1", 500, said).await;
    check(&endpoints, "/readyz/Pod.v1", 404, "there is no check Pod.v1\n").await;
    check(&endpoints, "/readyz?exclude=WebApp.example.com%2Fv1", 200, "ok\n").await;
    *state.lock().unwrap() = Ok(());
    check(&endpoints, "/readyz/WebApp.example.com/v1", 200, "ok\n").await;
    check(&endpoints, "/readyz", 200, "ok\n").await;
}

#[tokio::test]
async fn metrics_come_with_their_content_type() {
    let (status, content, text) = ask(&quiet(), "/metrics").await;
    assert_eq!(
        (status, content.as_str()),
        (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    assert!(text.contains("mainstay_writes_total{kind=\"Service.v1\",step=\"create\"} 1\n"), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn the_version_is_the_operators_and_the_frameworks() {
    let said =
        format!(r#"{{"mainstay":"{}","operator":"shop","version":"1.2.3"}}"#, env!("CARGO_PKG_VERSION"));
    check(&quiet(), "/version", 200, &said).await;
}

#[tokio::test]
async fn parents_are_filtered_and_found() {
    let endpoints = quiet().with_debug(Shop);
    check(&endpoints, "/debug/parents", 200, r#"{"kind":null,"limit":500,"namespace":null}"#).await;
    let path = "/debug/parents?kind=WebApp.example.com%2Fv1&namespace=shop&limit=2";
    check(&endpoints, path, 200, r#"{"kind":"WebApp.example.com/v1","limit":2,"namespace":"shop"}"#).await;
    check(&endpoints, "/debug/parents?limit=all", 400, "limit is not a number: \"all\"\n").await;
    check(&endpoints, "/debug/parents/WebApp/shop/web", 200, r#"["WebApp","shop","web"]"#).await;
    check(&endpoints, "/debug/parents/WebApp/-/web", 200, r#"["WebApp",null,"web"]"#).await;
    check(&endpoints, "/debug/parents/WebApp/shop/gone", 404, "there is no such parent\n").await;
}

#[tokio::test]
async fn what_is_not_there_is_told_with_what_is() {
    let said = "not found; there are /livez /readyz /metrics /debug/parents /version\n";
    check(&quiet(), "/healthz", 404, said).await;
    check(&quiet(), "/debug/parents", 404, said).await;
}

#[tokio::test]
async fn a_taken_address_is_an_error_that_names_it() {
    let first = Server::bind(([127, 0, 0, 1], 0).into(), quiet()).await.unwrap();
    let error = Server::bind(first.address(), quiet()).await.err().unwrap();
    assert_eq!(error.to_string(), format!("cannot listen on {} for health and metrics", first.address()));
}

#[tokio::test]
async fn shutdown_ends_the_server_although_a_client_holds_its_connection() {
    let server = Server::bind(([127, 0, 0, 1], 0).into(), quiet()).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let mut idle = TcpStream::connect(server.address()).await.unwrap();
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    let running =
        tokio::spawn(server.run_with(async move { drop(stopped.await) }, Duration::from_millis(10)));
    // Half a request: the server waits for the rest of it.
    idle.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    client.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
    stop.send(()).unwrap();
    timeout(Duration::from_mins(1), running).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn silent_clients_keep_nobody_from_asking() {
    let server = Server::bind(([127, 0, 0, 1], 0).into(), quiet()).await.unwrap();
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run_with(async { drop(stopped.await) }, Duration::ZERO));
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS_MAX + 20 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    // Those that gave way to others see it.
    let given_way = timeout(Duration::from_mins(1), silent[0].read(&mut [0; 1])).await.unwrap();
    assert!(given_way.is_err() || given_way.is_ok_and(|read| read == 0));
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn with_a_token_only_health_and_version_are_for_all() {
    let endpoints = quiet().with_debug(Shop).with_token("secret");
    let ask = async |path: &str, authorization: Option<&str>| {
        let mut request = Request::builder().uri(path);
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let request = request.body(Body::empty()).unwrap();
        endpoints.clone().router().oneshot(request).await.unwrap().status().as_u16()
    };
    for path in ["/metrics", "/debug/parents", "/debug/parents/Shop/-/web"] {
        for wrong in [
            None,
            Some("Bearer"),
            Some("Bearer secre"),
            Some("Bearer secrets"),
            Some("Basic secret"),
            Some(""),
        ] {
            assert_eq!(ask(path, wrong).await, 401, "{path} {wrong:?}");
        }
        assert_eq!(ask(path, Some("Bearer secret")).await, 200, "{path}");
    }
    for path in ["/livez", "/readyz", "/version"] {
        assert_eq!(ask(path, None).await, 200, "{path}");
    }
    assert_eq!(ask("/nothing", None).await, 404);
}
