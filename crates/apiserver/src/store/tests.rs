use super::*;
use crate::bounds::{MARK_BYTES_MAX, OBJECT_BYTES_MAX};
use serde_json::json;

mod damage;
mod disk_faults;
mod schedules;

fn in_memory(retention: Retention) -> Store {
    Store::in_memory(retention, |_, _| Vec::new(), None)
}

/// The first hour of 1970, so that revisions are small.
const START: Timestamp = Timestamp::constant(3600, 0);

fn open_at(directory: &Path, now: Timestamp) -> Result<Store, DiskError> {
    Store::open(directory, Retention::default(), |_, _| Vec::new(), None, now, Faults::default())
}

fn open(directory: &Path) -> Result<Store, DiskError> {
    open_at(directory, START)
}

fn pods() -> CollectionId {
    CollectionId::new("", "pods")
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    futures::executor::block_on(future)
}

fn put(store: &Store, name: &str, note: u64) -> Arc<Object> {
    let key = Key::new("ns", name);
    let expected = store.get(&pods(), &key).map(|o| o.revision);
    let tree = json!({"metadata": {"name": name}, "note": note});
    wait(store.commit(&pods(), &key, expected, &tree, Fate::Kept)).unwrap()
}

fn remove(store: &Store, name: &str) {
    let key = Key::new("ns", name);
    let current = store.get(&pods(), &key).unwrap();
    wait(store.commit(&pods(), &key, Some(current.revision), &current.value().unwrap(), Fate::Removed))
        .unwrap();
}

fn names(listing: &Listing) -> Vec<String> {
    listing.items.iter().map(|o| format!("{}={}", o.key.name, o.value().unwrap()["note"])).collect()
}

#[test]
fn an_old_revision_lists_as_it_was() {
    let store = in_memory(Retention::default());
    put(&store, "a", 1);
    put(&store, "b", 1);
    let then = store.revision();
    put(&store, "a", 2);
    remove(&store, "b");
    put(&store, "c", 1);
    assert_eq!(names(&store.list(&pods(), None, None, None).unwrap()), ["a=2", "c=1"]);
    assert_eq!(names(&store.list(&pods(), None, Some(then), None).unwrap()), ["a=1", "b=1"]);
    let after = Key::new("ns", "a");
    assert_eq!(names(&store.list(&pods(), Some("ns"), Some(then), Some(&after)).unwrap()), ["b=1"]);
    assert!(names(&store.list(&pods(), Some("other"), Some(then), None).unwrap()).is_empty());
    assert!(names(&store.list(&pods(), Some("other"), None, Some(&after)).unwrap()).is_empty());
    let page = store.page(&pods(), Some("ns"), None, None, 1).unwrap();
    assert_eq!((names(&page), page.rest), (vec!["a=2".to_owned()], 1));
    let page = store.page(&pods(), None, Some(then), None, 1).unwrap();
    assert_eq!((names(&page), page.rest), (vec!["a=1".to_owned()], 1));
}

#[test]
fn a_write_on_a_stale_revision_is_refused() {
    let store = in_memory(Retention::default());
    let first = put(&store, "a", 1);
    put(&store, "a", 2);
    let key = Key::new("ns", "a");
    let refused =
        wait(store.commit(&pods(), &key, Some(first.revision), &json!({"metadata": {}}), Fate::Kept));
    assert!(matches!(refused, Err(Refused::Changed(Some(_)))));
}

#[test]
fn followers_see_every_event_once_and_in_order() {
    let store = in_memory(Retention::default());
    put(&store, "a", 1);
    let mut follower = store.follow(&pods(), store.revision()).unwrap();
    put(&store, "a", 2);
    put(&store, "b", 1);
    remove(&store, "a");
    let kinds: Vec<_> = follower.take(&store, 10).unwrap().iter().map(|e| e.kind()).collect();
    assert_eq!(kinds, ["MODIFIED", "ADDED", "DELETED"]);
    assert!(follower.take(&store, 10).unwrap().is_empty());
}

#[test]
fn compacted_history_is_expired_for_lists_and_watches() {
    let store = in_memory(Retention { events_max: 2, bytes_max: usize::MAX });
    let first = put(&store, "a", 1).revision;
    for note in 2..6 {
        put(&store, "a", note);
    }
    assert!(store.list(&pods(), None, Some(first), None).is_err());
    assert!(store.follow(&pods(), first).is_err());
    assert!(store.follow(&pods(), store.revision() - 2).is_ok());
}

#[test]
fn what_was_acknowledged_is_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let revision = {
        let store = open(directory.path()).unwrap();
        put(&store, "a", 1);
        put(&store, "b", 2);
        remove(&store, "a");
        store.revision()
    };
    let store = open(directory.path()).unwrap();
    assert!(store.revision() > revision);
    assert_eq!(names(&store.list(&pods(), None, None, None).unwrap()), ["b=2"]);
    assert!(store.follow(&pods(), revision).is_err(), "history does not survive a restart");
    assert!(store.list(&pods(), None, Some(revision), None).is_err());
    assert!(store.follow(&pods(), store.revision()).is_ok());
}

