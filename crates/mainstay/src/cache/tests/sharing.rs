//! Users of one kind share its watch, its objects and our own writes.

use mainstay_apiserver::Delivery;
use serde_json::{Value, json};

use super::world::{MAPS, World, map, maps, scope};
use crate::cache::own::still_exists;
use crate::cache::{Change, KindState, Object, Options, Prune, Selector, WatchScope};
use crate::kind::{Key, Kind, Scope};

fn key(name: &str) -> Key {
    Key::namespaced("default", name)
}

#[tokio::test(start_paused = true)]
async fn first_user_starts_the_watch_and_the_last_one_ends_it() {
    let world = World::new();
    world.create(&["a"]).await;
    world.server().start().await;
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let first = world.watch().await;
    let second = world.watch().await;
    assert_eq!((world.report().users, world.weather.requests_with("configmaps")), (2, 1));
    drop(first);
    assert_eq!(world.cached(), "a=1");
    drop(second);
    assert_eq!((world.cached().as_str(), world.caches.reports().len()), ("", 0));
    assert_eq!(world.caches.state(&maps()), None);
    world.until("the task's end", |_| alive() == before).await;
    let again = world.watch().await;
    assert_eq!((world.cached().as_str(), again.state()), ("a=1", KindState::Live));
}

#[tokio::test(start_paused = true)]
async fn own_writes_are_seen_at_once_and_their_echo_wakes_nobody() {
    let world = World::new();
    let _watch = world.watch().await;
    world.weather.held.send_replace(true);
    let created = world.send("POST", MAPS, map("a", "1")).await;
    assert!(matches!(world.caches.own_write(&maps(), &created), Ok(Change::Added { .. })));
    let written = world.set("a", "2").await;
    assert!(matches!(world.caches.own_write(&maps(), &written), Ok(Change::Updated { .. })));
    assert_eq!(world.cached(), "a=2");
    assert!(!world.caches.get(&maps(), &key("a")).unwrap().json().contains("managedFields"));
    world.create(&["b"]).await;
    world.weather.held.send_replace(false);
    world.until_cached("a=2 b=1").await;
    assert_eq!(world.told(), ["b added"]);
    world.set("a", "3").await;
    world.until_cached("a=3 b=1").await;
    assert_eq!(world.told(), ["a updated"], "what others do is told");
}

#[tokio::test(start_paused = true)]
async fn own_deletion_is_seen_at_once_and_older_events_bring_nothing_back() {
    let world = World::new();
    world.create(&["a"]).await;
    let _watch = world.watch().await;
    world.told();
    world.weather.held.send_replace(true);
    world.set("a", "2").await;
    let held = world.caches.get(&maps(), &key("a")).unwrap();
    let answer = world.delete("a").await;
    assert!(matches!(
        world.caches.begin_write(&maps(), &key("a")).deleted(&held, &answer),
        Ok(Change::Deleted { .. })
    ));
    world.create(&["b"]).await;
    world.weather.held.send_replace(false);
    world.until_cached("b=1").await;
    assert_eq!(world.told(), ["b added"]);
    world.create(&["a"]).await;
    world.until_cached("a=1 b=1").await;
}

