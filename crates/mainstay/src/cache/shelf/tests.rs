use serde_json::json;

use super::*;
use crate::kind::{Kind, Scope};

fn kind() -> Kind {
    Kind::new("v1", "Thing", "things", Scope::Namespaced)
}

fn object(name: &str, uid: &str, revision: u64) -> Object {
    owned(name, uid, revision, None)
}

fn owned(name: &str, uid: &str, revision: u64, owner: Option<&str>) -> Object {
    let owners = owner.map(|uid| json!([{"uid": "plain"}, {"uid": uid, "controller": true}]));
    Object::from_value(
        &kind(),
        &json!({"metadata": {
            "name": name, "namespace": "n", "uid": uid, "resourceVersion": revision.to_string(),
            "ownerReferences": owners,
        }}),
    )
    .unwrap()
}

fn key(name: &str) -> Key {
    Key::namespaced("n", name)
}

fn seen(name: &str, uid: &str, revision: u64) -> Event {
    Event::Seen(object(name, uid, revision))
}

fn gone(name: &str, uid: &str, revision: u64) -> Event {
    Event::Gone(object(name, uid, revision))
}

/// `name/uid@revision` of everything that is held.
fn held(shelf: &Shelf) -> String {
    let all = shelf.list(None, &Selector::everything());
    let texts: Vec<_> =
        all.iter().map(|held| format!("{}/{}@{}", held.key().name(), held.uid(), held.revision())).collect();
    texts.join(" ")
}

fn relist(shelf: &mut Shelf, items: &[(&str, &str, u64)], revision: u64) -> Vec<Change> {
    shelf.begin_relist(Relist::CatchUp);
    let mut changes: Vec<_> =
        items.iter().map(|(name, uid, revision)| shelf.item(object(name, uid, *revision))).collect();
    changes.extend(shelf.end_relist(revision));
    changes.retain(|change| !change.is_nothing());
    changes
}

#[test]
fn echo_of_an_own_write_is_nothing() {
    let mut shelf = Shelf::default();
    assert!(matches!(shelf.own_write(object("a", "u", 5)), Change::Added { .. }));
    assert!(matches!(shelf.own_write(object("a", "u", 7)), Change::Updated { .. }));
    assert!(shelf.apply_event(seen("a", "u", 5)).is_nothing());
    assert!(shelf.apply_event(seen("a", "u", 7)).is_nothing());
    assert!(matches!(shelf.apply_event(seen("a", "u", 8)), Change::Updated { .. }), "another's change");
    assert_eq!(held(&shelf), "a/u@8");
}

#[test]
fn what_we_deleted_stays_deleted_until_the_watch_has_shown_it() {
    let mut shelf = Shelf::default();
    shelf.apply_event(seen("a", "u", 5));
    assert!(matches!(shelf.own_delete(&key("a"), "u", 5), Change::Deleted { .. }));
    assert!(shelf.apply_event(seen("a", "u", 6)).is_nothing(), "an event from before the deletion");
    assert!(shelf.apply_event(gone("a", "u", 7)).is_nothing());
    assert!(shelf.graves.is_empty());
    assert!(matches!(shelf.apply_event(seen("a", "v", 8)), Change::Added { .. }), "another of that name");
}

#[test]
fn another_object_of_the_name_comes_in_before_the_deletion_was_shown() {
    let mut shelf = Shelf::default();
    shelf.own_write(object("a", "u", 5));
    shelf.own_delete(&key("a"), "u", 5);
    shelf.own_write(object("a", "v", 9));
    for event in [seen("a", "u", 5), gone("a", "u", 8), seen("a", "v", 9)] {
        assert!(shelf.apply_event(event).is_nothing());
    }
    assert_eq!(held(&shelf), "a/v@9");
}

#[test]
fn late_answer_does_not_bring_back_what_others_have_deleted() {
    let mut shelf = Shelf::default();
    shelf.apply_event(seen("a", "u", 5));
    shelf.apply_event(gone("a", "u", 6));
    assert!(shelf.own_write(object("a", "u", 5)).is_nothing());
    assert!(shelf.own_delete(&key("a"), "u", 5).is_nothing());
    assert!(shelf.graves.is_empty(), "the watch won't speak of it again");
}

