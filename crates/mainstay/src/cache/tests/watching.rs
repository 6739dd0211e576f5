//! Watches through good and bad weather.

use std::time::Duration;

use mainstay_apiserver::{Delivery, Fault};
use tokio::time::Instant;

use super::world::{World, maps, scope};
use crate::cache::{KindState, Options};

fn is_streamed_list(request: &http::request::Parts) -> bool {
    request.uri.query().is_some_and(|query| query.contains("sendInitialEvents"))
}

#[tokio::test(start_paused = true)]
async fn state_and_changes_arrive_over_one_request() {
    let world = World::new();
    world.create(&["a", "b"]).await;
    let watch = world.watch().await;
    assert_eq!((world.cached(), watch.state()), ("a=1 b=1".into(), KindState::Live));
    world.set("a", "2").await;
    world.delete("b").await;
    world.create(&["c"]).await;
    world.until_cached("a=2 c=1").await;
    assert_eq!(world.told(), ["a added", "b added", "a updated", "b deleted", "c added"]);
    assert_eq!(world.weather.requests_with("configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn quiet_watch_is_renewed_without_a_list_and_stays_fresh() {
    let world = World::new();
    let watch = world.watch().await;
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_mins(1)).await;
        let heard_ago = world.report().heard_ago.unwrap();
        assert!(heard_ago <= Duration::from_mins(1), "{heard_ago:?}");
    }
    let report = world.report();
    assert_eq!((report.lists, report.errors, watch.state()), (1, 0, KindState::Live));
    assert!(world.weather.requests_with("resourceVersion=") >= 12);
}

#[tokio::test(start_paused = true)]
async fn cut_watch_resumes_where_it_was() {
    let world = World::new();
    let _watch = world.watch().await;
    world.weather.on_event("ADDED b", Delivery::Close);
    world.create(&["a", "b", "c"]).await;
    world.until_cached("a=1 b=1 c=1").await;
    assert_eq!(world.report().lists, 1);
    assert_eq!(world.told(), ["a added", "b added", "c added"]);
}

#[tokio::test(start_paused = true)]
async fn forgotten_version_is_repaired_by_a_list() {
    let world = World::new();
    world.create(&["a", "b"]).await;
    let _watch = world.watch().await;
    world.told();
    world.weather.on_event("MODIFIED a", Delivery::Expire);
    world.weather.held.send_replace(true);
    world.set("a", "2").await;
    world.delete("b").await;
    world.create(&["c"]).await;
    world.weather.held.send_replace(false);
    world.until_cached("a=2 c=1").await;
    assert_eq!(world.report().lists, 2);
    let mut told = world.told();
    told.sort();
    assert_eq!(told, ["a updated", "b deleted", "c added"]);
}

#[tokio::test(start_paused = true)]
async fn compacted_history_is_repaired_by_a_list() {
    let world = World::new();
    world.create(&["a", "b"]).await;
    let _watch = world.watch().await;
    // While the watch is away, what it missed is forgotten.
    world.weather.on_request(|_| Fault::Lost);
    world.weather.on_event("MODIFIED a", Delivery::Close);
    world.set("a", "2").await;
    world.until("the cut", |world| world.report().errors > 0).await;
    world.delete("b").await;
    world.server().compact();
    assert_eq!(world.cached(), "a=1 b=1", "an error changes nothing");
    world.weather.calm();
    world.until_cached("a=2").await;
    assert_eq!(world.report().lists, 2);
}

#[tokio::test(start_paused = true)]
async fn server_that_does_not_stream_lists_is_read_in_pages() {
    let world = World::new();
    world
        .weather
        .on_request(|request| if is_streamed_list(request) { Fault::Refuse(422) } else { Fault::None });
    let names: Vec<String> = (0..1001).map(|number| format!("m{number:04}")).collect();
    for name in &names {
        world.create(&[name]).await;
    }
    let watch = world.watch().await;
    assert_eq!((world.report().objects, world.report().lists), (1001, 1));
    assert_eq!(world.weather.requests_with("limit=500"), 3);
    world.delete("m0000").await;
    world.until("the deletion", |world| world.report().objects == 1000).await;
    assert_eq!(watch.state(), KindState::Live);
}

#[tokio::test(start_paused = true)]
async fn pages_that_expire_are_begun_again() {
    let world = World::new();
    let mut refused = 0;
    world.weather.on_request(move |request| {
        let query = request.uri.query().unwrap_or_default();
        if query.contains("continue=") && refused < 2 {
            refused += 1;
            return Fault::Refuse(410);
        }
        if is_streamed_list(request) { Fault::Refuse(400) } else { Fault::None }
    });
    for number in 0..501 {
        world.create(&[&format!("m{number:04}")]).await;
    }
    let _watch = world.watch().await;
    assert_eq!(world.report().objects, 501);
    assert_eq!(world.told().len(), 501, "what came twice is told once");
}

