//! The thread that writes the file, and what it does when it cannot.

use super::super::commit::{self, Commits, keep};
use super::super::contain::contain;
use super::super::memory::{Queued, State};
use super::super::{Change as Seen, Observer, panic_text};
use super::format::{self, Change, Snapshot};
use super::{DiskError, FILE, Faults, Open, is_same, open_file, sync_directory, write_new};
use redb::Database;
use std::error::Error as _;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Room for at most this much is asked for before the store takes writes again.
const ROOM_BYTES_MAX: usize = 4 << 20;
const ROOM_BYTES_MIN: usize = 64 << 10;

/// The thread. When this is dropped, the file is closed in good order, and can be opened again.
pub(in super::super) struct Writer {
    commits: Arc<Commits<State>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(in super::super) fn start(
        directory: &Path,
        open: Open,
        commits: Arc<Commits<State>>,
        observer: Option<Arc<dyn Observer>>,
        faults: Faults,
    ) -> io::Result<Writer> {
        let Open { database, pin } = open;
        let directory = directory.to_owned();
        let mut keeper = Keeper {
            directory,
            database: Some(database),
            pin,
            lost_bytes: 0,
            doubt: false,
            observer,
            faults,
        };
        let shared = commits.clone();
        let thread =
            std::thread::Builder::new().name("store".into()).spawn(move || keep(&shared, &mut keeper))?;
        Ok(Writer { commits, thread: Some(thread) })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.commits.close();
        if let Some(thread) = self.thread.take() {
            // Should it have panicked, there is nothing left to do here.
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
struct Keeper {
    directory: PathBuf,
    /// None while it cannot be opened.
    database: Option<Database>,
    /// The file that was opened last. Held open, so that no other can get its number.
    pin: File,
    /// The size of the last group that could not be written.
    lost_bytes: usize,
    /// What was written before may not have reached the disk: the system said so, and says it only once.
    doubt: bool,
    observer: Option<Arc<dyn Observer>>,
    faults: Faults,
}

impl Keeper {
    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    fn try_write(&mut self, group: &[Queued]) -> Result<(), redb::Error> {
        let Some(database) = &self.database else {
            return Err(io::Error::other("the file is not open").into());
        };
        let changes = group.iter().map(|change| Change {
            key: format::file_key(&change.id, &change.event.object.key),
            object: &change.event.object,
            fate: change.event.fate,
        });
        let last = group.last().map_or(0, |change| change.event.revision);
        format::write(database, changes, last)
    }

    /// Opens the file again and makes it hold `state`.
    fn reopen(&mut self, state: &Snapshot) -> Result<(), String> {
        let path = self.path();
        let (open, loaded) = match open_file(&path, &self.faults) {
            Ok(opened) => opened,
            // All of it is in memory, so a file that was damaged meanwhile is written again as a whole.
            Err(DiskError::Unreadable { .. } | DiskError::Damaged { .. } | DiskError::Entry { .. }) => {
                return self.rewrite(state);
            }
            Err(error) => {
                if let DiskError::Directory { source, .. } = &error {
                    self.doubt = !is_full(source);
                }
                return Err(chain(&error));
            }
        };
        let room = self.lost_bytes.clamp(ROOM_BYTES_MIN, ROOM_BYTES_MAX);
        let written = format::reconcile(&open.database, &loaded, state)
            .and_then(|()| format::make_room(&open.database, room));
        if let Err(error) = written {
            self.doubt = is_doubtful(&error);
            return Err(format!("the store's disk refuses writes: {error}"));
        }
        self.take_over(open);
        Ok(())
    }

    /// Writes a new file with all of `state`, and puts it in the place of the old one.
    fn rewrite(&mut self, state: &Snapshot) -> Result<(), String> {
        let written = write_new(&self.directory, state, &self.faults).map_err(|error| chain(&error))?;
        self.take_over(written);
        // It has the place of the old one, and is ours. But until its name is durable, a crash may bring the old one back. If
        // the sync fails, the next attempt writes another file: to try only the sync again would prove nothing.
        self.doubt = true;
        sync_directory(&self.directory, &self.faults).map_err(|error| {
            format!("the store's directory {} cannot be synced: {error}", self.directory.display())
        })?;
        self.doubt = false;
        Ok(())
    }

    fn take_over(&mut self, open: Open) {
        (self.database, self.pin) = (Some(open.database), open.pin);
        (self.doubt, self.lost_bytes) = (false, 0);
    }

    /// Whether our file is where it belongs; not if there is none.
    fn is_in_place(&self) -> Result<bool, String> {
        let path = self.path();
        match is_same(&self.pin, &path) {
            Ok(true) => Ok(true),
            Ok(false) => Err(format!(
                "the store's file {} was replaced by another one; restart the server to use that, or move it away to keep \
                 what is served now",
                path.display()
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("the store's file {} cannot be found: {error}", path.display())),
        }
    }
}

/// What an error says, with its causes.
fn chain(error: &DiskError) -> String {
    let first: Option<&dyn std::error::Error> = error.source();
    let causes = std::iter::successors(first, |cause| (*cause).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Whether something that was written before may be lost.
fn is_doubtful(error: &redb::Error) -> bool {
    !matches!(error, redb::Error::Io(error) if is_full(error))
}

/// Whether the system refused before it wrote, so that nothing older is in doubt.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
}

impl commit::Disk<State> for Keeper {
    fn write(&mut self, group: &Vec<Queued>) -> Result<(), String> {
        // A panic leaves these as they are set here.
        self.doubt = true;
        self.lost_bytes = group.iter().map(|change| change.event.object.json.len()).sum();
        if let Err(error) = self.try_write(group) {
            self.doubt = is_doubtful(&error);
            return Err(format!("the store's disk refused a write: {error}"));
        }
        self.check()?;
        (self.doubt, self.lost_bytes) = (false, 0);
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        if self.is_in_place()? {
            return Ok(());
        }
        Err(format!("the store's file {} was deleted", self.path().display()))
    }

    fn recover(&mut self, state: Snapshot) -> Result<(), String> {
        // Its lock must be free for the next one. It has failed, so what it says when it is closed is of no interest.
        if let Some(database) = self.database.take() {
            let _ = contain(|| drop(database));
        }
        let in_place = self.is_in_place()?;
        if !self.directory.is_dir() {
            let directory = self.directory.display();
            return Err(format!("the store's directory {directory} was deleted; stop the server"));
        }
        if in_place && !self.doubt { self.reopen(&state) } else { self.rewrite(&state) }
    }

    fn answer(&mut self, group: Vec<Queued>, outcome: Result<(), &str>) {
        for Queued { id, event, done, .. } in group {
            if let (Some(observer), Ok(())) = (&self.observer, outcome) {
                let seen = catch_unwind(AssertUnwindSafe(|| observer.committed(&Seen::of(&id, &event))));
                if let Err(panic) = seen {
                    tracing::error!(error = panic_text(&*panic), "the observer of the store failed");
                }
            }
            // Nobody may be waiting any more.
            let _ = done.send(outcome.map_err(Into::into));
        }
    }
}
