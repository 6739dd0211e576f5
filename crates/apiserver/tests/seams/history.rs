//! How much of the past is kept, and what those are told who need more.

use crate::seams::{Events, MAPS, map, now, send, succeed, watch_path};
use mainstay_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::Duration;

async fn touch(server: &ApiServer, times: usize) {
    for time in 0..times {
        succeed(server, "PATCH", &format!("{MAPS}/a"), json!({"data": {"key": time.to_string()}})).await;
    }
}

async fn with_maps(server: &ApiServer) {
    for name in ["a", "b", "c", "d"] {
        succeed(server, "POST", MAPS, map(name, "1")).await;
    }
}

#[tokio::test]
async fn watch_from_before_what_is_kept_is_gone_in_the_stream() {
    let server = ApiServer::builder().history_events_max(5).build().unwrap();
    with_maps(&server).await;
    let old = now(&server);
    touch(&server, 4).await;
    let mut events = Events::of(&server, &watch_path(&old)).await;
    assert_eq!(events.line().await, "MODIFIED a=0", "four are kept");
    touch(&server, 10).await;
    let mut events = Events::of(&server, &watch_path(&old)).await;
    let error = events.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(error["object"]["reason"], "Expired");
    assert!(
        error["object"]["message"].as_str().unwrap().starts_with("too old resource version: "),
        "{error}"
    );
    assert_eq!(events.line().await, "(end)");
}

#[tokio::test]
async fn watch_that_falls_behind_is_gone_and_one_that_keeps_up_is_not() {
    let server = ApiServer::builder().history_events_max(5).build().unwrap();
    with_maps(&server).await;
    let from = now(&server);
    let mut slow = Events::of(&server, &watch_path(&from)).await;
    let mut quick = Events::of(&server, &watch_path(&from)).await;
    for time in 0..20 {
        touch(&server, 1).await;
        assert_eq!(quick.line().await, "MODIFIED a=0", "{time}");
        succeed(&server, "PATCH", &format!("{MAPS}/a"), json!({"data": {"key": "-"}})).await;
        assert_eq!(quick.line().await, "MODIFIED a=-", "{time}");
    }
    assert_eq!(slow.line().await, "ERROR 410 Expired");
    assert_eq!(slow.line().await, "(end)");
}

#[tokio::test]
async fn watch_of_a_quiet_kind_keeps_up_while_others_change() {
    let server = ApiServer::builder().history_events_max(5).build().unwrap();
    with_maps(&server).await;
    // Nothing of this kind was ever there.
    let mut events = Events::of(&server, "/api/v1/namespaces/default/podtemplates?watch=true").await;
    for _ in 0..20 {
        touch(&server, 1).await;
        assert_eq!(events.line_now(), None);
        succeed(&server, "PATCH", &format!("{MAPS}/a"), json!({"data": {"key": "-"}})).await;
        assert_eq!(events.line_now(), None);
    }
    let template = json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t"}, "template": {
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }});
    succeed(&server, "POST", "/api/v1/namespaces/default/podtemplates", template).await;
    assert_eq!(events.line().await, "ADDED t=");
}

