//! What stands in the file: one table of objects, each with a checksum, and one of facts.

use super::super::{CollectionId, Fate, Key, Object, Revision};
use bytes::Bytes;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition, TableError};
use ring::digest::{Context, SHA256};
use std::collections::HashMap;
use std::sync::Arc;

/// Objects by `collection NUL namespace NUL name`: revision, checksum of all of it, and JSON.
const OBJECTS: TableDefinition<'_, &str, (u64, u64, &[u8])> = TableDefinition::new("objects-2");
/// As format 1 had them: without a checksum.
const OBJECTS_1: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("objects");
/// Facts about the whole store.
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
/// Holds nothing for long: writing to it shows that there is room.
const ROOM: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("room");
const REVISION: &str = "revision";
const FORMAT: &str = "format";
/// The format that is written.
pub(super) const FORMAT_VERSION: u64 = 2;

/// What a store held when it was opened.
pub(in super::super) struct Loaded {
    pub objects: Vec<(CollectionId, Object)>,
    pub revision: Revision,
    /// The file has an older format, see [`migrate`].
    pub old_format: bool,
}

/// Everything that a file must hold.
pub(in super::super) struct Snapshot {
    pub objects: Vec<(CollectionId, Arc<Object>)>,
    pub revision: Revision,
}

/// Why a file could not be loaded.
pub(super) enum Unloadable {
    Redb(redb::Error),
    /// The format is of another version of this program.
    Format(u64),
    /// A key that is none.
    Entry(String),
    /// A value that is not what was written.
    Damaged(String),
}

impl<E: Into<redb::Error>> From<E> for Unloadable {
    fn from(error: E) -> Self {
        Unloadable::Redb(error.into())
    }
}

/// The key of an object in the file.
pub(super) fn file_key(id: &CollectionId, key: &Key) -> String {
    format!("{}\0{}\0{}", id.as_str(), key.namespace, key.name)
}

/// An object as a person would name it: `configmaps default/settings`.
fn readable(id: &str, namespace: &str, name: &str) -> String {
    let (group, plural) = id.split_once('/').unwrap_or(("", id));
    let resource = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    if namespace.is_empty() { format!("{resource} {name}") } else { format!("{resource} {namespace}/{name}") }
}

/// The first eight bytes of the SHA-256 of key, revision and text: a value in the place of another is found too.
fn checksum(key: &str, revision: Revision, json: &[u8]) -> u64 {
    let mut context = Context::new(&SHA256);
    context.update(&(key.len() as u64).to_le_bytes());
    context.update(key.as_bytes());
    context.update(&revision.to_le_bytes());
    context.update(json);
    let digest = context.finish();
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_ref()[..8]);
    u64::from_le_bytes(first)
}

/// Reads everything, and compares every value with its checksum.
pub(super) fn load(database: &Database) -> Result<Loaded, Unloadable> {
    let transaction = database.begin_read()?;
    let facts = match transaction.open_table(FACTS) {
        Ok(facts) => facts,
        Err(TableError::TableDoesNotExist(_)) => {
            drop(transaction);
            prepare(database)?;
            return Ok(Loaded { objects: Vec::new(), revision: 0, old_format: false });
        }
        Err(error) => return Err(error.into()),
    };
    let fact = |name| -> Result<u64, redb::Error> { Ok(facts.get(name)?.map_or(0, |v| v.value())) };
    let (format, revision) = (fact(FORMAT)?, fact(REVISION)?);
    let mut objects = Vec::new();
    match format {
        1 => {
            for entry in transaction.open_table(OBJECTS_1)?.iter()? {
                let (key, value) = entry?;
                let (revision, json) = value.value();
                objects.push(object(key.value(), revision, json, None)?);
            }
        }
        FORMAT_VERSION => {
            for entry in transaction.open_table(OBJECTS)?.iter()? {
                let (key, value) = entry?;
                let (revision, checksum, json) = value.value();
                objects.push(object(key.value(), revision, json, Some(checksum))?);
            }
        }
        other => return Err(Unloadable::Format(other)),
    }
    Ok(Loaded { objects, revision, old_format: format != FORMAT_VERSION })
}

fn object(
    key: &str,
    revision: Revision,
    json: &[u8],
    expected: Option<u64>,
) -> Result<(CollectionId, Object), Unloadable> {
    let mut parts = key.splitn(3, '\0');
    let (Some(id), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Unloadable::Entry(key.to_owned()));
    };
    if expected.is_some_and(|expected| expected != checksum(key, revision, json)) {
        return Err(Unloadable::Damaged(readable(id, namespace, name)));
    }
    let object = Object::new(Key::new(namespace, name), revision, Bytes::copy_from_slice(json));
    Ok((CollectionId(id.into()), object))
}

fn prepare(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(OBJECTS)?;
    transaction.open_table(FACTS)?.insert(FORMAT, FORMAT_VERSION)?;
    transaction.commit()?;
    Ok(())
}

/// Brings a file of an older format to the present one, in one transaction.
pub(super) fn migrate(database: &Database, loaded: &Loaded) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.delete_table(OBJECTS_1)?;
    {
        let mut table = transaction.open_table(OBJECTS)?;
        for (id, object) in &loaded.objects {
            let key = file_key(id, &object.key);
            let sum = checksum(&key, object.revision, &object.json);
            table.insert(&*key, (object.revision, sum, &*object.json))?;
        }
        transaction.open_table(FACTS)?.insert(FORMAT, FORMAT_VERSION)?;
    }
    transaction.commit()?;
    Ok(())
}

/// One change of the file.
pub(super) struct Change<'a> {
    pub key: String,
    pub object: &'a Object,
    pub fate: Fate,
}

/// Makes changes durable, all or none.
pub(super) fn write<'a>(
    database: &Database,
    changes: impl Iterator<Item = Change<'a>>,
    revision: Revision,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for Change { key, object, fate } in changes {
            match fate {
                Fate::Kept => {
                    let sum = checksum(&key, object.revision, &object.json);
                    objects.insert(&*key, (object.revision, sum, &*object.json))?;
                }
                Fate::Removed => drop(objects.remove(&*key)?),
            }
        }
        transaction.open_table(FACTS)?.insert(REVISION, revision)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Makes a file that was read hold a snapshot and nothing else.
pub(super) fn reconcile(database: &Database, loaded: &Loaded, state: &Snapshot) -> Result<(), redb::Error> {
    let mut wanted: HashMap<String, &Arc<Object>> =
        state.objects.iter().map(|(id, object)| (file_key(id, &object.key), object)).collect();
    let mut changes = Vec::new();
    for (id, found) in &loaded.objects {
        let key = file_key(id, &found.key);
        match wanted.remove(&key) {
            Some(object) if object.revision == found.revision && object.json == found.json => {}
            Some(object) => changes.push(Change { key, object, fate: Fate::Kept }),
            None => changes.push(Change { key, object: found, fate: Fate::Removed }),
        }
    }
    changes.extend(wanted.into_iter().map(|(key, object)| Change { key, object, fate: Fate::Kept }));
    write(database, changes.into_iter(), state.revision)
}

/// Shows that so many bytes can be written.
pub(super) fn make_room(database: &Database, bytes: usize) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(ROOM)?.insert(0, &*vec![0; bytes])?;
    transaction.commit()?;
    let transaction = database.begin_write()?;
    transaction.delete_table(ROOM)?;
    transaction.commit()?;
    Ok(())
}
