//! The store's directory: one `redb` file, written by one thread that commits in groups.
//!
//! `redb` was chosen because it is a single file of plain Rust with real transactions: a crash at any moment leaves the last
//! whole commit, with no log to replay by hand and no C to compile. Writers queue their change and wait; the thread takes all that
//! has queued up and commits once. So many writers share one `fsync`, and none is answered before its own.
//!
//! - [`format`]: what stands in the file, and the checksums.
//! - [`keeper`]: the thread, and how it recovers.

mod format;
mod keeper;

pub(super) use format::{Loaded, Snapshot};
pub(super) use keeper::Writer;

use super::contain::contain;
use super::faults::{Faults, Operation};
use super::panic_text;
use super::tentative::Tentative;
use format::{FORMAT_VERSION, Unloadable};
use redb::Database;
use redb::backends::FileBackend;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The store's file in its directory.
const FILE: &str = "store.redb";
/// A file that is to take its place.
const NEW_FILE: &str = "store.redb.new";
/// A file is made smaller when it is opened if more than this part of it (one over) is unused, and it is larger than that.
const COMPACT_OVER: u64 = 4;
const COMPACT_BYTES_MIN: u64 = 16 << 20;

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
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file was written by a newer version.
    #[error("the store {path} has format {found}, this program reads format {FORMAT_VERSION}")]
    Format {
        /// The store's file.
        path: PathBuf,
        /// The format found.
        found: u64,
    },
    /// A value is not what was written.
    #[error(
        "the store {path} is damaged: what it holds of {object} does not match its checksum; it was left as it is"
    )]
    Damaged {
        /// The store's file.
        path: PathBuf,
        /// The object, as `resource namespace/name`.
        object: String,
    },
    /// An entry of the file makes no sense.
    #[error("the store {path} is damaged: it holds an entry that is not one: {key:?}; it was left as it is")]
    Entry {
        /// The store's file.
        path: PathBuf,
        /// The entry's key.
        key: String,
    },
}

/// A file that is open, and ours.
pub(super) struct Open {
    database: Database,
    /// Held open, so that no other file can get its number.
    pin: File,
}

/// Opens the file of a directory and reads it.
pub(super) fn open(directory: &Path, faults: &Faults) -> Result<(Open, Loaded), DiskError> {
    let unusable = |source| DiskError::Directory { path: directory.to_owned(), source };
    std::fs::create_dir_all(directory).map_err(unusable)?;
    let opened = open_file(&directory.join(FILE), faults)?;
    // It may have been made just now.
    sync_directory(directory, faults).map_err(unusable)?;
    Ok(opened)
}