#[tokio::test(start_paused = true)]
async fn quiet_watch_is_replaced_when_the_server_still_answers() {
    let world = World::new();
    let watch = world.watch().await;
    world.weather.held.send_replace(true);
    let begun = Instant::now();
    world.create(&["a"]).await;
    world.weather.requests_with("");
    world.until("the question", |world| world.weather.requests_with("limit=1") > 0).await;
    assert_eq!(begun.elapsed().as_secs(), 90);
    world.weather.held.send_replace(false);
    world.until_cached("a=1").await;
    assert_eq!((watch.state(), world.report().lists, world.report().errors), (KindState::Live, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn half_open_connection_is_noticed() {
    let world = World::new();
    let watch = world.watch().await;
    world.weather.held.send_replace(true);
    world.weather.on_request(|_| Fault::Lost);
    let begun = Instant::now();
    let state = watch.state_after(&KindState::Live).await;
    assert!(matches!(state, KindState::Stale { .. }), "{state:?}");
    let seconds = begun.elapsed().as_secs();
    assert!((90..=150).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn server_whose_revision_went_back_is_listed_again() {
    let world = World::new();
    world.create(&["kept", "newer"]).await;
    world.set("kept", "2").await;
    world.set("kept", "3").await;
    let watch = world.watch().await;
    world.told();
    world.weather.on_event("MODIFIED kept", Delivery::Close);
    world.set("kept", "4").await;
    world.replace_server();
    world.create(&["kept", "other"]).await;
    world.until_cached("kept=1 other=1").await;
    let mut told = world.told();
    told.sort();
    assert_eq!(told, ["kept updated", "newer deleted", "other added"]);
    assert_eq!(watch.state(), KindState::Live);
    world.set("kept", "4").await;
    world.until_cached("kept=4 other=1").await;
}

#[tokio::test(start_paused = true)]
async fn broken_server_leaves_the_cache_as_it_is_and_says_so() {
    let world = World::new();
    world.create(&["a"]).await;
    let watch = world.watch().await;
    world.told();
    world.weather.on_request(|_| Fault::Refuse(503));
    world.weather.on_event("ADDED b", Delivery::Close);
    world.create(&["b"]).await;
    let state = watch.state_after(&KindState::Live).await;
    let KindState::Stale { since, error } = &state else { panic!("{state:?}") };
    assert!(error.contains("503"), "{error}");
    tokio::time::sleep(Duration::from_mins(10)).await;
    let KindState::Stale { since: still, .. } = watch.state() else { panic!("{watch:?}") };
    assert_eq!(*since, still, "since it began");
    let errors = world.report().errors;
    assert!((20..60).contains(&errors), "{errors} attempts in ten minutes");
    assert_eq!((world.cached(), world.told(), watch.is_synced()), ("a=1".into(), vec![], true));
    world.weather.calm();
    world.until_cached("a=1 b=1").await;
    assert_eq!(watch.state(), KindState::Live);
}

#[tokio::test(start_paused = true)]
async fn server_is_left_alone_as_long_as_it_asks() {
    let world = World::new();
    let begun = Instant::now();
    let mut first = true;
    world.weather.on_request(move |_| {
        if std::mem::take(&mut first) { Fault::RetryAfter(429, 90) } else { Fault::None }
    });
    let _watch = world.watch().await;
    assert_eq!(begun.elapsed().as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn missing_permission_is_named_and_taken_up_when_it_comes() {
    let world = World::new();
    world.create(&["a"]).await;
    world.weather.on_request(|_| Fault::Refuse(403));
    let watch = world.caches.watch(&maps(), scope(), Options::default());
    let state = watch.state_after(&KindState::Starting).await;
    let KindState::Forbidden { verb, kind, namespace, message } = state else { panic!("{state:?}") };
    assert_eq!((verb, kind, namespace), ("watch", maps(), None));
    assert!(message.contains("refused"), "{message}");
    assert!(!watch.is_synced());
    world.weather.calm();
    watch.synced().await;
    assert_eq!(world.cached(), "a=1");
    // Lost again, it takes nothing away.
    world.weather.on_request(|_| Fault::Refuse(403));
    world.weather.on_event("ADDED b", Delivery::Close);
    world.create(&["b"]).await;
    assert!(matches!(watch.state_after(&KindState::Live).await, KindState::Forbidden { .. }));
    assert_eq!(world.cached(), "a=1");
}
