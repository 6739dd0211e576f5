//! Files that were damaged are refused, and those of older versions are read.

use super::disk_faults::notes;
use super::*;
use std::collections::BTreeMap;
use std::fs;

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
        assert_eq!(store.get(&pods(), &Key::new("ns", "a")).unwrap().revision, 150);
        assert!(store.revision() > 170);
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