/// Opens a file and reads all of it. It is not changed before it has been understood.
fn open_file(path: &Path, faults: &Faults) -> Result<(Open, Loaded), DiskError> {
    let directory = path.parent().unwrap_or(path);
    let unusable = |source| DiskError::Directory { path: directory.to_owned(), source };
    let unreadable = |source: redb::Error| match source {
        redb::Error::DatabaseAlreadyOpen => DiskError::InUse { path: path.to_owned() },
        // That is how `redb` says that a file is none of its own, or not all of one.
        redb::Error::Io(source)
            if !matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            unusable(source)
        }
        other => DiskError::Unreadable { path: path.to_owned(), source: Box::new(other) },
    };
    let file = open_private(path).map_err(unusable)?;
    let pin = File::open(path).map_err(unusable)?;
    let backend = FileBackend::new(file).map_err(|e| unreadable(e.into()))?;
    let file = Tentative::new(backend, faults.clone()).map_err(unusable)?;
    // Where pages are damaged, `redb` may panic. Outside of this, it is dropped while nothing else unwinds.
    let mut opened = None;
    let read = contain(|| -> Result<Loaded, Unloadable> {
        let database = opened.insert(Database::builder().create_with_backend(file.clone())?);
        let loaded = format::load(database)?;
        // Values are whole; this is about what is between them. It would repair, but there is nothing to repair from.
        if !database.check_integrity()? {
            return Err(Unloadable::Redb(redb::Error::Corrupted(
                "its pages do not match their checksums".into(),
            )));
        }
        Ok(loaded)
    });
    let failure = match read {
        Ok(Ok(loaded)) => {
            let tidied = file.settle().map_err(unusable).and_then(|()| {
                let tidied = contain(|| match &mut opened {
                    Some(database) => tidy(database, path, &loaded),
                    None => Ok(()),
                });
                let panicked = |panic: &(dyn std::any::Any + Send)| DiskError::Unreadable {
                    path: path.to_owned(),
                    source: panic_text(panic).into(),
                };
                tidied.map_or_else(|panic| Err(panicked(&*panic)), |tidied| tidied.map_err(unreadable))
            });
            match (tidied, opened.take()) {
                (Ok(()), Some(database)) => return Ok((Open { database, pin }, loaded)),
                (Ok(()), None) => unusable(io::ErrorKind::Other.into()),
                (Err(failure), database) => {
                    opened = database;
                    failure
                }
            }
        }
        Ok(Err(Unloadable::Redb(error))) => unreadable(error),
        Ok(Err(Unloadable::Format(found))) => DiskError::Format { path: path.to_owned(), found },
        Ok(Err(Unloadable::Entry(key))) => DiskError::Entry { path: path.to_owned(), key },
        Ok(Err(Unloadable::Damaged(object))) => DiskError::Damaged { path: path.to_owned(), object },
        Err(panic) => DiskError::Unreadable { path: path.to_owned(), source: panic_text(&*panic).into() },
    };
    // What it would write goes nowhere, and a second panic is of no interest.
    let _ = contain(|| drop(opened));
    Err(failure)
}

/// Brings a file that was understood to the present format and, if most of it is unused, to a smaller size.
fn tidy(database: &mut Database, path: &Path, loaded: &Loaded) -> Result<(), redb::Error> {
    if loaded.old_format {
        format::migrate(database, loaded)?;
    }
    let used: u64 = loaded.objects.iter().map(|(_, object)| object.json.len() as u64 + 256).sum();
    let size = std::fs::metadata(path)?.len();
    if size > COMPACT_BYTES_MIN && size / COMPACT_OVER > used {
        database.compact()?;
    }
    Ok(())
}

/// Writes a file that holds `state`, and puts it in the place of the store's. Its name is durable after [`sync_directory`].
fn write_new(directory: &Path, state: &Snapshot, faults: &Faults) -> Result<Open, DiskError> {
    let path = directory.join(NEW_FILE);
    let unusable = |source| DiskError::Directory { path: directory.to_owned(), source };
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unusable(error)),
        _ => {}
    }
    let written = open_file(&path, faults).and_then(|(open, loaded)| {
        let failed = |e: redb::Error| DiskError::Unreadable { path: path.clone(), source: Box::new(e) };
        format::reconcile(&open.database, &loaded, state).map_err(failed)?;
        Ok(open)
    });
    let placed = written.and_then(|open| {
        std::fs::rename(&path, directory.join(FILE)).map_err(unusable)?;
        Ok(open)
    });
    if placed.is_err() {
        // It may be what fills the disk.
        let _ = std::fs::remove_file(&path);
    }
    placed
}

/// Makes the names in a directory durable, where the file system knows how.
fn sync_directory(directory: &Path, faults: &Faults) -> io::Result<()> {
    faults.strike(Operation::SyncDirectory)?;
    if cfg!(not(unix)) {
        return Ok(());
    }
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

/// Whether the file at this path is this one.
#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (ours, there) = (file.metadata()?, std::fs::metadata(path)?);
    Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_same(_: &File, path: &Path) -> io::Result<bool> {
    std::fs::metadata(path).map(|_| true)
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
