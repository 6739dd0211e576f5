//! A file that is not written before it has been read: what `redb` does to it while it is opened, repairs included, is
//! kept in memory until the whole store has been understood, and then done to the file, in the same order and with the same
//! waits for the disk. So a damaged file stays as it is, and a crash meanwhile is one that `redb` is made for.

use super::faults::{Faults, Operation};
use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The file, as `redb` sees it. Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Tentative(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: FileBackend,
    faults: Faults,
    was_empty: bool,
    /// From here on everything goes to the file.
    settled: AtomicBool,
    pending: Mutex<Pending>,
}

#[derive(Debug)]
struct Pending {
    length: u64,
    /// How much of the file itself is still to be seen.
    untouched: u64,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Write(u64, Box<[u8]>),
    SetLength(u64),
    Sync,
}

impl Inner {
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.faults.strike(Operation::Write)?;
        self.file.write(offset, data)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.faults.strike(Operation::SetLength)?;
        self.file.set_len(length)
    }

    /// The error is of no kind: whatever it was about, a sync that failed has lost what was written before. So nobody takes it
    /// for a write that a full disk refused.
    fn sync(&self) -> io::Result<()> {
        let synced = self.faults.strike(Operation::Sync).and_then(|()| self.file.sync_data());
        synced.map_err(|error| io::Error::other(format!("a sync failed: {error}")))
    }
}

impl Tentative {
    pub(super) fn new(file: FileBackend, faults: Faults) -> io::Result<Self> {
        let length = file.len()?;
        let pending = Mutex::new(Pending { length, untouched: length, steps: Vec::new() });
        Ok(Tentative(Arc::new(Inner {
            file,
            faults,
            was_empty: length == 0,
            settled: AtomicBool::new(false),
            pending,
        })))
    }

    /// Does to the file what has been done so far, and everything else from now on at once. A new file that there is no room for is
    /// left empty, as it was found.
    pub(super) fn settle(&self) -> io::Result<()> {
        let steps = std::mem::take(&mut self.pending().steps);
        let done = steps.into_iter().try_for_each(|step| match step {
            Step::Write(offset, data) => self.0.write(offset, &data),
            Step::SetLength(length) => self.0.set_len(length),
            Step::Sync => self.0.sync(),
        });
        match done {
            Ok(()) => self.0.settled.store(true, Ordering::Release),
            // Why it failed is worth more to the user than that it cannot be undone either.
            Err(_) if self.0.was_empty => drop(self.0.file.set_len(0)),
            Err(_) => {}
        }
        done
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settled(&self) -> bool {
        self.0.settled.load(Ordering::Acquire)
    }
}

impl Pending {
    fn read(&self, file: &FileBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset + out.len() as u64;
        if end > self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Never more than the length of `out`.
        let cut = |place: u64| usize::try_from(place.clamp(offset, end) - offset).unwrap_or(0);
        let from_file = cut(self.untouched);
        out[from_file..].fill(0);
        file.read(offset, &mut out[..from_file])?;
        for step in &self.steps {
            match step {
                Step::SetLength(length) => out[cut(*length)..].fill(0),
                Step::Write(at, data) => {
                    let (first, last) = (cut(*at), cut(at + data.len() as u64));
                    // What of it lies before the part that is read.
                    let skipped = usize::try_from(offset.saturating_sub(*at)).unwrap_or(usize::MAX);
                    if first < last {
                        out[first..last].copy_from_slice(&data[skipped..][..last - first]);
                    }
                }
                Step::Sync => {}
            }
        }
        Ok(())
    }
}

impl StorageBackend for Tentative {
    fn len(&self) -> io::Result<u64> {
        if self.settled() { self.0.file.len() } else { Ok(self.pending().length) }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.settled() {
            self.0.file.read(offset, out)
        } else {
            self.pending().read(&self.0.file, offset, out)
        }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        if self.settled() {
            return self.0.set_len(length);
        }
        let mut pending = self.pending();
        pending.length = length;
        pending.untouched = pending.untouched.min(length);
        pending.steps.push(Step::SetLength(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.settled() {
            return self.0.sync();
        }
        self.pending().steps.push(Step::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.settled() {
            return self.0.write(offset, data);
        }
        self.pending().steps.push(Step::Write(offset, data.into()));
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.0.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps that overlap, shrink and grow, on a file of ten bytes.
    fn change(file: &impl StorageBackend) {
        file.write(2, b"abcd").unwrap();
        file.write(4, b"XY").unwrap();
        file.set_len(5).unwrap();
        file.sync_data().unwrap();
        file.set_len(12).unwrap();
        file.write(10, b"zz").unwrap();
    }

    fn content(file: &impl StorageBackend) -> Vec<u8> {
        let mut all = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read(0, &mut all).unwrap();
        all
    }

    #[test]
    fn what_is_read_is_what_the_file_will_be() {
        let original = b"0123456789";
        let [plain, tentative] = [(); 2].map(|()| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), original).unwrap();
            let open = std::fs::OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
            (file, FileBackend::new(open).unwrap())
        });
        let (on_disk, backend) = tentative;
        let tentative = Tentative::new(backend, Faults::default()).unwrap();
        change(&plain.1);
        change(&tentative);
        assert_eq!(content(&tentative), content(&plain.1));
        for (start, count) in [(0, 3), (3, 4), (1, 10), (11, 1)] {
            let mut part = vec![9; count];
            tentative.read(start as u64, &mut part).unwrap();
            assert_eq!(part, &content(&tentative)[start..start + count]);
        }
        assert!(tentative.read(8, &mut [0; 5]).is_err());
        assert_eq!(std::fs::read(on_disk.path()).unwrap(), original);
        tentative.settle().unwrap();
        assert_eq!(std::fs::read(on_disk.path()).unwrap(), content(&plain.1));
        tentative.write(0, b"!").unwrap();
        assert_eq!(std::fs::read(on_disk.path()).unwrap()[0], b'!');
    }
}
