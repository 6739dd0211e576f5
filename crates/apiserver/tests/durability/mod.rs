//! A server on a directory, killed, doubled, damaged and filled up: nothing it has acknowledged is missing afterwards.
//!
//! The server runs in a child process, which is this test binary itself with one ignored test chosen.

pub(crate) mod child;
pub(crate) mod client;
mod mount;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::durability::child::Child;
use crate::durability::client::Client;
use crate::durability::mount::SmallDisk;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: usize = 8;

/// What one writer knows of one object: what was acknowledged, and what may have happened without being so.
#[derive(Clone, Debug, Default)]
struct Known {
    acknowledged: Held,
    /// What a write would leave that has been sent and not been answered; the same if there is none.
    possible: Held,
}

/// The number in an object; none if there is no object.
type Held = Option<u64>;

type Ledger = Arc<Mutex<BTreeMap<String, Known>>>;

/// An object that holds its number several times, so that half of it would show.
fn object(name: &str, number: u64) -> Value {
    let text = number.to_string();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"number": text}},
        "data": {"number": text, "filler": text.repeat(100)},
    })
}

/// The number that an object holds. Fails for half an object.
fn number(object: &Value) -> u64 {
    let text = object["data"]["number"].as_str().expect("a number");
    assert_eq!(object["metadata"]["labels"]["number"], text);
    assert_eq!(object["data"]["filler"], text.repeat(100));
    text.parse().expect("a number")
}

/// Creates, replaces and deletes until the server is gone.
async fn write(client: Client, writer: usize, ledger: Ledger, start: u64) {
    let note = |name: &str, change: &dyn Fn(&mut Known)| {
        change(ledger.lock().unwrap().entry(name.to_owned()).or_default());
    };
    for count in start.. {
        let name = format!("w{writer}-{}", count % 3);
        let path = format!("{MAPS}/{name}");
        let there = ledger.lock().unwrap().get(&name).and_then(|known| known.acknowledged);
        let (method, path, body, result) = match there {
            None => ("POST", MAPS, Some(object(&name, count)), Some(count)),
            Some(_) if count % 5 == 0 => ("DELETE", path.as_str(), None, None),
            Some(_) => ("PUT", path.as_str(), Some(object(&name, count)), Some(count)),
        };
        note(&name, &|known| known.possible = result);
        match client.send(method, path, body.as_ref()).await {
            Ok((status, answer)) => {
                assert!(status < 300, "{method} {path}: {status} {answer}");
                note(&name, &|known| *known = Known { acknowledged: result, possible: result });
            }
            Err(_) => return,
        }
    }
}

/// Every object is as it was acknowledged, or as a write would have left it that was under way. Then both agree again.
async fn check(client: &Client, ledger: &Ledger) {
    let (status, list) = client.send("GET", MAPS, None).await.expect("an answer");
    assert_eq!(status, 200, "{list}");
    let name = |item: &Value| item["metadata"]["name"].as_str().expect("a name").to_owned();
    let items = list["items"].as_array().expect("items").iter().filter(|item| name(item).starts_with('w'));
    let found: BTreeMap<String, u64> = items.map(|item| (name(item), number(item))).collect();
    let mut ledger = ledger.lock().unwrap();
    for (name, known) in ledger.iter_mut() {
        let found = found.get(name).copied();
        assert!(found == known.acknowledged || found == known.possible, "{name} is {found:?}, but {known:?}");
        *known = Known { acknowledged: found, possible: found };
    }
    for name in found.keys() {
        assert!(ledger.contains_key(name), "{name} was never written");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let directory = TempDir::new().unwrap();
    let ledger = Ledger::default();
    let mut revision = 0;
    for round in 0..4 {
        let mut child = Child::start(directory.path()).unwrap();
        let client = child.client();
        check(&client, &ledger).await;
        let resumed = client.revision().await;
        assert!(resumed >= revision, "the revision goes from {revision} back to {resumed}");
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(write(client.clone(), writer, ledger.clone(), round * 1_000_000)))
            .collect();
        // Killed at different moments, at least one of them after many writes.
        tokio::time::sleep(Duration::from_millis(120 * (round + 1))).await;
        revision = client.revision().await;
        child.kill();
        for writer in writers {
            writer.await.unwrap();
        }
    }
    let child = Child::start(directory.path()).unwrap();
    check(&child.client(), &ledger).await;
    let written = ledger.lock().unwrap().len();
    assert!(written >= WRITERS, "only {written} objects were written at all");
}

