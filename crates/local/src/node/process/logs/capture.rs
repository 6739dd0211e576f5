//! Writes what a process prints into the file of its attempt.
//!
//! A log takes at most its limit: when half of it is full, that half is put aside as `.log.1`, in the place of the one before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::watch;

use super::line::{Framer, Stream};

/// How far a log has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// How often a full half was put aside.
    pub(crate) turns: u64,
    /// How many bytes were written.
    pub(crate) written: u64,
    /// Whether nothing more will come.
    pub(crate) ended: bool,
}

/// The file of one attempt, while it is written.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    size: u64,
    half: u64,
    progress: watch::Sender<Progress>,
    /// Whether the last write failed, and may have left a line without its end.
    failing: bool,
}

/// The log of an attempt.
pub(crate) fn log_path(directory: &Path, container: &str, attempt: u32) -> PathBuf {
    directory.join(container).join(format!("{attempt}.log"))
}

/// The half that was put aside.
pub(crate) fn put_aside(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

/// Takes away the logs of all attempts before the last one.
pub(crate) fn drop_older(directory: &Path, container: &str, attempt: u32) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(directory.join(container)) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.split('.').next()?.parse::<u32>().ok());
        if number.is_some_and(|number| number.saturating_add(1) < attempt) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

impl LogFile {
    /// Begins a log of at most `limit` bytes. One that is there already goes on.
    pub(crate) fn open(path: PathBuf, limit: u64) -> io::Result<(Self, watch::Receiver<Progress>)> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let size = file.metadata()?.len();
        let (progress, seen) = watch::channel(Progress::default());
        Ok((Self { path, file, size, half: (limit / 2).max(1), progress, failing: false }, seen))
    }

    /// Writes entries. Of those that cannot be written, only the first are warned of: a full disk stays full for many lines.
    fn write(&mut self, entries: &[u8]) {
        let written = self.mend().and_then(|()| self.append(entries));
        let path = self.path.display();
        match (&written, self.failing) {
            (Err(error), false) => {
                tracing::warn!(%path, %error, "cannot write a log: what is printed is lost");
            }
            (Ok(()), true) => tracing::info!(%path, "the log is written again"),
            _ => {}
        }
        self.failing = written.is_err();
    }

    /// Ends the line that a failed write has broken off, if there is one.
    fn mend(&mut self) -> io::Result<()> {
        if !self.failing {
            return Ok(());
        }
        let size = self.file.metadata()?.len();
        let broken = size > self.size;
        self.progress.send_modify(|progress| progress.written += size.saturating_sub(self.size));
        self.size = size;
        if broken { self.append(b"\n") } else { Ok(()) }
    }

    fn append(&mut self, entries: &[u8]) -> io::Result<()> {
        let length = entries.len() as u64;
        if self.size > 0 && self.size + length > self.half {
            fs::rename(&self.path, put_aside(&self.path))?;
            self.file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            self.size = 0;
            self.progress.send_modify(|progress| progress.turns += 1);
        }
        self.file.write_all(entries)?;
        self.size += length;
        self.progress.send_modify(|progress| progress.written += length);
        Ok(())
    }

    /// Nothing more will come.
    pub(crate) fn end(&self) {
        self.progress.send_modify(|progress| progress.ended = true);
    }
}

/// A log that two streams write to.
pub(crate) type SharedLog = Arc<Mutex<LogFile>>;

/// Copies a stream into the log until it ends.
pub(crate) async fn capture(mut from: impl AsyncRead + Unpin, stream: Stream, log: SharedLog) {
    let mut framer = Framer::new(stream);
    let mut piece = vec![0; 16 * 1024];
    let mut entries = Vec::new();
    loop {
        let count = from.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            framer.finish(Timestamp::now(), &mut entries);
        } else {
            framer.feed(&piece[..count], Timestamp::now(), &mut entries);
        }
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        // The stream is read on whatever happens: a process must not stop because a disk is full.
        if !entries.is_empty() {
            log.write(&entries);
        }
        drop(log);
        entries.clear();
        if count == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn print(log: &SharedLog, text: &str) {
        capture(text.as_bytes(), Stream::Stdout, log.clone()).await;
    }

    #[tokio::test]
    async fn log_stays_within_its_limit_and_keeps_the_newest() {
        let directory = tempfile::tempdir().unwrap();
        let path = log_path(directory.path(), "main", 0);
        let (file, seen) = LogFile::open(path.clone(), 400).unwrap();
        let log = Arc::new(Mutex::new(file));
        for number in 0..50 {
            print(&log, &format!("line {number}\n")).await;
        }
        let (old, new) = (fs::read_to_string(put_aside(&path)).unwrap(), fs::read_to_string(&path).unwrap());
        assert!(old.len() + new.len() <= 400, "{} {}", old.len(), new.len());
        assert!(new.ends_with("line 49\n"));
        assert!(seen.borrow().turns > 1);
        let last =
            |text: &str| text.lines().last().unwrap().rsplit(' ').next().unwrap().parse::<u32>().unwrap();
        let first =
            |text: &str| text.lines().next().unwrap().rsplit(' ').next().unwrap().parse::<u32>().unwrap();
        assert_eq!(last(&old) + 1, first(&new));
    }

    #[tokio::test]
    async fn line_that_was_broken_off_does_not_take_the_next_one_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = log_path(directory.path(), "main", 0);
        let (file, seen) = LogFile::open(path.clone(), 4000).unwrap();
        let log = Arc::new(Mutex::new(file));
        // As a disk that is full leaves it: a part is written, then nothing.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"broken").unwrap();
        log.lock().unwrap().file = File::open(&path).unwrap();
        print(&log, "lost\n").await;
        assert!(log.lock().unwrap().failing);
        log.lock().unwrap().file = OpenOptions::new().append(true).open(&path).unwrap();
        print(&log, "next\n").await;
        print(&log, "last\n").await;
        assert!(!log.lock().unwrap().failing);
        let text = fs::read_to_string(&path).unwrap();
        let words: Vec<&str> = text.lines().filter_map(|line| line.rsplit(' ').next()).collect();
        assert_eq!(words, ["broken", "next", "last"]);
        assert_eq!(seen.borrow().written, text.len() as u64);
    }

    #[test]
    fn only_the_previous_attempt_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        for attempt in 0..4 {
            LogFile::open(log_path(directory.path(), "main", attempt), 100).unwrap();
        }
        drop_older(directory.path(), "main", 4).unwrap();
        let kept: Vec<bool> =
            (0..4).map(|attempt| log_path(directory.path(), "main", attempt).exists()).collect();
        assert_eq!(kept, [false, false, false, true]);
    }
}
