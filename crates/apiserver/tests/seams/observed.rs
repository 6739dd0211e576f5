//! An observer sees every change, whoever makes it, and nothing that is none.

use crate::seams::{MAPS, map, send, succeed};
use futures::FutureExt as _;
use mainstay_apiserver::{ApiServer, Change, Observer, SeededIdentities, TokioClock};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A change, as a test looks at it.
#[derive(Clone, Debug)]
struct Seen {
    revision: u64,
    resource: String,
    name: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl Seen {
    /// `resource name what`.
    fn line(&self) -> String {
        let is_marked = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        let what = match (&self.before, &self.after) {
            (None, Some(_)) => "created",
            (Some(before), Some(after)) if is_marked(after) && !is_marked(before) => "marked",
            (Some(_), Some(_)) => "updated",
            (Some(_), None) => "removed",
            (None, None) => "nothing",
        };
        format!("{} {} {what}", self.resource, self.name)
    }
}

/// What was seen, and what the server answered to a read at the same moment.
#[derive(Clone, Default)]
struct Diary {
    seen: Arc<Mutex<Vec<Seen>>>,
    read: Arc<Mutex<Vec<Option<Value>>>>,
    server: Arc<OnceLock<ApiServer>>,
}

impl Diary {
    /// The lines since the last call.
    fn lines(&self) -> Vec<String> {
        self.take().iter().map(Seen::line).collect()
    }

    fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Observer for Diary {
    fn committed(&self, change: &Change<'_>) {
        let read = |json: &[u8]| serde_json::from_slice(json).unwrap();
        let resource = if change.group.is_empty() {
            change.resource.to_owned()
        } else {
            format!("{}.{}", change.resource, change.group)
        };
        self.seen.lock().unwrap().push(Seen {
            revision: change.revision,
            resource,
            name: change.name.to_owned(),
            before: change.before.map(read),
            after: change.after.map(read),
        });
        if let Some(server) = self.server.get()
            && change.resource == "configmaps"
        {
            let path = format!("/api/v1/namespaces/{}/configmaps/{}", change.namespace, change.name);
            // Not to wait is what an observer is told to do, so an answer has to be there at once.
            let (code, object) = send(server, "GET", &path, Value::Null).now_or_never().unwrap();
            self.read.lock().unwrap().push((code == 200).then_some(object));
        }
    }
}

/// A server that has made what every cluster has, and what it is seen to do from then on.
async fn observed() -> (ApiServer, Diary) {
    let diary = Diary::default();
    let clock = TokioClock::starting_at("2001-01-01T00:00:00Z".parse().unwrap());
    let builder = ApiServer::builder().clock(clock).identities(SeededIdentities::new(7));
    let server = builder.observer(diary.clone()).build().unwrap();
    succeed(&server, "GET", MAPS, Value::Null).await;
    assert!(!diary.take().is_empty(), "what every cluster has is made by the server itself");
    (server, diary)
}

/// Lets the server's own controllers do what they have to. The clock is paused, so this waits for nobody.
async fn rest() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}

fn owned(name: &str, owner: &Value) -> Value {
    let mut child = map(name, "1");
    let (owner, uid) = (&owner["metadata"]["name"], &owner["metadata"]["uid"]);
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": true,
    }]);
    child
}

#[tokio::test(start_paused = true)]
async fn creation_update_and_deletion_are_seen_with_before_and_after() {
    let (server, diary) = observed().await;
    succeed(&server, "POST", MAPS, map("a", "1")).await;
    succeed(&server, "PATCH", &format!("{MAPS}/a"), json!({"data": {"key": "2"}})).await;
    succeed(&server, "DELETE", &format!("{MAPS}/a"), Value::Null).await;
    let seen = diary.take();
    let values = |object: &Option<Value>| object.as_ref().map(|object| object["data"]["key"].clone());
    let values: Vec<_> = seen.iter().map(|seen| (values(&seen.before), values(&seen.after))).collect();
    let (one, two) = (Some(json!("1")), Some(json!("2")));
    assert_eq!(values, [(None, one.clone()), (one, two.clone()), (two, None)]);
    // What is the same in all objects of a collection is not in them.
    let after = seen[0].after.as_ref().unwrap();
    assert_eq!((after.get("apiVersion"), after.get("kind")), (None, None));
    assert_eq!(after["metadata"]["resourceVersion"], seen[0].revision.to_string());
}