#[test]
fn missed_deletion_shows_in_what_comes_after_it() {
    let mut shelf = Shelf::default();
    shelf.apply_event(seen("a", "u", 5));
    let change = shelf.apply_event(seen("a", "v", 9));
    assert!(matches!(&change, Change::Updated { old, new } if old.uid() == "u" && new.uid() == "v"));
    let change = shelf.apply_event(gone("a", "w", 12));
    assert!(matches!(&change, Change::Deleted { old, .. } if old.uid() == "v"));
}

#[test]
fn object_that_left_the_scope_by_our_write_is_gone_and_may_return() {
    let mut shelf = Shelf::default();
    shelf.apply_event(seen("a", "u", 5));
    assert!(matches!(shelf.own_departure(&object("a", "u", 8)), Change::Deleted { .. }));
    assert!(shelf.apply_event(seen("a", "u", 7)).is_nothing());
    assert!(matches!(shelf.apply_event(seen("a", "u", 9)), Change::Added { .. }));
    // The write that we hold is the one by which it left, in the eyes of the watch.
    shelf.own_write(object("a", "u", 11));
    assert!(matches!(shelf.apply_event(gone("a", "u", 11)), Change::Deleted { .. }));
    // One that was never in the scope leaves nothing behind.
    assert!(shelf.own_departure(&object("b", "v", 20)).is_nothing());
    assert!(shelf.graves.is_empty());
}

#[test]
fn list_keeps_what_is_unchanged_and_removes_what_it_lacks() {
    let mut shelf = Shelf::default();
    relist(&mut shelf, &[("a", "u", 1), ("b", "v", 2), ("c", "w", 3)], 3);
    let before = shelf.get(&key("a")).unwrap().clone();
    let changes = relist(&mut shelf, &[("a", "u", 1), ("c", "w", 5), ("d", "x", 6)], 7);
    assert!(Arc::ptr_eq(&before, shelf.get(&key("a")).unwrap()), "the same allocation");
    let kinds: Vec<_> = changes
        .iter()
        .map(|change| match change {
            Change::Nothing => "nothing",
            Change::Added { .. } => "added",
            Change::Updated { .. } => "updated",
            Change::Deleted { .. } => "deleted",
        })
        .collect();
    assert_eq!(kinds, ["updated", "added", "deleted"]);
    assert_eq!(held(&shelf), "a/u@1 c/w@5 d/x@6");
}

#[test]
fn stale_list_neither_reverts_nor_removes_nor_brings_back() {
    let mut shelf = Shelf::default();
    relist(&mut shelf, &[("a", "u", 1), ("b", "v", 2), ("c", "w", 3)], 3);
    shelf.own_write(object("a", "u", 10));
    shelf.own_write(object("d", "x", 11));
    shelf.own_delete(&key("b"), "v", 2);
    shelf.apply_event(gone("c", "w", 9));
    let stale = [("a", "u", 4), ("b", "v", 2), ("c", "w", 3)];
    assert_eq!(relist(&mut shelf, &stale, 5), []);
    assert_eq!(held(&shelf), "a/u@10 d/x@11");
    // One that is newer, but older than the deletion.
    assert_eq!(relist(&mut shelf, &[("a", "u", 4), ("b", "v", 2)], 9), []);
    assert_eq!(held(&shelf), "a/u@10 d/x@11");
    assert_eq!(relist(&mut shelf, &[("a", "u", 10), ("d", "x", 11)], 13), []);
    assert!(shelf.graves.is_empty());
    assert_eq!(relist(&mut shelf, &[("a", "u", 4), ("b", "v", 2)], 9), [], "even then");
    assert_eq!(held(&shelf), "a/u@10 d/x@11");
}

#[test]
fn fresh_list_brings_in_what_the_watch_has_missed() {
    let mut shelf = Shelf::default();
    relist(&mut shelf, &[], 3);
    shelf.apply_event(Event::Bookmark(9));
    relist(&mut shelf, &[("a", "u", 7)], 9);
    assert_eq!(held(&shelf), "a/u@7");
}