#[tokio::test(start_paused = true)]
async fn event_that_is_faster_than_the_answer_goes_to_the_writer() {
    let world = World::new();
    world.create(&["a"]).await;
    let _watch = world.watch().await;
    world.told();
    let write = world.caches.begin_write(&maps(), &key("a"));
    let answer = world.set("a", "2").await;
    world.until_cached("a=2").await;
    world.set("a", "3").await;
    world.until_cached("a=3").await;
    assert_eq!(world.told(), Vec::<String>::new(), "while the answer is on its way");
    let Ok(Change::Updated { new, .. }) = write.written(&answer) else { panic!() };
    assert_eq!(new.field("/data/key"), Some(json!("2")));
    assert_eq!(world.told(), ["a updated"], "only what others did");
    assert_eq!(world.cached(), "a=3");
    let object = world.caches.get(&maps(), &key("a")).unwrap();
    let write = world.caches.begin_write(&maps(), &key("a"));
    let answer = world.delete("a").await;
    world.until_cached("").await;
    assert!(matches!(write.deleted(&object, &answer), Ok(Change::Deleted { .. })));
    assert_eq!(world.told(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn write_that_never_was_answered_hides_nothing() {
    let world = World::new();
    let _watch = world.watch().await;
    let first = world.caches.begin_write(&maps(), &key("a"));
    let second = world.caches.begin_write(&maps(), &key("a"));
    world.create(&["a", "b"]).await;
    world.until_cached("a=1 b=1").await;
    assert_eq!(world.told(), ["b added"]);
    drop(first);
    assert_eq!(world.told(), Vec::<String>::new(), "another write is still under way");
    drop(second);
    assert_eq!(world.told(), ["a added"]);
}

#[tokio::test(start_paused = true)]
async fn object_that_finalizers_hold_is_marked_not_gone() {
    let world = World::new();
    let mut held = map("a", "1");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.send("POST", MAPS, held).await;
    let _watch = world.watch().await;
    let object = world.caches.get(&maps(), &key("a")).unwrap();
    let answer = world.delete("a").await;
    assert!(matches!(
        world.caches.begin_write(&maps(), &key("a")).deleted(&object, &answer),
        Ok(Change::Updated { .. })
    ));
    assert!(world.caches.get(&maps(), &key("a")).unwrap().is_deleting());
    world.send("PATCH", &format!("{MAPS}/a"), json!({"metadata": {"finalizers": null}})).await;
    world.until_cached("").await;
    assert_eq!(
        world.caches.begin_write(&maps(), &key("a")).gone(&object),
        Change::Nothing,
        "we know that it is gone"
    );
}

#[test]
fn answer_with_an_object_that_nothing_holds_means_that_it_is_gone() {
    let exists = |metadata: Value| {
        let answer = json!({"kind": "Pod", "metadata": metadata}).to_string();
        still_exists(answer.as_bytes()).unwrap()
    };
    let time = "2024-01-01T00:00:00Z";
    assert!(exists(json!({"deletionTimestamp": time, "deletionGracePeriodSeconds": 30})));
    assert!(exists(json!({"deletionTimestamp": time, "finalizers": ["x"]})));
    assert!(!exists(json!({"deletionTimestamp": time, "deletionGracePeriodSeconds": 0})));
    assert!(!exists(json!({})));
    let namespace = |spec: &str, kind: &str| {
        let answer =
            format!(r#"{{"kind":"{kind}","metadata":{{"deletionTimestamp":"{time}"}},"spec":{spec}}}"#);
        still_exists(answer.as_bytes()).unwrap()
    };
    assert!(namespace(r#"{"finalizers":["kubernetes"]}"#, "Namespace"), "it terminates");
    assert!(!namespace(r#"{"finalizers":[]}"#, "Namespace"));
    assert!(!namespace(r#"{"finalizers":7}"#, "Shop"), "another kind's field of that name");
    assert!(!still_exists(br#"{"kind":"Status","status":"Success"}"#).unwrap());
    assert!(still_exists(b"<html>").is_err());
}

#[tokio::test(start_paused = true)]
async fn own_write_that_leaves_the_scope_leaves_the_cache() {
    let world = World::new();
    world.create(&["a", "b"]).await;
    let _watch = world.watch().await;
    world.weather.held.send_replace(true);
    world.set("a", "2").await;
    let unlabel = json!({"metadata": {"labels": null}});
    let answer = world.send("PATCH", &format!("{MAPS}/a"), unlabel).await;
    assert!(matches!(world.caches.own_write(&maps(), &answer), Ok(Change::Deleted { .. })));
    world.told();
    world.weather.held.send_replace(false);
    world.set("b", "2").await;
    world.until_cached("b=2").await;
    assert_eq!(world.told(), ["b updated"]);
    world.send("PATCH", &format!("{MAPS}/a"), json!({"metadata": {"labels": {"test": "yes"}}})).await;
    world.until_cached("a=2 b=2").await;
}

#[tokio::test(start_paused = true)]
async fn wider_user_gets_more_and_the_first_one_loses_nothing() {
    let world = World::new();
    world.create(&["a", "b"]).await;
    let prune = Prune::new(["/data"]).unwrap();
    let narrow = scope().named("a");
    let first = world.caches.watch(&maps(), narrow.clone(), Options { prune, ..Options::default() });
    first.synced().await;
    assert_eq!(world.cached(), "a=?");
    world.told();
    let same = world.caches.watch(
        &maps(),
        narrow,
        Options { prune: Prune::new(["/data"]).unwrap(), ..Options::default() },
    );
    assert!(same.is_synced());
    let second = world.caches.watch(&maps(), scope(), Options::default());
    assert!(!second.is_synced() && first.is_synced());
    second.synced().await;
    assert_eq!(world.cached(), "a=1 b=1");
    assert_eq!(world.told(), ["b added"]);
    assert_eq!(world.report().scope, scope());
    world.set("b", "2").await;
    world.until_cached("a=1 b=2").await;
}

#[tokio::test(start_paused = true)]
async fn scopes_of_namespace_and_labels_are_the_servers() {
    let world = World::new();
    world.create(&["a"]).await;
    let scope = WatchScope::namespace("kube-system").labelled(Selector::labels([("test", "yes")]));
    let watch = world.caches.watch(&maps(), scope, Options::default());
    watch.synced().await;
    assert_eq!(world.cached(), "");
    world.send("POST", "/api/v1/namespaces/kube-system/configmaps", map("b", "1")).await;
    world.until_cached("b=1").await;
}

#[tokio::test(start_paused = true)]
async fn metadata_only_kinds_hold_no_more_whoever_says_more() {
    let world = World::new();
    world.create(&["a"]).await;
    let options = Options { metadata_only: true, ..Options::default() };
    let watch = world.caches.watch(&maps(), scope(), options);
    watch.synced().await;
    let answer = world.send("POST", MAPS, map("b", "1")).await;
    world.caches.own_write(&maps(), &answer).unwrap();
    for name in ["a", "b"] {
        let value = world.caches.get(&maps(), &key(name)).unwrap().value();
        let fields: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["apiVersion", "kind", "metadata"]);
        assert_eq!((&value["apiVersion"], &value["kind"]), (&json!("v1"), &json!("ConfigMap")));
    }
}

fn things() -> Kind {
    Kind::new("example.com/v1", "Thing", "things", Scope::Namespaced)
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async fn define_things(world: &World) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
    world.send("POST", DEFINITIONS, definition).await;
}

async fn create_thing(world: &World, name: &str) {
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}});
    let path = "/apis/example.com/v1/namespaces/default/things";
    world.send("POST", path, thing).await;
}

#[tokio::test(start_paused = true)]
async fn missing_kind_is_taken_up_when_it_comes_and_its_end_is_told() {
    let world = World::new();
    let watch = world.caches.watch(&things(), WatchScope::all(), Options::default());
    assert_eq!(watch.state_after(&KindState::Starting).await, KindState::Missing);
    assert!(!watch.is_synced());
    define_things(&world).await;
    watch.synced().await;
    create_thing(&world, "a").await;
    world.until("a", |world| world.report().objects == 1).await;
    assert_eq!(world.told(), ["a added"]);
    world.send("DELETE", &format!("{DEFINITIONS}/things.example.com"), Value::Null).await;
    world.until("the end", |_| watch.state() == KindState::Missing).await;
    assert_eq!((world.told().len(), world.report().objects, watch.is_synced()), (1, 0, false));
    define_things(&world).await;
    watch.synced().await;
    create_thing(&world, "b").await;
    world.until("b", |world| world.report().objects == 1).await;
}

#[tokio::test(start_paused = true)]
async fn kind_that_is_gone_takes_its_objects_along_but_one_404_does_not() {
    use mainstay_apiserver::Fault;
    let world = World::new();
    world.create(&["a"]).await;
    let watch = world.watch().await;
    world.told();
    let mut refusals = 1;
    world.weather.on_request(move |_| {
        let refused = refusals > 0;
        refusals -= i32::from(refused);
        if refused { Fault::Refuse(404) } else { Fault::None }
    });
    world.weather.on_event("ADDED b", Delivery::Close);
    world.create(&["b"]).await;
    world.until_cached("a=1 b=1").await;
    assert_eq!((world.told(), world.report().lists), (vec!["b added".to_owned()], 1));
    world.weather.on_request(|_| Fault::Refuse(404));
    world.weather.on_event("ADDED c", Delivery::Close);
    world.create(&["c"]).await;
    world.until("the end", |_| watch.state() == KindState::Missing).await;
    assert_eq!(world.told(), ["a gone with its kind", "b gone with its kind"]);
    assert_eq!(world.cached(), "");
    world.weather.calm();
    watch.synced().await;
    assert_eq!(world.cached(), "a=1 b=1 c=1");
}

#[tokio::test(start_paused = true)]
async fn children_are_found_by_their_owner() {
    let world = World::new();
    let owner: Object = {
        let answer = world.send("POST", MAPS, map("owner", "1")).await;
        Object::read(&maps(), &answer).unwrap()
    };
    let mut child = map("child", "1");
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(), "controller": true}]);
    world.send("POST", MAPS, child).await;
    let _watch = world.watch().await;
    let children = world.caches.children_of(&maps(), owner.uid());
    assert_eq!(children.iter().map(|child| child.key().to_string()).collect::<Vec<_>>(), ["default/child"]);
    assert_eq!(world.caches.children_of(&things(), owner.uid()), []);
}
