//! A list of more objects than a channel has room for stops the operator for good: what fills the cache sends a notice for
//! each object while it holds the cache's lock, and what takes the notices out needs that lock. Roperator has 1024 places;
//! here there is one.

use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube_runtime::watcher::Event;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Family, Mishap, Part, Program, Script, Violation, check, program};
use serde_json::json;
use tokio::sync::{Mutex, mpsc};

use super::by_hand::{Cache, Watched, api, child, failure, name_of, parent, watch};

const ROOM: usize = 1;

/// A Secret for each parent.
fn tokens(fix: bool) -> Program {
    program("tokens", move |seat| async move {
        let cache = Arc::new(Mutex::new(Cache::default()));
        let (notices, mut noticed) = mpsc::channel(ROOM);
        let filling = fill(seat.client(), Arc::clone(&cache), notices, fix);
        let working = async {
            while let Some(name) = noticed.recv().await {
                let parents = cache.lock().await.of(&Watched::parents().kind);
                for parent in parents.iter().filter(|parent| name_of(parent) == name) {
                    while apply_token(&seat.client(), parent).await.is_err() {}
                }
            }
        };
        futures::join!(filling, working);
    })
}

async fn fill(client: Client, cache: Arc<Mutex<Cache>>, notices: mpsc::Sender<String>, fix: bool) {
    let mut events = watch(&client, &Watched::parents());
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        let Ok((kind, event)) = event else { continue };
        let mut held = cache.lock().await;
        let names = match &event {
            Event::InitApply(object) => {
                listed.extend(object.metadata.name.clone());
                Vec::new()
            }
            Event::InitDone => std::mem::take(&mut listed),
            Event::Apply(object) => Vec::from_iter(object.metadata.name.clone()),
            Event::Init | Event::Delete(_) => Vec::new(),
        };
        held.take((kind, event));
        let held = (!fix).then_some(held);
        for name in names {
            // Nobody listens only when the operator has ended.
            let _ = notices.send(name).await;
        }
        drop(held);
    }
}

async fn apply_token(client: &Client, parent: &serde_json::Value) -> Result<(), kube::Error> {
    let secrets = Kind::of::<Secret>();
    let token = child(parent, &secrets, name_of(parent), json!({}));
    let params = PatchParams::apply("tokens").force();
    api(client, &secrets).patch(name_of(parent), &params, &Patch::Apply(&token)).await.map(drop)
}

fn scene(fix: bool) -> Check {
    let nothing = json!({});
    let script = Script::new().create(parent("c", &nothing)).create(parent("d", &nothing));
    check(tokens(fix)).given(parent("a", &nothing)).given(parent("b", &nothing)).script(script)
}

#[test]
fn deadlock_after_a_relist_is_caught() {
    let report = scene(false).every_lost_event().report();
    let found = failure(&report, Part::Each(Family::Watches));
    assert!(
        matches!(found.faults.0[..], [fault] if matches!(fault.mishap, Mishap::Expire | Mishap::Miss)),
        "{}",
        found.story
    );
    assert!(
        matches!(&found.violations[..], [Violation::EndState { differences }]
        if matches!(&differences[..], [one] if one.contains("secrets default/") && one.contains("missing"))),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_passes_everything() {
    scene(true).every_fault().seeds(10).run();
}