#[test]
fn deletion_while_a_list_is_read_counts() {
    let mut shelf = Shelf::default();
    relist(&mut shelf, &[], 8);
    shelf.begin_relist(Relist::CatchUp);
    for (name, revision) in [("a", 7), ("b", 9)] {
        shelf.apply_event(seen(name, name, revision));
    }
    shelf.apply_event(gone("a", "a", 10));
    shelf.apply_event(gone("b", "b", 11));
    shelf.end_relist(12);
    assert_eq!(held(&shelf), "");
}

#[test]
fn list_that_was_cut_short_removes_nothing() {
    let mut shelf = Shelf::default();
    relist(&mut shelf, &[("a", "u", 1), ("b", "v", 2)], 3);
    shelf.begin_relist(Relist::CatchUp);
    shelf.item(object("a", "u", 1));
    relist(&mut shelf, &[("a", "u", 1), ("b", "v", 2)], 4);
    assert_eq!(held(&shelf), "a/u@1 b/v@2");
}

#[test]
fn wider_list_replaces_the_text_of_unchanged_objects_without_a_change() {
    let mut shelf = Shelf::default();
    relist(&mut shelf, &[("a", "u", 1)], 3);
    let before = shelf.get(&key("a")).unwrap().clone();
    shelf.begin_relist(Relist::Widened);
    assert!(shelf.item(object("a", "u", 1)).is_nothing());
    assert!(matches!(shelf.item(object("b", "v", 2)), Change::Added { .. }), "older, but new to this scope");
    assert_eq!(shelf.end_relist(3), []);
    assert!(!Arc::ptr_eq(&before, shelf.get(&key("a")).unwrap()));
    assert_eq!(held(&shelf), "a/u@1 b/v@2");
}

#[test]
fn versions_that_are_no_numbers_are_taken_as_they_come() {
    let version = |version: &str| {
        let value =
            json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": version}});
        Object::from_value(&kind(), &value).unwrap()
    };
    let mut shelf = Shelf::default();
    shelf.own_write(version("x"));
    assert!(shelf.apply_event(Event::Seen(version("x"))).is_nothing());
    assert!(matches!(shelf.apply_event(Event::Seen(version("w"))), Change::Updated { .. }));
    assert!(matches!(shelf.apply_event(Event::Gone(version("q"))), Change::Deleted { .. }));
}

#[test]
fn end_of_a_kind_is_told_as_such() {
    let mut shelf = Shelf::default();
    relist(&mut shelf, &[("a", "u", 1)], 3);
    let changes = shelf.end_of_kind();
    assert!(matches!(changes.as_slice(), [Change::Deleted { departure: Departure::Kind, .. }]));
    assert_eq!((shelf.len(), shelf.json_bytes(), shelf.allocated_bytes()), (0, 0, 0));
}

#[test]
fn children_are_found_by_their_controller_wherever_they_go() {
    let mut shelf = Shelf::default();
    let names = |shelf: &Shelf, owner: &str| -> Vec<String> {
        shelf.children_of(owner).iter().map(|child| child.key().name().to_owned()).collect()
    };
    for (revision, name) in (1..).zip(["b", "c", "a"]) {
        shelf.own_write(owned(name, name, revision, Some("parent")));
    }
    assert_eq!(names(&shelf, "parent"), ["a", "b", "c"]);
    assert_eq!(names(&shelf, "plain"), Vec::<String>::new());
    shelf.own_write(owned("a", "a", 5, Some("other")));
    shelf.own_write(owned("b", "b", 6, None));
    shelf.own_write(owned("c", "c", 7, Some("parent")));
    assert_eq!(names(&shelf, "parent"), ["c"]);
    assert_eq!(names(&shelf, "other"), ["a"]);
    assert_eq!(shelf.children_of("parent")[0].revision(), 7);
    shelf.apply_event(gone("a", "a", 8));
    assert_eq!(names(&shelf, "other"), Vec::<String>::new());
}

