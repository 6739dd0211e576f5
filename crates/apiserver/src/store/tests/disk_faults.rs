//! A disk that fails at any of its writes, with several threads; and files that were damaged.

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

const WRITERS: usize = 4;

fn open_faulty(directory: &Path, faults: &Faults) -> Store {
    Store::open_with(directory, Retention::default(), |_, _| Vec::new(), None, faults.clone()).unwrap()
}

fn notes(store: &Store) -> BTreeMap<String, u64> {
    let listing = store.list(&pods(), None, None, None).unwrap();
    listing
        .items
        .iter()
        .map(|o| (o.key.name.to_string(), o.value().unwrap()["note"].as_u64().unwrap()))
        .collect()
}

/// Creates, changes and deletes, and gives what was acknowledged. What was refused must not be seen.
fn write_some(store: &Store, writer: usize) -> Vec<(String, Option<u64>)> {
    let mut acknowledged = Vec::new();
    for note in 0..6 {
        let name = format!("{writer}-{}", note % 2);
        let key = Key::new("ns", &name);
        let before = store.get(&pods(), &key);
        let fate = if note == 4 && before.is_some() { Fate::Removed } else { Fate::Kept };
        let tree = json!({"metadata": {"name": name}, "note": note});
        let expected = before.as_ref().map(|o| o.revision);
        let written = wait(store.commit(&pods(), &key, expected, &tree, fate));
        let after = store.get(&pods(), &key).map(|o| o.revision);
        match written {
            Ok(object) => {
                let kept = fate == Fate::Kept;
                assert_eq!(after, kept.then_some(object.revision));
                acknowledged.push((name, kept.then_some(note)));
            }
            Err(Refused::Disk(_)) => assert_eq!(after, expected, "it was refused"),
            Err(other) => panic!("{other:?}"),
        }
    }
    acknowledged
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Writers on a disk that fails at its `before`th write and the next ones. Whether it failed at all.
fn round(before: i64, failing: i64) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::some();
    let store = open_faulty(directory.path(), &faults);
    put(&store, "first", 1);
    faults.arm(before, failing);
    let written: Vec<_> = std::thread::scope(|scope| {
        let store = &store;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write_some(store, writer))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let struck = !faults.is_armed();
    faults.arm(i64::MAX, 0);
    until("the store is well again", || store.health() == Health::Good);
    put(&store, "last", 2);
    let mut expected: BTreeMap<String, u64> = [("first".to_owned(), 1), ("last".to_owned(), 2)].into();
    for (name, note) in written {
        match note {
            Some(note) => drop(expected.insert(name, note)),
            None => drop(expected.remove(&name)),
        }
    }
    assert_eq!(notes(&store), expected, "before a restart; the disk failed at {before}");
    let revision = store.revision();
    drop(store);
    let store = open(directory.path()).unwrap();
    assert_eq!(notes(&store), expected, "after a restart; the disk failed at {before}");
    assert_eq!(store.revision(), revision);
    struck
}

#[test]
fn wherever_the_disk_fails_nothing_is_seen_that_is_not_durable() {
    let mut before = 0;
    while round(before, 1 + before % 3) {
        before += 1 + before / 8;
        assert!(before < 10_000, "it never ends");
    }
    assert!(before > 10, "the disk was written only {before} times");
}

#[test]
fn readers_and_waiting_writers_are_answered_while_the_disk_fails() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::some();
    let store = open_faulty(directory.path(), &faults);
    put(&store, "a", 1);
    faults.arm(0, i64::MAX);
    let key = Key::new("ns", "a");
    let current = store.get(&pods(), &key).unwrap();
    let refused =
        wait(store.commit(&pods(), &key, Some(current.revision), &current.value().unwrap(), Fate::Removed));
    assert!(matches!(refused, Err(Refused::Disk(_))), "{refused:?}");
    assert_eq!(store.get(&pods(), &key).unwrap().revision, current.revision);
    until("it says why", || matches!(store.health(), Health::Failing(why) if why.contains("a fault")));
    faults.arm(i64::MAX, 0);
    until("it recovers", || store.health() == Health::Good);
    remove(&store, "a");
}

#[test]
fn a_write_that_is_under_way_is_not_seen() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::some();
    let store = open_faulty(directory.path(), &faults);
    put(&store, "a", 1);
    let (id, key, new) = (pods(), Key::new("ns", "a"), Key::new("ns", "new"));
    let (current, listed) = (store.get(&id, &key).unwrap(), notes(&store));
    let (revision, tree) = (store.revision(), current.value().unwrap());
    let mut follower = store.follow(&id, revision).unwrap();
    let held = faults.hold();
    let mut deletion = Box::pin(store.commit(&id, &key, Some(current.revision), &tree, Fate::Removed));
    let mut creation = Box::pin(store.commit(&id, &new, None, &tree, Fate::Kept));
    // These would be refused, if what is under way were certain.
    let mut update = Box::pin(store.commit(&id, &key, Some(current.revision), &tree, Fate::Kept));
    let mut again = Box::pin(store.commit(&id, &new, None, &tree, Fate::Kept));
    for pending in [&mut deletion, &mut creation, &mut update, &mut again] {
        assert!(futures::FutureExt::now_or_never(pending).is_none());
    }
    assert_eq!((notes(&store), store.revision()), (listed, revision));
    assert_eq!(store.get(&id, &key).unwrap().revision, current.revision);
    assert!(store.get(&id, &new).is_none());
    assert!(follower.take(&store, 10).unwrap().is_empty());
    assert!(store.events_after(revision).unwrap().is_empty());
    drop(held);
    wait(deletion).unwrap();
    wait(creation).unwrap();
    assert!(matches!(wait(update), Err(Refused::Changed(None))));
    assert!(matches!(wait(again), Err(Refused::Changed(Some(_)))));
    assert_eq!(follower.take(&store, 10).unwrap().len(), 2);
}

