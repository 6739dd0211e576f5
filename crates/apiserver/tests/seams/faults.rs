//! Faults in front of a server, each hitting exactly one request.

use crate::seams::{MAPS, bytes, map, request, send};
use http::request::Parts;
use mainstay_apiserver::{ApiServer, Broken, Fault, FaultLayer, Faults};
use serde_json::Value;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;
use tower::ServiceExt as _;

/// Hits the first request of a method with a fault, and no other.
struct Once {
    method: &'static str,
    fault: Mutex<Option<Fault>>,
}

impl Faults for Once {
    fn decide(&self, request: &Parts) -> Fault {
        if request.method != self.method {
            return Fault::None;
        }
        self.fault.lock().unwrap().take().unwrap_or_default()
    }
}

type Faulty = mainstay_apiserver::Faulty<ApiServer>;

fn with(method: &'static str, fault: Fault) -> (ApiServer, Faulty) {
    let server = ApiServer::builder().build().unwrap();
    let layer = FaultLayer::new(Once { method, fault: Mutex::new(Some(fault)) });
    (server.clone(), layer.around(server))
}

async fn create(service: &Faulty, name: &str) -> Result<(u16, Value), tower::BoxError> {
    let response = service.clone().oneshot(request("POST", MAPS, &map(name, "1"))).await?;
    let (status, body) = bytes(response).await;
    Ok((status.as_u16(), serde_json::from_slice(&body)?))
}

async fn exists(server: &ApiServer, name: &str) -> bool {
    send(server, "GET", &format!("{MAPS}/{name}"), Value::Null).await.0 == 200
}

#[tokio::test]
async fn refusal_hits_one_request_and_changes_nothing() {
    for (code, reason) in [
        (409, "Conflict"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
    ] {
        let (server, faulty) = with("POST", Fault::Refuse(code));
        let (got, status) = create(&faulty, "a").await.unwrap();
        assert_eq!((got, &status["reason"], &status["kind"]), (code, &reason.into(), &"Status".into()));
        assert_eq!(status["code"], code);
        assert!(!exists(&server, "a").await);
        assert_eq!(create(&faulty, "a").await.unwrap().0, 201);
    }
}

#[tokio::test]
async fn retry_after_is_said_in_header_and_details() {
    let (_, faulty) = with("POST", Fault::RetryAfter(429, 7));
    let response = faulty.clone().oneshot(request("POST", MAPS, &map("a", "1"))).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"7".parse().unwrap())
    );
    let (_, body) = bytes(response).await;
    let status: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status["details"]["retryAfterSeconds"], 7);
    assert_eq!(create(&faulty, "a").await.unwrap().0, 201);
}

#[tokio::test]
async fn lost_request_is_not_carried_out() {
    let (server, faulty) = with("POST", Fault::Lost);
    assert!(create(&faulty, "a").await.unwrap_err().is::<Broken>());
    assert!(!exists(&server, "a").await);
    assert_eq!(create(&faulty, "a").await.unwrap().0, 201);
}

#[tokio::test]
async fn request_whose_answer_is_lost_is_carried_out() {
    let (server, faulty) = with("POST", Fault::LostAnswer);
    assert!(create(&faulty, "a").await.unwrap_err().is::<Broken>());
    assert!(exists(&server, "a").await);
    assert_eq!(create(&faulty, "a").await.unwrap().0, 409, "it is there already");
}

#[tokio::test]
async fn lost_answer_reaches_a_kube_client_as_an_error_and_the_write_stays() {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, PostParams};
    let (server, faulty) = with("POST", Fault::LostAnswer);
    let maps: Api<ConfigMap> = Api::default_namespaced(kube::Client::new(faulty, "default"));
    let map: ConfigMap = serde_json::from_value(map("a", "1")).unwrap();
    let error = maps.create(&PostParams::default(), &map).await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    assert!(exists(&server, "a").await);
    assert_eq!(maps.get("a").await.unwrap().data, map.data);
}

#[tokio::test(start_paused = true)]
async fn delayed_answer_comes_by_tokios_clock() {
    let (server, faulty) = with("POST", Fault::Delay(Duration::from_hours(1)));
    let (begin, real) = (Instant::now(), std::time::Instant::now());
    let mut delayed = Box::pin(create(&faulty, "a"));
    assert!(futures::poll!(&mut delayed).is_pending());
    assert!(exists(&server, "a").await, "only the answer is late");
    assert_eq!(delayed.await.unwrap().0, 201);
    assert_eq!(begin.elapsed().as_secs(), 3600);
    assert!(real.elapsed() < Duration::from_mins(1));
    let begin = Instant::now();
    assert_eq!(create(&faulty, "b").await.unwrap().0, 201);
    assert_eq!(begin.elapsed(), Duration::ZERO, "others are not delayed");
}