/// The first thing that a watch of config maps from this revision says: its type, and the code of an error.
async fn first_of_watch(client: &Client, from: u64) -> (String, Value) {
    let watch = format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={from}");
    let (status, events) = client.lines(&watch).await.unwrap();
    assert_eq!(status, 200, "{events:?}");
    (events[0]["type"].as_str().unwrap().to_owned(), events[0]["object"]["code"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_from_before_a_restart_start_again() {
    let directory = TempDir::new().unwrap();
    let mut child = Child::start(directory.path()).unwrap();
    let client = child.client();
    let old = client.revision().await;
    let (_, created) = client.send("POST", MAPS, Some(&object("w-a", 1))).await.unwrap();
    let newest = client.revision().await;
    let written: u64 = created["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    // The controllers may have written after it.
    assert!(old < written && written <= newest, "{old} < {written} <= {newest}");
    child.kill();

    let child = Child::start(directory.path()).unwrap();
    let client = child.client();
    let restarted = client.revision().await;
    client.send("POST", MAPS, Some(&object("w-b", 2))).await.unwrap();
    for from in [old, written, newest] {
        assert_eq!(first_of_watch(&client, from).await, ("ERROR".into(), json!(410)), "from {from}");
    }
    assert_eq!(first_of_watch(&client, restarted).await, ("ADDED".into(), Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_copy_does_not_go_on_from_revisions_that_it_never_had() {
    let directory = TempDir::new().unwrap();
    let mut child = Child::start(directory.path()).unwrap();
    child.client().send("POST", MAPS, Some(&object("w-a", 1))).await.unwrap();
    child.kill();
    let copy = fs::read(store_file(directory.path())).unwrap();
    let mut child = Child::start(directory.path()).unwrap();
    child.client().send("POST", MAPS, Some(&object("w-b", 2))).await.unwrap();
    let known = child.client().revision().await;
    child.kill();
    fs::write(store_file(directory.path()), copy).unwrap();
    let child = Child::start(directory.path()).unwrap();
    let client = child.client();
    for count in 0..5 {
        client.send("POST", MAPS, Some(&object(&format!("w-c{count}"), 3))).await.unwrap();
    }
    assert!(client.revision().await > known);
    assert_eq!(first_of_watch(&client, known).await, ("ERROR".into(), json!(410)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_has_one_server_at_a_time() {
    let directory = TempDir::new().unwrap();
    let mut first = Child::start(directory.path()).unwrap();
    let refused = Child::start(directory.path()).unwrap_err();
    assert!(refused.contains("in use by another process"), "{refused}");
    let (status, _) = first.client().send("POST", MAPS, Some(&object("w-a", 1))).await.unwrap();
    assert_eq!(status, 201);
    first.kill();
    let second = Child::start(directory.path()).unwrap();
    let (status, _) = second.client().send("GET", &format!("{MAPS}/w-a"), None).await.unwrap();
    assert_eq!(status, 200);
}

fn store_file(directory: &Path) -> std::path::PathBuf {
    directory.join("store.redb")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_refused_and_left_alone() {
    let directory = TempDir::new().unwrap();
    let mut child = Child::start(directory.path()).unwrap();
    for count in 0..50 {
        child.client().send("POST", MAPS, Some(&object(&format!("w-{count}"), count))).await.unwrap();
    }
    child.kill();
    let file = store_file(directory.path());
    let whole = fs::read(&file).unwrap();
    let noise = |range: std::ops::Range<usize>| {
        let mut damaged = whole.clone();
        for (place, byte) in damaged[range].iter_mut().enumerate() {
            *byte = u8::try_from((place * 31 + 7) % 251).unwrap();
        }
        damaged
    };
    let half = whole.len() / 2;
    let damages = [
        ("no store at all", b"not a database\n".repeat(500)),
        ("a header of noise", noise(0..4096)),
        ("nothing but noise after the header", noise(4096..whole.len())),
        ("half of it", whole[..half].to_vec()),
        ("the first bytes", whole[..100].to_vec()),
    ];
    for (what, damaged) in damages {
        fs::write(&file, &damaged).unwrap();
        let refused = Child::start(directory.path()).err().unwrap_or_else(|| panic!("served {what}"));
        assert!(refused.contains("store.redb"), "{what}: {refused}");
        assert!(refused.contains("left as it is") || refused.contains("not one"), "{what}: {refused}");
        assert!(fs::read(&file).unwrap() == damaged, "{what}: the file was changed");
    }
    fs::write(&file, &whole).unwrap();
    let child = Child::start(directory.path()).unwrap();
    let (status, _) = child.client().send("GET", &format!("{MAPS}/w-49"), None).await.unwrap();
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount("a server on a full disk", 4) else { return };
    let mut child = Child::start(disk.path()).unwrap();
    let client = child.client();
    let filler = "x".repeat(200_000);
    let mut acknowledged = Vec::new();
    let mut refused = None;
    for count in 0..100 {
        let name = format!("w-{count}");
        let mut large = object(&name, count);
        large["data"]["large"] = filler.as_str().into();
        let (status, answer) = client.send("POST", MAPS, Some(&large)).await.unwrap();
        if status == 201 {
            acknowledged.push(name);
        } else {
            refused = Some((status, answer, name));
            break;
        }
    }
    let (status, answer, name) = refused.expect("4 MiB do not hold 20 MB");
    assert_eq!((status, answer["reason"].as_str()), (500, Some("InternalError")), "{answer}");
    // Reading goes on, and what was refused is not there.
    let (status, _) = client.send("GET", &format!("{MAPS}/{name}"), None).await.unwrap();
    assert_eq!(status, 404);
    let (status, _) = client.send("GET", &format!("{MAPS}/w-0"), None).await.unwrap();
    assert_eq!(status, 200);
    let (status, why) = client.text("/readyz").await.unwrap();
    assert!(
        status == 500 && why.contains("[-]store failed: ") && why.contains("No space left"),
        "{status} {why}"
    );
    assert_eq!(client.text("/livez").await.unwrap().0, 200, "a restart would not help");
    child.kill();
    let child = Child::start(disk.path()).unwrap();
    for name in acknowledged {
        let (status, _) = child.client().send("GET", &format!("{MAPS}/{name}"), None).await.unwrap();
        assert_eq!(status, 200, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_go_on_when_a_full_disk_has_room_again() {
    let Some(disk) = SmallDisk::mount("a server on a disk that was full", 8) else { return };
    let child = Child::start(disk.path()).unwrap();
    let client = child.client();
    let (status, _) = client.send("POST", MAPS, Some(&object("w-before", 1))).await.unwrap();
    assert_eq!(status, 201);
    let ballast = disk.path().join("ballast");
    // Until nothing fits any more.
    let mut fill = fs::File::create(&ballast).unwrap();
    while std::io::Write::write_all(&mut fill, &[1; 4096]).is_ok() {}
    drop(fill);
    let mut large = object("w-large", 2);
    large["data"]["large"] = "x".repeat(900_000).into();
    let mut refused = 0;
    for count in 0..8 {
        large["metadata"]["name"] = format!("w-large-{count}").into();
        refused += usize::from(client.send("POST", MAPS, Some(&large)).await.unwrap().0 == 500);
    }
    assert!(refused > 0, "the disk was not full");
    assert_eq!(client.text("/readyz").await.unwrap().0, 500);
    fs::remove_file(&ballast).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while client.text("/readyz").await.unwrap().0 != 200 {
        assert!(std::time::Instant::now() < deadline, "{:?}", client.text("/readyz").await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (status, answer) = client.send("POST", MAPS, Some(&object("w-after", 3))).await.unwrap();
    assert_eq!(status, 201, "{answer}");
    let (_, before) = client.send("GET", MAPS, None).await.unwrap();
    drop(child);
    let child = Child::start(disk.path()).unwrap();
    let (_, after) = child.client().send("GET", MAPS, None).await.unwrap();
    assert_eq!(before["items"], after["items"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_replaced_under_a_server_makes_it_unready() {
    let directory = TempDir::new().unwrap();
    let child = Child::start(directory.path()).unwrap();
    let file = store_file(directory.path());
    fs::rename(&file, directory.path().join("moved")).unwrap();
    fs::write(&file, "another").unwrap();
    let (status, answer) = child.client().send("POST", MAPS, Some(&object("w-a", 1))).await.unwrap();
    assert!(status == 500 && answer["message"].as_str().unwrap().contains("was replaced"), "{answer}");
    let (status, why) = child.client().text("/readyz").await.unwrap();
    assert!(status == 500 && why.contains("was replaced by another one; restart the server"), "{why}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "another");
    fs::rename(directory.path().join("moved"), &file).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while child.client().text("/readyz").await.unwrap().0 != 200 {
        assert!(std::time::Instant::now() < deadline, "{:?}", child.client().text("/readyz").await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = child.log();
    let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!((count("the store takes no writes"), count("the store takes writes")), (1, 1), "{log}");
    assert!(log.contains("was replaced by another one"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_directory_is_refused_by_name() {
    let Some(disk) = SmallDisk::mount("a server in a read-only directory", 4) else { return };
    disk.make_read_only();
    let refused = Child::start(disk.path()).unwrap_err();
    assert!(refused.contains("cannot use") && refused.contains("Read-only"), "{refused}");
}