#[tokio::test(start_paused = true)]
async fn changes_are_seen_in_the_order_of_revisions_and_none_is_left_out() {
    let (server, diary) = observed().await;
    let before = server.revision();
    for name in ["a", "b", "c"] {
        let made = succeed(&server, "POST", MAPS, map(name, "1")).await;
        succeed(&server, "POST", MAPS, owned(&format!("{name}-child"), &made)).await;
        succeed(&server, "DELETE", &format!("{MAPS}/{name}"), Value::Null).await;
    }
    rest().await;
    let revisions: Vec<u64> = diary.take().iter().map(|seen| seen.revision).collect();
    let expected: Vec<u64> = (before + 1..=server.revision()).collect();
    assert_eq!(revisions, expected);
    assert_eq!(revisions.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn mark_for_deletion_is_an_update_and_the_last_finalizer_a_removal() {
    let (server, diary) = observed().await;
    let mut held = map("a", "1");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    succeed(&server, "POST", MAPS, held).await;
    succeed(&server, "DELETE", &format!("{MAPS}/a"), Value::Null).await;
    assert_eq!(diary.lines(), ["configmaps a created", "configmaps a marked"]);
    succeed(&server, "PATCH", &format!("{MAPS}/a"), json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(diary.lines(), ["configmaps a removed"]);
}

#[tokio::test(start_paused = true)]
async fn garbage_collection_is_seen() {
    let (server, diary) = observed().await;
    let owner = succeed(&server, "POST", MAPS, map("owner", "1")).await;
    succeed(&server, "POST", MAPS, owned("child", &owner)).await;
    diary.take();
    succeed(&server, "DELETE", &format!("{MAPS}/owner"), json!({"propagationPolicy": "Foreground"})).await;
    rest().await;
    let expected = ["configmaps owner marked", "configmaps child removed", "configmaps owner removed"];
    assert_eq!(diary.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn work_of_the_servers_own_controllers_is_seen() {
    let (server, diary) = observed().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    succeed(&server, "POST", "/api/v1/namespaces", namespace).await;
    rest().await;
    let made = diary.lines();
    let expected =
        ["namespaces shop created", "serviceaccounts default created", "configmaps kube-root-ca.crt created"];
    assert!(expected.iter().all(|line| made.contains(&(*line).to_owned())), "{made:?}");
    succeed(&server, "DELETE", "/api/v1/namespaces/shop", Value::Null).await;
    rest().await;
    let ended = diary.lines();
    assert_eq!(ended.first().map(String::as_str), Some("namespaces shop marked"));
    assert!(ended.contains(&"serviceaccounts default removed".to_owned()), "{ended:?}");
    assert_eq!(ended.last().map(String::as_str), Some("namespaces shop removed"));
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_is_not_seen() {
    let (server, diary) = observed().await;
    succeed(&server, "POST", MAPS, map("a", "1")).await;
    let dry = format!("{MAPS}/a?dryRun=All");
    let at = server.revision();
    diary.take();
    // The same once more.
    succeed(&server, "PATCH", &format!("{MAPS}/a"), json!({"data": {"key": "1"}})).await;
    succeed(&server, "PUT", &format!("{MAPS}/a"), map("a", "1")).await;
    // Dry runs.
    succeed(&server, "POST", &format!("{MAPS}?dryRun=All"), map("b", "1")).await;
    succeed(&server, "PATCH", &dry, json!({"data": {"key": "2"}})).await;
    succeed(&server, "DELETE", &dry, Value::Null).await;
    // Refusals: it is there, it is invalid, its state is another, it is not there.
    let mut stale = map("a", "2");
    stale["metadata"]["resourceVersion"] = json!("1");
    let refusals = [
        ("POST", MAPS.to_owned(), map("a", "1"), 409),
        ("POST", MAPS.to_owned(), map("Not_A_Name", "1"), 422),
        ("PUT", format!("{MAPS}/a"), stale, 409),
        ("DELETE", format!("{MAPS}/nobody"), Value::Null, 404),
        ("DELETE", format!("{MAPS}/a"), json!({"preconditions": {"uid": "another"}}), 409),
    ];
    for (method, path, body, expected) in refusals {
        assert_eq!(send(&server, method, &path, body).await.0, expected, "{method} {path}");
    }
    rest().await;
    assert_eq!(diary.lines(), Vec::<String>::new());
    assert_eq!(server.revision(), at);
    // And it still looks.
    succeed(&server, "PATCH", &format!("{MAPS}/a"), json!({"data": {"key": "2"}})).await;
    assert_eq!(diary.lines(), ["configmaps a updated"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_seen_can_already_be_read() {
    let (server, diary) = observed().await;
    assert!(diary.server.set(server.clone()).is_ok());
    succeed(&server, "POST", MAPS, map("a", "1")).await;
    succeed(&server, "PATCH", &format!("{MAPS}/a"), json!({"data": {"key": "2"}})).await;
    succeed(&server, "DELETE", &format!("{MAPS}/a"), Value::Null).await;
    let (seen, read) = (diary.take(), diary.read.lock().unwrap().clone());
    assert_eq!(read.len(), 3);
    for (seen, read) in seen.iter().zip(read) {
        let mut read = read;
        if let Some(read) = read.as_mut().and_then(Value::as_object_mut) {
            read.remove("apiVersion");
            read.remove("kind");
        }
        assert_eq!(read, seen.after, "{}", seen.line());
    }
}