#[test]
fn a_copy_that_overtakes_the_original_does_not_go_on_from_its_revisions() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.redb");
    let at = |second: i64| open_at(directory.path(), Timestamp::constant(second, 0)).unwrap();
    put(&at(100), "a", 1);
    let copy = std::fs::read(&file).unwrap();
    // The original was started again since the copy was made, and has the higher revision.
    let original = at(200);
    for note in 0..3 {
        put(&original, "a", note);
    }
    let known = original.revision();
    drop(original);
    for (restored, second) in [(Some(copy), 300), (None, 400)] {
        match &restored {
            Some(copy) => std::fs::write(&file, copy).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        let restored = at(second);
        assert!(restored.revision() > known);
        assert!(restored.follow(&pods(), known).is_err(), "it would miss what changed since");
        put(&restored, "b", 1);
        assert!(restored.follow(&pods(), known).is_err());
    }
    // A clock that goes back does not bring revisions back.
    let before = at(500).revision();
    let store = at(500);
    put(&store, "c", 1);
    let known = store.revision();
    assert!(known > before);
    drop(store);
    assert!(at(1).revision() > known);
}

#[test]
fn collections_that_were_only_followed_are_forgotten() {
    let store = in_memory(Retention::default());
    put(&store, "a", 1);
    let kept = store.follow(&CollectionId::new("kept", "things"), store.revision()).unwrap();
    for count in 0..1000 {
        let id = CollectionId::new(&format!("group-{count}"), "things");
        drop(store.follow(&id, store.revision()).unwrap());
    }
    let known = store.collections();
    assert!(known.len() <= 3, "{known:?}");
    assert!(known.contains(&pods()) && known.contains(&kept.id));
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    std::fs::write(&path, "not a store").unwrap();
    let refused = open(directory.path()).map(drop);
    assert!(matches!(refused, Err(disk::DiskError::Unreadable { .. })), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "not a store");
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn only_what_can_be_read_again_is_stored() {
    let store = in_memory(Retention::default());
    let object = |depth: usize| json!({"metadata": {"name": "a"}, "spec": nested(depth)});
    let key = Key::new("ns", "a");
    let deep = wait(store.commit(&pods(), &key, None, &object(STORED_DEPTH_MAX), Fate::Kept));
    assert!(matches!(deep, Err(Refused::TooDeep)), "{deep:?}");
    let kept = wait(store.commit(&pods(), &key, None, &object(STORED_DEPTH_MAX - 1), Fate::Kept)).unwrap();
    assert_eq!(kept.value().unwrap()["spec"], nested(STORED_DEPTH_MAX - 1));
    let error = ApiError::from(Refused::TooDeep);
    assert_eq!((error.code, &*error.reason), (413, "RequestEntityTooLarge"));
}

#[test]
fn an_object_has_a_largest_size() {
    let store = in_memory(Retention::default());
    let object = |bytes: usize| json!({"metadata": {"name": "a"}, "spec": "x".repeat(bytes)});
    let empty = object(0).to_string().len() + r#","resourceVersion":"""#.len();
    let (key, most) = (Key::new("ns", "a"), OBJECT_BYTES_MAX - empty);
    let commit =
        |expected: Option<u64>, tree: &Value, fate| wait(store.commit(&pods(), &key, expected, tree, fate));
    assert!(matches!(commit(None, &object(most + 1), Fate::Kept), Err(Refused::TooLarge)));
    let kept = commit(None, &object(most), Fate::Kept).unwrap();
    // It can be marked for deletion, but not grow by it.
    let mut marked = object(most);
    marked["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let kept = commit(Some(kept.revision), &marked, Fate::Kept).unwrap();
    marked["spec"] = "x".repeat(most + MARK_BYTES_MAX).into();
    assert!(matches!(commit(Some(kept.revision), &marked, Fate::Kept), Err(Refused::TooLarge)));
    assert!(commit(Some(kept.revision), &marked, Fate::Removed).is_ok());
    let error = ApiError::from(Refused::TooLarge);
    assert_eq!((error.code, &*error.reason, &*error.message), (500, "", "etcdserver: request is too large"));
}

#[test]
fn what_cannot_be_read_is_an_error_with_its_name() {
    let text =
        format!(r#"{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    let deep = Object::new(Key::new("ns", "a"), 7, text.into());
    let error = deep.value().unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read the stored object \"ns/a\" of revision 7: recursion limit"),
        "{error}"
    );
    assert_eq!(deep.labels().unwrap().unwrap()["a"], "b", "what is not asked for is skipped");
    let broken = Object::new(Key::new("", "a"), 7, "{".into());
    assert!(broken.labels().is_err());
    assert_eq!(ApiError::from(broken.value().unwrap_err()).code, 500);
}