/// The names and the token of a page.
fn page(list: &Value) -> (Vec<&str>, &str) {
    let names = list["items"].as_array().into_iter().flatten();
    let names = names.map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    (names, list["metadata"]["continue"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn paged_list_whose_moment_is_gone_can_go_on_with_the_token_of_the_refusal() {
    let server = ApiServer::builder().history_events_max(5).build().unwrap();
    with_maps(&server).await;
    let first = succeed(&server, "GET", &format!("{MAPS}?limit=2"), Value::Null).await;
    let (names, token) = page(&first);
    assert_eq!(names, ["a", "b"]);
    touch(&server, 2).await;
    succeed(&server, "DELETE", &format!("{MAPS}/c"), Value::Null).await;
    let second = succeed(&server, "GET", &format!("{MAPS}?limit=2&continue={token}"), Value::Null).await;
    assert_eq!(page(&second).0, ["c", "d"], "the moment of the first page is still kept");
    touch(&server, 10).await;
    let (code, gone) = send(&server, "GET", &format!("{MAPS}?limit=2&continue={token}"), Value::Null).await;
    assert_eq!((code, &gone["reason"]), (410, &json!("Expired")));
    let token = gone["metadata"]["continue"].as_str().unwrap();
    let rest = succeed(&server, "GET", &format!("{MAPS}?limit=2&continue={token}"), Value::Null).await;
    assert_eq!(
        page(&rest),
        (vec!["d", "kube-root-ca.crt"], ""),
        "goes on where it was, at the newest moment"
    );
}

#[tokio::test]
async fn compaction_forgets_everything_but_the_present() {
    let server = ApiServer::builder().build().unwrap();
    with_maps(&server).await;
    let old = now(&server);
    let old_list = format!("{MAPS}?resourceVersionMatch=Exact{old}");
    touch(&server, 1).await;
    let first = succeed(&server, "GET", &format!("{MAPS}?limit=2"), Value::Null).await;
    let mut following = Events::of(&server, &watch_path(&now(&server))).await;
    assert_eq!(send(&server, "GET", &old_list, Value::Null).await.0, 200);
    succeed(&server, "PATCH", &format!("{MAPS}/a"), json!({"data": {"key": "-"}})).await;
    assert_eq!(following.line().await, "MODIFIED a=-");
    let newest = now(&server);
    server.compact();
    assert_eq!(Events::of(&server, &watch_path(&old)).await.line().await, "ERROR 410 Expired");
    assert_eq!(send(&server, "GET", &old_list, Value::Null).await.0, 410);
    let (_, token) = page(&first);
    assert_eq!(send(&server, "GET", &format!("{MAPS}?limit=2&continue={token}"), Value::Null).await.0, 410);
    // Whoever is up to date notices nothing.
    let mut resumed = Events::of(&server, &watch_path(&newest)).await;
    assert_eq!(resumed.line_now(), None);
    succeed(&server, "POST", MAPS, map("e", "1")).await;
    assert_eq!(following.line().await, "ADDED e=1");
    assert_eq!(resumed.line().await, "ADDED e=1");
}

#[tokio::test]
async fn history_is_bounded_in_bytes_too() {
    let server = ApiServer::builder().history_bytes_max(10_000).build().unwrap();
    with_maps(&server).await;
    let old = now(&server);
    for letter in ["x", "y", "z"] {
        let large = json!({"data": {"key": letter.repeat(6_000)}});
        succeed(&server, "PATCH", &format!("{MAPS}/a"), large).await;
    }
    assert_eq!(Events::of(&server, &watch_path(&old)).await.line().await, "ERROR 410 Expired");
}

#[tokio::test(start_paused = true)]
async fn lists_of_the_past_expire_after_five_minutes() {
    let server = ApiServer::builder().build().unwrap();
    with_maps(&server).await;
    let first = succeed(&server, "GET", &format!("{MAPS}?limit=2"), Value::Null).await;
    let next = format!("{MAPS}?limit=2&continue={}", page(&first).1);
    let exact = format!("{MAPS}?resourceVersionMatch=Exact{}", now(&server));
    let watched = watch_path(&now(&server));
    // As long as nothing changes, it is the present.
    tokio::time::advance(Duration::from_hours(1)).await;
    assert_eq!(send(&server, "GET", &next, Value::Null).await.0, 200);
    touch(&server, 1).await;
    tokio::time::advance(Duration::from_secs(299)).await;
    for path in [&next, &exact] {
        assert_eq!(send(&server, "GET", path, Value::Null).await.0, 200, "{path}");
    }
    tokio::time::advance(Duration::from_secs(2)).await;
    for path in [&next, &exact] {
        let (code, gone) = send(&server, "GET", path, Value::Null).await;
        assert_eq!((code, &gone["reason"]), (410, &json!("Expired")), "{path}");
    }
    // A watch needs only the events since then, which are kept by number and size.
    assert_eq!(Events::of(&server, &watched).await.line().await, "MODIFIED a=0");
    let present = format!("{MAPS}?resourceVersionMatch=Exact{}", now(&server));
    assert_eq!(send(&server, "GET", &present, Value::Null).await.0, 200);
}

#[tokio::test]
async fn a_forged_token_of_the_future_is_answered() {
    use base64::Engine as _;
    let directory = tempfile::tempdir().unwrap();
    for server in [ApiServer::builder(), ApiServer::builder().directory(directory.path())] {
        let server = server.build().unwrap();
        with_maps(&server).await;
        for revision in [server.revision() + 1, server.revision() + 999_999_999, u64::MAX >> 1] {
            let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": "default/a\0"}).to_string();
            let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token);
            for (method, query) in [("GET", "limit=1&"), ("GET", ""), ("DELETE", "labelSelector=x&")] {
                let path = format!("{MAPS}?{query}continue={token}");
                let sent = send(&server, method, &path, Value::Null);
                let (code, refusal) = tokio::time::timeout(Duration::from_secs(30), sent).await.unwrap();
                assert_eq!((code, &refusal["reason"]), (504, &json!("Timeout")), "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn a_watch_that_is_read_late_misses_nothing() {
    let server = ApiServer::builder().build().unwrap();
    with_maps(&server).await;
    let mut events = Events::of(&server, &watch_path(&now(&server))).await;
    touch(&server, 300).await;
    for time in 0..300 {
        assert_eq!(events.line().await, format!("MODIFIED a={time}"));
    }
    assert_eq!(events.line_now(), None);
    touch(&server, 1).await;
    assert_eq!(events.line().await, "MODIFIED a=0");
}
