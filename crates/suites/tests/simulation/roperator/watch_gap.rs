//! A child that is deleted while the watch is down is missed by nobody. When roperator lists a kind again it puts the new
//! objects in the place of the old ones, and looks at the parents of those that are there; what is no longer there has
//! no parent that could be looked at. To compare with what was there before is not enough, as a child can come and go
//! within the gap: after each list all parents have to be looked at.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::{StreamExt as _, select_all};
use k8s_openapi::api::core::v1::Secret;
use kube::api::DynamicObject;
use kube_runtime::watcher::Event;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Family, Mishap, Part, Program, Script, Violation, check, program};
use serde_json::json;
use tokio::time::timeout;

use super::by_hand::{Cache, Told, Watched, carry_out, child, failure, name_of, parent, plan, uid_of, watch};

/// A Secret for each parent.
fn tokens(fix: bool) -> Program {
    program("tokens", move |seat| async move {
        let (client, secrets) = (seat.client(), Kind::of::<Secret>());
        let watched = [Watched::parents(), Watched::all(&secrets)];
        let mut events = select_all(watched.iter().map(|watched| watch(&client, watched)));
        let mut cache = Cache::default();
        let mut due = BTreeSet::new();
        loop {
            // What is due still has failed before.
            let patience = Duration::from_secs(if due.is_empty() || !cache.is_full(2) { 3600 } else { 5 });
            if let Ok(Some(Ok(told))) = timeout(patience, events.next()).await {
                due.extend(parent_of(&told));
                let is_listed_anew = matches!(told.1, Event::InitDone);
                cache.take(told);
                if fix && is_listed_anew {
                    due.extend(cache.of(&Watched::parents().kind).iter().filter_map(uid_of));
                }
            }
            if !cache.is_full(2) {
                continue;
            }
            for parent in cache.of(&Watched::parents().kind) {
                let Some(uid) = uid_of(&parent).filter(|uid| due.remove(uid)) else { continue };
                let token = child(&parent, &secrets, name_of(&parent), json!({}));
                for write in plan(&[token], &cache.children_of(&parent), |_, _| true) {
                    if carry_out(&client, &write).await.is_err() {
                        due.insert(uid.clone());
                    }
                }
            }
        }
    })
}

/// The uid of the parent that an event makes the operator look at.
fn parent_of((kind, event): &Told) -> Option<String> {
    let (Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) = event else {
        return None;
    };
    let owner =
        |object: &DynamicObject| Some(object.metadata.owner_references.as_ref()?.first()?.uid.clone());
    if *kind == Watched::parents().kind { object.metadata.uid.clone() } else { owner(object) }
}

fn scene(fix: bool) -> Check {
    let script = Script::new().create(parent("door", &json!({}))).delete(&Kind::of::<Secret>(), "door");
    check(tokens(fix)).script(script)
}

#[test]
fn child_that_nobody_misses_is_caught() {
    let report = scene(false).every_lost_event().report();
    let found = failure(&report, Part::Each(Family::Watches));
    assert!(
        matches!(found.faults.0[..], [fault] if matches!(fault.mishap, Mishap::Expire | Mishap::Miss)),
        "{}",
        found.story
    );
    assert!(
        matches!(&found.violations[..], [Violation::SecondPass { writes }, Violation::EndState { differences }]
        if writes == &["secrets default/door: created"] && differences == &["secrets default/door: missing"]),
        "{}",
        found.story
    );
}

#[test]
fn the_corrected_one_passes_everything() {
    scene(true).every_fault().seeds(10).run();
}
