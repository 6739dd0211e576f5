//! An error of one watch makes everything wait: roperator sleeps ten seconds after it, with the lock in hand that all the
//! other watches need. All is right in the end, so this is about time: children have to be made soon after their parents.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Part, Program, Report, Script, State, Violation, check, program};
use serde_json::{Value, json};
use tokio::sync::{Mutex, Notify};
use tokio::time::{sleep, timeout};

use super::by_hand::{Cache, Watched, carry_out, child, failure, name_of, parent, plan, watch};

/// A Secret for each parent.
fn tokens(fix: bool) -> Program {
    program("tokens", move |seat| async move {
        let cache = Arc::new(Mutex::new(Cache::default()));
        let changed = Arc::new(Notify::new());
        let secrets = Kind::of::<Secret>();
        let client = seat.client();
        let watching = [Watched::parents(), Watched::all(&secrets)].map(|watched| {
            let (mut events, cache, changed) =
                (watch(&client, &watched), Arc::clone(&cache), Arc::clone(&changed));
            async move {
                while let Some(event) = events.next().await {
                    let mut held = cache.lock().await;
                    match event {
                        Ok(told) => held.take(told),
                        Err(_) if fix => {}
                        Err(_) => sleep(Duration::from_secs(10)).await,
                    }
                    changed.notify_one();
                }
            }
        });
        let working = async {
            let mut patience = Duration::from_hours(24);
            loop {
                // Tried again after a while if it failed.
                let _ = timeout(patience, changed.notified()).await;
                patience = Duration::from_hours(24);
                let cache = cache.lock().await.clone();
                if !cache.is_full(2) {
                    continue;
                }
                for parent in cache.of(&Watched::parents().kind) {
                    let token = child(&parent, &secrets, name_of(&parent), json!({}));
                    for write in plan(&[token], &cache.children_of(&parent), |_, _| true) {
                        if carry_out(&client, &write).await.is_err() {
                            patience = Duration::from_secs(5);
                        }
                    }
                }
            }
        };
        futures::join!(futures::future::join_all(watching), working);
    })
}

fn time_of(object: &Value) -> Timestamp {
    object["metadata"]["creationTimestamp"].as_str().unwrap_or_default().parse().unwrap()
}

/// The server's clock shows seconds, and a watch that has to begin again takes up to two.
fn comes_soon(state: &State) -> Result<(), String> {
    for token in state.of(&Kind::of::<Secret>()) {
        let parent = state.get(&Watched::parents().kind, "default", name_of(token));
        let late = parent.map_or(0, |parent| time_of(token).duration_since(time_of(parent)).as_secs());
        if late > 4 {
            return Err(format!("{} came {late} s after its parent", name_of(token)));
        }
    }
    Ok(())
}

fn scene(fix: bool) -> Check {
    let nothing = json!({});
    let script = Script::new().create(parent("a", &nothing)).at_once().create(parent("b", &nothing));
    check(tokens(fix)).script(script)
}

/// What comes of a watch that expires, at each event.
fn reports(fix: bool) -> impl Iterator<Item = Report> {
    let timely = scene(fix).always("children come soon", comes_soon);
    (1..=4).map(move |event| timely.clone().replay(0, &format!("expire at event {event}")).report())
}

#[test]
fn sleep_is_caught_by_a_property_about_time() {
    let late = reports(false).find(|report| !report.failures.is_empty()).expect("no report of a late child");
    let found = failure(&late, Part::Replay);
    assert!(
        matches!(&found.violations[..], [Violation::Property { why, .. }] if why.ends_with("10 s after its parent")),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_is_in_time_and_passes_everything() {
    reports(true).for_each(|report| assert!(report.failures.is_empty(), "{report}"));
    scene(true).every_fault().seeds(10).run();
}
