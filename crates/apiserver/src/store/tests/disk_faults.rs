//! A disk that fails at any of its operations, with several threads, and files that are deleted or replaced.

use super::super::faults::{Operation, Plan};
use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WRITERS: usize = 4;
const NO_SPACE: i32 = 28;
const READ_ONLY: i32 = 30;
const IO_ERROR: i32 = 5;

fn try_open_faulty(directory: &Path, faults: &Faults) -> Result<Store, DiskError> {
    Store::open(directory, Retention::default(), |_, _| Vec::new(), None, START, faults.clone())
}

fn open_faulty(directory: &Path, faults: &Faults) -> Store {
    try_open_faulty(directory, faults).unwrap()
}

/// Every operation fails until the faults are disarmed.
fn always(errno: i32) -> Plan {
    Plan { failing: u64::MAX, errno, ..Plan::default() }
}

/// The next operation of this kind fails.
fn once(only: Operation, errno: i32) -> Plan {
    Plan { failing: 1, only: Some(only), errno, ..Plan::default() }
}

#[cfg(unix)]
fn inode(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(directory.join("store.redb")).unwrap().ino()
}

pub(super) fn notes(store: &Store) -> BTreeMap<String, u64> {
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

/// Writers on a disk that fails at its `before`th operation and the next ones. Whether it failed at all.
fn round(before: u64) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::some();
    let store = open_faulty(directory.path(), &faults);
    put(&store, "first", 1);
    // The numbers have no common factor, so all combinations come up.
    let errno = match before % 3 {
        0 => NO_SPACE,
        1 => READ_ONLY,
        _ => IO_ERROR,
    };
    let failing = 1 + before % 2;
    faults.arm(Plan { before, failing, only: None, errno });
    let written: Vec<_> = std::thread::scope(|scope| {
        let store = &store;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write_some(store, writer))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let struck = faults.left().failing < failing;
    faults.disarm();
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
    assert!(store.revision() > revision);
    struck
}

#[test]
fn wherever_the_disk_fails_nothing_is_seen_that_is_not_durable() {
    // Each of them waits for the disk most of the time.
    const ROUNDS_AT_ONCE: usize = 8;
    let (next, unharmed) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    std::thread::scope(|scope| {
        for _ in 0..ROUNDS_AT_ONCE {
            scope.spawn(|| {
                // How many operations a round has depends on how its writers are grouped. So one that was not struck is not the
                // end; several in a row are.
                loop {
                    let before = next.fetch_add(1, Ordering::SeqCst);
                    if before > unharmed.load(Ordering::SeqCst).saturating_add(4) {
                        return;
                    }
                    assert!(before < 10_000, "it never ends");
                    if round(before) {
                        unharmed.store(u64::MAX, Ordering::SeqCst);
                    } else {
                        unharmed.fetch_min(before, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let rounds = next.load(Ordering::SeqCst);
    assert!(rounds > 50, "the disk was asked only {rounds} times");
}

#[test]
fn wherever_the_disk_fails_at_the_start_the_next_start_has_everything() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    put(&store, "a", 1);
    // As a crash leaves it: this one needs repairs, and an empty directory needs a new file.
    let crashed = fs::read(directory.path().join("store.redb")).unwrap();
    let held = notes(&store);
    drop(store);
    for (file, held) in [(Some(crashed), held), (None, BTreeMap::new())] {
        let mut before = 0;
        loop {
            let directory = tempfile::tempdir().unwrap();
            if let Some(file) = &file {
                fs::write(directory.path().join("store.redb"), file).unwrap();
            }
            let faults = Faults::some();
            faults.arm(Plan { before, failing: 1, only: None, errno: IO_ERROR });
            let opened = try_open_faulty(directory.path(), &faults);
            if faults.left().failing == 1 {
                assert_eq!(notes(&opened.unwrap()), held);
                break;
            }
            match opened {
                Err(DiskError::Directory { source, .. }) => {
                    assert!(source.to_string().contains("Input/output error"), "{source}");
                }
                Err(other) => panic!("at {before}: {other}"),
                Ok(_) => panic!("the fault at {before} went unnoticed"),
            }
            let store = open(directory.path()).unwrap();
            assert_eq!(notes(&store), held, "the disk failed at {before}");
            put(&store, "b", 2);
            before += 1;
        }
        assert!(before > 3, "the disk was asked only {before} times");
    }
}

#[cfg(unix)]
#[test]
fn a_file_is_opened_again_after_a_refusal_and_written_again_after_a_doubt() {
    use Operation::{SetLength, Sync, Write};
    for (plan, opened_again) in [
        (once(Write, NO_SPACE), true),
        (once(SetLength, NO_SPACE), true),
        (once(Write, IO_ERROR), false),
        // What a sync did not write may be lost, whatever it says, and the next sync would not say it again.
        (once(Sync, IO_ERROR), false),
        (once(Sync, NO_SPACE), false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let faults = Faults::some();
        let store = open_faulty(directory.path(), &faults);
        put(&store, "a", 1);
        let before = inode(directory.path());
        faults.arm(plan);
        // Large enough that the file must grow.
        let tree = json!({"metadata": {"name": "b"}, "note": "x".repeat(OBJECT_BYTES_MAX / 2)});
        let mut refused = Ok(());
        for count in 0..50 {
            let key = Key::new("ns", &format!("large-{count}"));
            refused = wait(store.commit(&pods(), &key, None, &tree, Fate::Kept)).map(drop);
            if refused.is_err() {
                break;
            }
        }
        assert!(matches!(&refused, Err(Refused::Disk(_))), "{plan:?}: {refused:?}");
        until("it recovers", || store.health() == Health::Good);
        assert_eq!(inode(directory.path()) == before, opened_again, "{plan:?}");
        put(&store, "c", 3);
        let held = store.list(&pods(), None, None, None).unwrap().items.len();
        drop(store);
        let store = open(directory.path()).unwrap();
        assert_eq!(store.list(&pods(), None, None, None).unwrap().items.len(), held);
    }
}

#[test]
fn a_directory_that_cannot_be_synced_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::some();
    let store = open_faulty(directory.path(), &faults);
    put(&store, "a", 1);
    faults.arm(Plan { failing: 2, ..once(Operation::SyncDirectory, IO_ERROR) });
    fs::remove_file(directory.path().join("store.redb")).unwrap();
    until("a new file, and no sync", || faults.left().failing == 1);
    until(
        "it says why",
        || matches!(store.health(), Health::Failing(why) if why.contains("cannot be synced: Input/output error")),
    );
    until("it recovers", || store.health() == Health::Good);
    assert_eq!(faults.left().failing, 0);
    put(&store, "b", 2);
    let expected = notes(&store);
    drop(store);
    assert_eq!(notes(&open(directory.path()).unwrap()), expected);
}

/// One request to a server, and what it answers.
async fn ask(server: &crate::ApiServer, method: &str, path: &str, body: Value) -> (u16, String) {
    use http_body_util::{BodyExt as _, Full};
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json").body(Full::from(body)).unwrap();
    let response = server.handle(request).await;
    let status = response.status().as_u16();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(text.to_vec()).unwrap())
}

#[tokio::test]
async fn a_disk_that_is_read_only_for_a_while_refuses_writes_and_says_why_until_it_is_not() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::some();
    let mut builder = crate::ApiServer::builder().directory(directory.path());
    builder.disk_faults = faults.clone();
    let server = builder.build().unwrap();
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    assert_eq!(ask(&server, "POST", MAPS, map("before")).await.0, 201);
    faults.arm(always(READ_ONLY));
    for name in ["a", "b", "c"] {
        let (status, answer) = ask(&server, "POST", MAPS, map(name)).await;
        assert!(status == 500 && answer.contains("Read-only file system"), "{status} {answer}");
        assert_eq!(ask(&server, "GET", &format!("{MAPS}/{name}"), Value::Null).await.0, 404);
    }
    let (status, why) = ask(&server, "GET", "/readyz", Value::Null).await;
    assert!(
        status == 500 && why.contains("[-]store failed: ") && why.contains("Read-only file system"),
        "{why}"
    );
    assert_eq!(ask(&server, "GET", "/livez", Value::Null).await.0, 200, "a restart would not help");
    assert_eq!(ask(&server, "GET", &format!("{MAPS}/before"), Value::Null).await.0, 200);
    faults.disarm();
    let deadline = Instant::now() + Duration::from_secs(30);
    while ask(&server, "GET", "/readyz", Value::Null).await.0 != 200 {
        assert!(Instant::now() < deadline, "it does not recover");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ask(&server, "POST", MAPS, map("after")).await.0, 201);
    drop(server);
    let server = crate::ApiServer::builder().directory(directory.path()).build().unwrap();
    for (name, status) in [("before", 200), ("a", 404), ("after", 200)] {
        assert_eq!(ask(&server, "GET", &format!("{MAPS}/{name}"), Value::Null).await.0, status, "{name}");
    }
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
