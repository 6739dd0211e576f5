//! The status is written before what it tells of is done. Roperator puts the status first and the children after it, so
//! whoever reads it, or a crash between the two, finds a promise.

use k8s_openapi::api::core::v1::Secret;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Part, Program, Script, State, Violation, check};
use serde_json::json;

use super::by_hand::{Watched, Write, child, failure, name_of, operator, plan};
use super::shops::{definition, kind, shop};

/// A key for each shop, and the word that it has one.
fn keys(fix: bool) -> Program {
    let secrets = Kind::of::<Secret>();
    operator("keys", vec![Watched::all(&kind()), Watched::all(&secrets)], move |shop, children| {
        let key = child(shop, &secrets, name_of(shop), json!({}));
        let mut writes = plan(&[key], children, |_, _| true);
        if shop["status"]["hasKey"] != true {
            let place = if fix { writes.len() } else { 0 };
            writes.insert(place, Write::Status(shop.clone(), json!({"hasKey": true})));
        }
        writes
    })
}

/// Who is told that there is a key finds one.
fn is_true(state: &State) -> Result<(), String> {
    for shop in state.of(&kind()) {
        let name = name_of(shop);
        if shop["status"]["hasKey"] == true && state.get(&Kind::of::<Secret>(), "default", name).is_none() {
            return Err(format!("{name} has no key"));
        }
    }
    Ok(())
}

fn scene(fix: bool) -> Check {
    let script = Script::new().create(shop("corner", &json!({})));
    check(keys(fix)).given(definition()).script(script).always("a key that is told of is there", is_true)
}

#[test]
fn promise_is_caught_without_any_fault() {
    let found = failure(&scene(false).report(), Part::Baseline);
    assert!(found.faults.0.is_empty());
    assert!(
        matches!(&found.violations[..], [Violation::Property { why, .. }] if why == "corner has no key"),
        "{}",
        found.story
    );
    assert!(found.story.contains("update status of shops.example.dev default/corner"), "{}", found.story);
}

#[test]
fn the_corrected_one_passes_everything() {
    scene(true).every_fault().seeds(10).run();
}
