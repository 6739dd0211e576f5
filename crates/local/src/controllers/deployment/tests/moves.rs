//! Single moves, as tables.

use expect_test::{Expect, expect};
use serde_json::json;

use super::super::sizes::{Move, recreate, rescale, roll};
use super::*;

#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check(next: &Move, expected: Expect) {
    let mut told: Vec<String> = next.create.iter().map(|size| format!("create {size}")).collect();
    told.extend(next.sizes.iter().map(|(name, size)| format!("{name} {size}")));
    expected.assert_eq(&told.join(", "));
}

fn with_available(set: Set, available: i32) -> Set {
    Set { available, ..set }
}

#[test]
fn limits_are_counts_or_shares_and_never_both_nothing() {
    let limits = |replicas: i32, surge: Value, unavailable: Value| {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let wish = Wish::of(&spec(&json!({"replicas": replicas, "strategy": {"rollingUpdate": rolling}})));
        (wish.surge, wish.unavailable)
    };
    assert_eq!(limits(10, json!("25%"), json!("25%")), (3, 2));
    assert_eq!(limits(1, json!("25%"), json!("25%")), (1, 0));
    assert_eq!(limits(3, json!(2), json!(1)), (2, 1));
    assert_eq!(limits(2, json!("0%"), json!("1%")), (0, 1));
    assert_eq!(limits(2, json!("1%"), json!("0%")), (1, 0));
    assert_eq!(limits(3, json!(0), json!(5)), (0, 3));
    assert_eq!(limits(0, json!("25%"), json!("25%")), (0, 0));
    let recreating = Wish::of(&spec(&json!({"strategy": {"type": "Recreate", "rollingUpdate": null}})));
    assert_eq!(recreating, Wish { replicas: 3, rolls: false, surge: 0, unavailable: 0 });
}

#[test]
fn a_first_set_is_made_in_full() {
    check(&roll(&wish(3, 1, 0), &sets(None, [])), expect!["create 3"]);
    check(&roll(&wish(0, 0, 0), &sets(None, [])), expect!["create 0"]);
}

#[test]
fn a_new_set_gets_the_room_that_there_is_and_old_ones_make_room() {
    let wish = wish(10, 3, 2);
    check(&roll(&wish, &sets(None, [set("a", 10)])), expect!["create 3, a 8"]);
    let new = with_available(set("b", 3), 0);
    check(&roll(&wish, &sets(Some(new), [set("a", 8)])), expect!["b 5"]);
    let new = with_available(set("b", 5), 0);
    check(&roll(&wish, &sets(Some(new.clone()), [set("a", 8)])), expect![""]);
    // One of the old pods dies: there is nothing to spare on that account.
    check(&roll(&wish, &sets(Some(new), [with_available(set("a", 8), 7)])), expect![""]);
    check(&roll(&wish, &sets(Some(set("b", 5)), [set("a", 8)])), expect!["a 3"]);
}

#[test]
fn pods_that_are_not_available_go_first_and_then_the_oldest_sets() {
    let old = |name: &str, created: i64, size: i32, available: i32| Set {
        created: Some(jiff::Timestamp::from_second(created).unwrap()),
        ..with_available(set(name, size), available)
    };
    let wish = wish(10, 3, 2);
    let broken = [old("a", 2, 5, 0), old("b", 1, 8, 8)];
    // What was rolled out in between never became available, and is taken away at once.
    check(&roll(&wish, &sets(None, broken.clone())), expect!["create 0, a 0"]);
    check(&roll(&wish, &sets(Some(with_available(set("c", 0), 0)), broken)), expect!["a 0"]);
    let both = [old("a", 2, 4, 4), old("b", 1, 4, 4)];
    check(&roll(&wish, &sets(Some(set("c", 5)), both)), expect!["a 3, b 0"]);
}

#[test]
fn a_new_set_that_is_too_large_is_made_smaller() {
    check(&roll(&wish(3, 1, 0), &sets(Some(set("b", 5)), [])), expect!["b 3"]);
}

#[test]
fn recreating_waits_until_the_old_pods_are_gone() {
    let wish = Wish { replicas: 3, rolls: false, surge: 0, unavailable: 0 };
    check(&recreate(&wish, &sets(None, [set("a", 3), set("b", 0)]), true), expect!["a 0"]);
    let going = Set { size: 0, ..set("a", 3) };
    check(&recreate(&wish, &sets(None, [going]), false), expect![""]);
    check(&recreate(&wish, &sets(None, [set("a", 0)]), true), expect![""]);
    check(&recreate(&wish, &sets(None, [set("a", 0)]), false), expect!["create 3"]);
    check(&recreate(&wish, &sets(Some(set("b", 0)), [set("a", 0)]), false), expect!["b 3"]);
    check(&recreate(&wish, &sets(Some(set("b", 3)), [set("a", 0)]), false), expect![""]);
}

#[test]
fn the_only_set_with_pods_takes_all_of_a_change() {
    let wish = wish(5, 1, 0);
    check(&rescale(&wish, &sets(Some(set("b", 3)), [set("a", 0)]), 3), expect!["b 5"]);
    check(&rescale(&wish, &sets(None, [set("a", 3)]), 3), expect!["a 5"]);
    check(&rescale(&wish, &sets(Some(set("b", 0)), [set("a", 0)]), 0), expect!["b 5"]);
    // It is told of the new number also if somebody was faster.
    check(&rescale(&wish, &sets(Some(set("b", 5)), []), 5), expect!["b 5"]);
    let told = Set { desired: Some(5), ..set("b", 5) };
    check(&rescale(&wish, &sets(Some(told), []), 5), expect![""]);
}

#[test]
fn a_change_amid_a_rollout_is_shared_in_proportion() {
    let told = |name: &str, size: i32| Set { desired: Some(10), most: Some(13), ..set(name, size) };
    let amid = sets(Some(told("b", 5)), [told("a", 8)]);
    check(&rescale(&wish(15, 4, 3), &amid, 13), expect!["a 12, b 7"]);
    check(&rescale(&wish(5, 2, 1), &amid, 13), expect!["a 4, b 3"]);
    check(&rescale(&wish(0, 0, 0), &amid, 13), expect!["a 0, b 0"]);
    let settled = rescale(&wish(10, 3, 2), &amid, 13);
    check(&settled, expect![""]);
}

#[test]
fn old_sets_are_emptied_when_the_new_one_has_all_that_is_needed() {
    let wish = wish(3, 1, 0);
    check(&rescale(&wish, &sets(Some(set("b", 3)), [set("a", 1)]), 4), expect!["a 0"]);
}

#[test]
fn a_rescaling_is_known_by_what_sets_with_pods_were_told() {
    let is_rescaled = |wish: Wish, sets: Sets| sets.is_rescaled(&wish);
    assert!(!is_rescaled(wish(3, 1, 0), sets(Some(set("b", 3)), [])));
    assert!(is_rescaled(wish(4, 1, 0), sets(Some(set("b", 3)), [])));
    assert!(!is_rescaled(wish(4, 1, 0), sets(Some(set("b", 0)), [set("a", 0)])));
    let untold = Set { desired: None, ..set("a", 3) };
    assert!(!is_rescaled(wish(4, 1, 0), sets(Some(untold), [])));
    let recreating = Wish { rolls: false, ..wish(4, 0, 0) };
    assert!(is_rescaled(recreating, sets(None, [set("a", 3)])));
    assert!(!is_rescaled(recreating, sets(Some(set("b", 1)), [set("a", 3)])));
}