#[test]
fn a_file_that_is_deleted_is_noticed_and_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    put(&store, "a", 1);
    fs::remove_file(directory.path().join("store.redb")).unwrap();
    until("a new file", || directory.path().join("store.redb").exists());
    until("it recovers", || store.health() == Health::Good);
    put(&store, "b", 2);
    let expected = notes(&store);
    drop(store);
    assert_eq!(notes(&open(directory.path()).unwrap()), expected);
}

#[test]
fn a_file_that_is_replaced_is_noticed_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    put(&store, "a", 1);
    let file = directory.path().join("store.redb");
    fs::rename(&file, directory.path().join("moved")).unwrap();
    fs::write(&file, "a backup").unwrap();
    until("it says why", || matches!(store.health(), Health::Failing(why) if why.contains("was replaced")));
    let key = Key::new("ns", "b");
    let refused = wait(store.commit(&pods(), &key, None, &json!({"metadata": {}}), Fate::Kept));
    assert!(matches!(refused, Err(Refused::Disk(why)) if why.contains("was replaced")));
    assert_eq!(fs::read_to_string(&file).unwrap(), "a backup");
    fs::rename(directory.path().join("moved"), &file).unwrap();
    until("it recovers", || store.health() == Health::Good);
    put(&store, "b", 2);
}

/// A closed file with some objects, and what it holds.
fn sample(directory: &Path) -> (Vec<u8>, BTreeMap<String, u64>) {
    let store = open(directory).unwrap();
    for note in 0..40 {
        put(&store, &format!("pod-{note}"), note);
    }
    let held = notes(&store);
    drop(store);
    (fs::read(directory.join("store.redb")).unwrap(), held)
}

/// Opens a damaged file: it is served as it was, or refused with a sentence and left alone.
fn open_damaged(directory: &Path, damaged: &[u8], held: &BTreeMap<String, u64>) -> bool {
    let file = directory.join("store.redb");
    fs::write(&file, damaged).unwrap();
    match open(directory) {
        Ok(store) => {
            assert_eq!(notes(&store), *held);
            false
        }
        Err(error) => {
            assert!(error.to_string().contains("store.redb"), "{error}");
            assert!(error.to_string().contains("left as it is"), "{error}");
            assert!(fs::read(&file).unwrap() == damaged, "it was changed");
            true
        }
    }
}

#[test]
fn a_flipped_bit_of_a_value_names_the_object() {
    let directory = tempfile::tempdir().unwrap();
    let (whole, held) = sample(directory.path());
    let places: Vec<usize> =
        memchr::memmem::find_iter(&whole, b"\"name\":\"pod-17\"").map(|at| at + 10).collect();
    assert!(!places.is_empty());
    let mut named = false;
    for place in places {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        let file = directory.path().join("store.redb");
        fs::write(&file, &damaged).unwrap();
        match open(directory.path()) {
            // A page that is no longer used.
            Ok(store) => assert_eq!(notes(&store), held),
            Err(DiskError::Damaged { object, .. }) => {
                assert_eq!(object, "pods ns/pod-17");
                named = true;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(named);
}

#[test]
fn flipped_bits_and_zeroed_pages_are_never_served_as_truth() {
    let directory = tempfile::tempdir().unwrap();
    let (whole, held) = sample(directory.path());
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    let mut refused = 0;
    for page in (0..=used).step_by(4096) {
        let mut damaged = whole.clone();
        let end = (page + 4096).min(whole.len());
        damaged[page..end].fill(0);
        refused += usize::from(open_damaged(directory.path(), &damaged, &held));
    }
    for place in (0..=used).step_by(used / 60 + 1) {
        let mut damaged = whole.clone();
        damaged[place] ^= 1 << (place % 8);
        refused += usize::from(open_damaged(directory.path(), &damaged, &held));
    }
    assert!(refused > 5, "only {refused}");
}

#[test]
fn a_file_of_the_first_format_is_read_and_gets_checksums() {
    const OBJECTS: redb::TableDefinition<'_, &str, (u64, &[u8])> = redb::TableDefinition::new("objects");
    const FACTS: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("facts");
    let directory = tempfile::tempdir().unwrap();
    let database = redb::Database::create(directory.path().join("store.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let json = json!({"metadata": {"name": "a", "resourceVersion": "150"}, "note": 7}).to_string();
    transaction.open_table(OBJECTS).unwrap().insert("/pods\0ns\0a", (150, json.as_bytes())).unwrap();
    transaction.open_table(FACTS).unwrap().insert("format", 1).unwrap();
    transaction.open_table(FACTS).unwrap().insert("revision", 170).unwrap();
    transaction.commit().unwrap();
    drop(database);
    for _ in 0..2 {
        let store = open(directory.path()).unwrap();
        assert_eq!(notes(&store), [("a".to_owned(), 7)].into());
        assert_eq!(
            (store.get(&pods(), &Key::new("ns", "a")).unwrap().revision, store.revision()),
            (150, 170)
        );
    }
    let whole = fs::read(directory.path().join("store.redb")).unwrap();
    let places = memchr::memmem::find_iter(&whole, b"\"note\":7").map(|at| at + 7);
    let refused = places.filter(|place| {
        let mut damaged = whole.clone();
        damaged[*place] = b'8';
        open_damaged(directory.path(), &damaged, &[("a".to_owned(), 7)].into())
    });
    assert!(refused.count() > 0);
}
