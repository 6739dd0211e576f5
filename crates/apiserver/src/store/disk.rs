//! The store's directory: one `redb` file, written by one thread that commits in groups.
//!
//! `redb` was chosen because it is a single file of plain Rust with real transactions: a crash at any
//! moment leaves the last whole commit, with no log to replay by hand and no C to compile. Writers queue
//! their change and wait; the thread takes all that has queued up, commits once, and then tells the store
//! how far everything is safe. So many writers share one `fsync`, and none is answered before its own.

use super::memory::Memory;
use super::tentative::Tentative;
use super::{CollectionId, Fate, Key, Object, Revision};
use bytes::Bytes;
use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Objects by `collection NUL namespace NUL name`: revision and JSON.
const OBJECTS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("objects");
/// Facts about the whole store.
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
const REVISION: &str = "revision";
const FORMAT: &str = "format";
const FORMAT_VERSION: u64 = 1;

/// Why a directory cannot serve as a store.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The directory cannot be made or written.
    #[error("cannot use {path} as a store")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has the store open.
    #[error("the store {path} is in use by another process")]
    InUse {
        /// The store's file.
        path: PathBuf,
    },
    /// The file is not a store, or is damaged.
    #[error("the store {path} cannot be read; it was left as it is")]
    Unreadable {
        /// The store's file.
        path: PathBuf,
        /// What was wrong.
        source: Box<redb::Error>,
    },
    /// The file was written by a newer version.
    #[error("the store {path} has format {found}, this program reads format {FORMAT_VERSION}")]
    Format {
        /// The store's file.
        path: PathBuf,
        /// The format found.
        found: u64,
    },
    /// An entry of the file makes no sense.
    #[error("the store {path} holds an entry that is not one: {key:?}")]
    Entry {
        /// The store's file.
        path: PathBuf,
        /// The entry's key.
        key: String,
    },
}

/// What a store held when it was opened.
pub(super) struct Loaded {
    pub objects: Vec<(CollectionId, Object)>,
    pub revision: Revision,
}

struct Change {
    key: String,
    object: Arc<Object>,
    fate: Fate,
}

/// The way to the thread that writes the file. When it is dropped, the file is closed in good order, and
/// can be opened again.
pub(crate) struct Disk {
    /// Taken when the disk is dropped, which ends the thread.
    queue: Option<Sender<Change>>,
    writer: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
}

/// Opens the file of a directory and reads it.
pub(super) fn open(directory: &Path) -> Result<(Database, Loaded), DiskError> {
    let unusable = |source| DiskError::Directory { path: directory.to_owned(), source };
    std::fs::create_dir_all(directory).map_err(unusable)?;
    let path = directory.join("store.redb");
    let unreadable = |source: redb::Error| match source {
        redb::Error::DatabaseAlreadyOpen => DiskError::InUse { path: path.clone() },
        // That is how `redb` says that a file is none of its own, or not all of one.
        redb::Error::Io(source)
            if !matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            unusable(source)
        }
        other => DiskError::Unreadable { path: path.clone(), source: Box::new(other) },
    };
    let file = open_private(&path).map_err(unusable)?;
    let file = FileBackend::new(file).map_err(|e| unreadable(e.into()))?;
    let file = Tentative::new(file).map_err(unusable)?;
    let database = Database::builder().create_with_backend(file.clone()).map_err(|e| unreadable(e.into()))?;
    let loaded = load(&database, &path, &unreadable)?;
    file.settle().map_err(unusable)?;
    Ok((database, loaded))
}

impl Disk {
    /// Starts the writing thread, which tells `memory` how far everything is safe.
    pub(super) fn start(database: Database, memory: Arc<Memory>) -> Disk {
        let (queue, incoming) = channel();
        let failure = Arc::default();
        let shared = Arc::clone(&failure);
        // Asked here, where nothing can have been written yet.
        let safe = memory.read().revision;
        let writer = std::thread::spawn(move || write_groups(&database, &incoming, &memory, safe, &shared));
        Disk { queue: Some(queue), writer: Some(writer), failure }
    }

    pub(super) fn enqueue(&self, id: &CollectionId, object: &Arc<Object>, fate: Fate) {
        let key = format!("{}\0{}\0{}", id.as_str(), object.key.namespace, object.key.name);
        // The thread ends only after the store, which holds this sender.
        if let Some(queue) = &self.queue {
            let _ = queue.send(Change { key, object: object.clone(), fate });
        }
    }

    /// Why writing failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.writer.take() {
            // Should it have panicked, there is nothing left to do here.
            let _ = thread.join();
        }
    }
}

/// Opens the file, or makes one that only its owner can read: a store holds secrets.
fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

fn load(
    database: &Database,
    path: &Path,
    unreadable: &dyn Fn(redb::Error) -> DiskError,
) -> Result<Loaded, DiskError> {
    prepare(database).map_err(unreadable)?;
    let read = || -> Result<_, redb::Error> {
        let transaction = database.begin_read()?;
        let facts = transaction.open_table(FACTS)?;
        let fact = |name| -> Result<u64, redb::Error> { Ok(facts.get(name)?.map_or(0, |v| v.value())) };
        let mut entries = Vec::new();
        for entry in transaction.open_table(OBJECTS)?.iter()? {
            let (key, value) = entry?;
            let (revision, json) = value.value();
            entries.push((key.value().to_owned(), revision, Bytes::copy_from_slice(json)));
        }
        Ok((fact(FORMAT)?, fact(REVISION)?, entries))
    };
    let (format, revision, entries) = read().map_err(unreadable)?;
    if format != FORMAT_VERSION {
        return Err(DiskError::Format { path: path.to_owned(), found: format });
    }
    let objects = entries.into_iter().map(|(key, revision, json)| {
        let mut parts = key.splitn(3, '\0');
        let (Some(id), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(DiskError::Entry { path: path.to_owned(), key });
        };
        Ok((CollectionId(id.into()), Object::new(Key::new(namespace, name), revision, json)))
    });
    Ok(Loaded { objects: objects.collect::<Result<_, _>>()?, revision })
}

fn prepare(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(OBJECTS)?;
    {
        let mut facts = transaction.open_table(FACTS)?;
        if facts.get(FORMAT)?.is_none() {
            facts.insert(FORMAT, FORMAT_VERSION)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn write_groups(
    database: &Database,
    incoming: &Receiver<Change>,
    memory: &Memory,
    mut safe: Revision,
    failure: &Mutex<Option<String>>,
) {
    while let Ok(first) = incoming.recv() {
        let group: Vec<Change> = std::iter::once(first).chain(incoming.try_iter()).collect();
        let last = group.last().map_or(safe, |change| change.object.revision);
        let written = write_group(database, &group, last);
        let set = |to| *failure.lock().unwrap_or_else(PoisonError::into_inner) = to;
        match written {
            Ok(()) => {
                safe = last;
                memory.made_durable(last);
            }
            Err(error) => {
                // New writes are refused from here on until what was queued is taken back.
                set(Some(format!("the store's disk refused a write: {error}")));
                memory.take_back(safe);
                // What was queued meanwhile has been taken back as well.
                incoming.try_iter().for_each(drop);
            }
        }
    }
}

fn write_group(database: &Database, group: &[Change], last: Revision) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for change in group {
            match change.fate {
                Fate::Kept => {
                    objects.insert(&*change.key, (change.object.revision, &*change.object.json))?;
                }
                Fate::Removed => {
                    objects.remove(&*change.key)?;
                }
            }
        }
        transaction.open_table(FACTS)?.insert(REVISION, last)?;
    }
    transaction.commit()?;
    Ok(())
}
