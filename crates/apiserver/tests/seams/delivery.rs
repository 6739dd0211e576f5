//! What a `WatchDelivery` does to the events of one watch, and to no other.

use crate::seams::{Events, MAPS, map, now, succeed, watch_path};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mainstay_apiserver::{ApiServer, Delivery, WatchDelivery, WatchEvent, WatchInfo};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Does to events what the test says, by the name of their object.
#[derive(Clone, Default)]
struct Script {
    /// `MODIFIED a` by what becomes of it.
    verdicts: Arc<Mutex<HashMap<String, Delivery>>>,
    seen: Arc<Mutex<Vec<String>>>,
    /// Events wait while this is true.
    held: Arc<watch::Sender<bool>>,
}

impl WatchDelivery for Script {
    fn deliver<'a>(&'a self, watch: &'a WatchInfo, event: &'a WatchEvent) -> BoxFuture<'a, Delivery> {
        async move {
            if watch.resource != "configmaps" || event.name == "kube-root-ca.crt" {
                return Delivery::Send;
            }
            self.seen.lock().unwrap().push(format!("{} {} {}", watch.user_agent, event.kind, event.name));
            if watch.user_agent != "undisturbed" {
                let mut held = self.held.subscribe();
                held.wait_for(|held| !held).await.unwrap();
                let verdicts = self.verdicts.lock().unwrap();
                return verdicts
                    .get(&format!("{} {}", event.kind, event.name))
                    .copied()
                    .unwrap_or(Delivery::Send);
            }
            Delivery::Send
        }
        .boxed()
    }
}

fn server() -> (ApiServer, Script) {
    let script = Script::default();
    (ApiServer::builder().watch_delivery(script.clone()).build().unwrap(), script)
}

impl Script {
    fn on(&self, event: &str, delivery: Delivery) {
        self.verdicts.lock().unwrap().insert(event.to_owned(), delivery);
    }
}

async fn write(server: &ApiServer, names: &[&str]) {
    for name in names {
        succeed(server, "POST", MAPS, map(name, "1")).await;
    }
}

#[tokio::test]
async fn held_watch_shows_nothing_until_it_is_let_go_and_then_everything_in_order() {
    let (server, script) = server();
    let mut events = Events::of(&server, &watch_path("")).await;
    script.held.send_replace(true);
    write(&server, &["a", "b"]).await;
    assert_eq!(events.line_now(), None);
    succeed(&server, "PATCH", &format!("{MAPS}/a"), serde_json::json!({"data": {"key": "2"}})).await;
    assert_eq!(events.line_now(), None);
    script.held.send_replace(false);
    assert_eq!(events.line().await, "ADDED a=1");
    assert_eq!(events.line().await, "ADDED b=1");
    assert_eq!(events.line().await, "MODIFIED a=2");
}

#[tokio::test]
async fn skipped_event_is_never_seen_and_repeated_one_twice() {
    let (server, script) = server();
    script.on("ADDED a", Delivery::Skip);
    script.on("ADDED b", Delivery::Repeat);
    let mut events = Events::of(&server, &watch_path("")).await;
    write(&server, &["a", "b", "c"]).await;
    for expected in ["ADDED b=1", "ADDED b=1", "ADDED c=1"] {
        assert_eq!(events.line().await, expected);
    }
    assert_eq!(events.line_now(), None);
}

#[tokio::test]
async fn closed_watch_ends_without_the_event_and_can_resume_before_it() {
    let (server, script) = server();
    script.on("ADDED b", Delivery::Close);
    let from = now(&server);
    let mut events = Events::of(&server, &watch_path(&from)).await;
    write(&server, &["a", "b", "c"]).await;
    let added = events.next().await.unwrap();
    assert_eq!(events.line().await, "(end)");
    script.on("ADDED b", Delivery::Send);
    let version = added["object"]["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events = Events::of(&server, &watch_path(&format!("&resourceVersion={version}"))).await;
    assert_eq!(events.line().await, "ADDED b=1");
    assert_eq!(events.line().await, "ADDED c=1");
}

#[tokio::test]
async fn expired_watch_ends_with_gone() {
    let (server, script) = server();
    script.on("ADDED b", Delivery::Expire);
    let mut events = Events::of(&server, &watch_path("")).await;
    write(&server, &["a", "b", "c"]).await;
    assert_eq!(events.line().await, "ADDED a=1");
    assert_eq!(events.line().await, "ERROR 410 Expired");
    assert_eq!(events.line().await, "(end)");
}

#[tokio::test]
async fn first_state_of_a_watch_is_delivered_like_everything_after_it() {
    let (server, script) = server();
    write(&server, &["a", "b", "c", "d"]).await;
    script.on("ADDED a", Delivery::Skip);
    script.on("ADDED b", Delivery::Repeat);
    script.on("ADDED c", Delivery::Close);
    let mut events = Events::of(&server, &watch_path("")).await;
    for expected in ["ADDED b=1", "ADDED b=1", "(end)"] {
        assert_eq!(events.line().await, expected);
    }
    script.on("ADDED c", Delivery::Expire);
    let streaming = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = Events::of(&server, &watch_path(streaming)).await;
    for expected in ["ADDED b=1", "ADDED b=1", "ERROR 410 Expired", "(end)"] {
        assert_eq!(events.line().await, expected);
    }
}

#[tokio::test]
async fn watch_that_is_held_from_its_first_event_has_begun() {
    let (server, script) = server();
    write(&server, &["a"]).await;
    script.held.send_replace(true);
    // A client whose request is not even answered would take the server for dead.
    let mut events = Events::of(&server, &watch_path("")).now_or_never().expect("the answer's head");
    assert_eq!(events.line_now(), None);
    script.held.send_replace(false);
    assert_eq!(events.line().await, "ADDED a=1");
}

#[tokio::test]
async fn bookmarks_are_delivered_too() {
    let (server, script) = server();
    write(&server, &["a"]).await;
    let streaming = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = Events::of(&server, &watch_path(streaming)).await;
    assert_eq!(events.line().await, "ADDED a=1");
    assert_eq!(events.line().await, "BOOKMARK");
    assert_eq!(script.seen.lock().unwrap().as_slice(), [" ADDED a", " BOOKMARK "]);
}

#[tokio::test]
async fn each_watch_is_decided_for_itself() {
    let (server, script) = server();
    script.on("ADDED a", Delivery::Close);
    let mut disturbed = Events::of(&server, &watch_path("")).await;
    let mut request = crate::seams::request("GET", &watch_path(""), &Value::Null);
    request.headers_mut().insert("user-agent", "undisturbed".parse().unwrap());
    let response = server.handle(request).await;
    let body = http_body_util::BodyExt::into_data_stream(response.into_body());
    let mut undisturbed = Events { body, buffer: Vec::new() };
    write(&server, &["a"]).await;
    assert_eq!(disturbed.line().await, "(end)");
    assert_eq!(undisturbed.line().await, "ADDED a=1");
    let seen = script.seen.lock().unwrap();
    assert_eq!(seen.as_slice(), [" ADDED a", "undisturbed ADDED a"]);
}