#[test]
fn namespaces_do_not_run_into_each_other() {
    let mut shelf = Shelf::default();
    for (namespace, name) in [("a", "z"), ("a-b", "x"), ("b", "x"), ("a", "y")] {
        let value = json!({"metadata": {
            "name": name, "namespace": namespace, "uid": format!("{namespace}/{name}"), "resourceVersion": "1",
            "labels": {"name": name},
        }});
        shelf.own_write(Object::from_value(&kind(), &value).unwrap());
    }
    let list = |namespace, selector: &str| {
        let found = shelf.list(namespace, &selector.parse().unwrap());
        found.iter().map(|object| object.key().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(list(Some("a"), ""), ["a/y", "a/z"]);
    assert_eq!(list(Some("a-b"), ""), ["a-b/x"]);
    assert_eq!(list(None, "name=x"), ["a-b/x", "b/x"]);
    assert_eq!(list(Some("c"), ""), Vec::<String>::new());
}

#[test]
fn list_that_began_before_our_deletion_does_not_make_it_forgotten() {
    let mut shelf = Shelf::default();
    shelf.begin_relist(Relist::CatchUp);
    shelf.item(object("a", "u", 2));
    shelf.own_delete(&key("a"), "u", 2);
    shelf.end_relist(2);
    assert!(shelf.apply_event(seen("a", "u", 3)).is_nothing(), "a change from before the deletion");
    assert!(shelf.apply_event(gone("a", "u", 4)).is_nothing());
    assert!(shelf.graves.is_empty());
}

#[test]
fn object_whose_name_we_took_over_does_not_come_back() {
    let mut shelf = Shelf::default();
    shelf.apply_event(seen("a", "u", 1));
    shelf.apply_event(seen("b", "w", 2));
    shelf.own_write(object("a", "v", 5));
    shelf.own_delete(&key("a"), "v", 5);
    assert!(shelf.own_write(object("a", "u", 3)).is_nothing(), "a late answer");
    for event in [seen("a", "u", 3), gone("a", "u", 4), seen("a", "v", 5), gone("a", "v", 6)] {
        assert!(shelf.apply_event(event).is_nothing());
    }
    assert_eq!(held(&shelf), "b/w@2");
    assert!(shelf.graves.is_empty());
}

#[test]
fn a_replaced_state_counts_although_its_revisions_are_lower() {
    let mut shelf = Shelf::default();
    relist(&mut shelf, &[("a", "u", 58), ("b", "v", 40), ("c", "w", 59)], 60);
    shelf.own_delete(&key("b"), "v", 40);
    shelf.begin_relist(Relist::Replaced);
    assert!(matches!(shelf.item(object("a", "u", 30)), Change::Updated { .. }));
    assert!(matches!(shelf.own_write(object("d", "x", 51)), Change::Added { .. }));
    assert!(matches!(shelf.item(object("b", "v", 40)), Change::Added { .. }), "its deletion is undone");
    // Cut short and begun again: what is held is still measured by nothing.
    shelf.begin_relist(Relist::CatchUp);
    for (name, uid, revision) in [("a", "u", 30), ("b", "v", 40), ("d", "x", 51)] {
        assert!(shelf.item(object(name, uid, revision)).is_nothing());
    }
    assert!(matches!(shelf.own_write(object("a", "u", 52)), Change::Updated { .. }));
    assert_eq!(shelf.end_relist(51).len(), 1, "c is gone");
    assert_eq!(held(&shelf), "a/u@52 b/v@40 d/x@51");
    assert!(matches!(shelf.apply_event(seen("e", "y", 53)), Change::Added { .. }));
}

#[test]
fn a_list_of_later_that_shows_what_was_before_is_of_another_history() {
    let mut shelf = Shelf::default();
    relist(&mut shelf, &[("a", "u", 58), ("b", "v", 40), ("c", "w", 59), ("d", "x", 57)], 60);
    // A copy of before was restored, and its revisions go on above all others.
    let changes = relist(&mut shelf, &[("a", "u", 30), ("b", "v", 40), ("d", "z", 29)], 1000);
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert_eq!(held(&shelf), "a/u@30 b/v@40 d/z@29");
    // A list that is only late changes nothing.
    shelf.own_write(object("a", "u", 1002));
    assert!(relist(&mut shelf, &[("a", "u", 30), ("b", "v", 40), ("d", "z", 29)], 1001).is_empty());
    assert_eq!(held(&shelf), "a/u@1002 b/v@40 d/z@29");
    // Nor does one that shows the newer state after the older.
    let items = [("a", "u", 30), ("b", "v", 40), ("d", "z", 29), ("a", "u", 1002)];
    assert!(relist(&mut shelf, &items, 1003).is_empty());
    assert_eq!(held(&shelf), "a/u@1002 b/v@40 d/z@29");
}
