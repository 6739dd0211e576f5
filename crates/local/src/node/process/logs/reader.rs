//! Reads a log file while it is written: what is there already, and on request what comes until the container ends.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;

use super::capture::{Progress, put_aside};
use super::query::Selection;

/// A log that is read.
pub(super) struct Reader {
    path: PathBuf,
    file: File,
    selection: Selection,
    /// What the client sees of what was there at the beginning.
    first: Option<Vec<u8>>,
    /// How the log comes on, if it is still written and the client wants to follow it.
    progress: Option<watch::Receiver<Progress>>,
    turns: u64,
}

impl Reader {
    /// Opens a log, which has `progress` while it is written. Unless it is followed it is read to where it ends now.
    pub(super) async fn open(
        path: &Path,
        mut selection: Selection,
        progress: Option<watch::Receiver<Progress>>,
        follow: bool,
    ) -> io::Result<Self> {
        let turns = || progress.as_ref().map_or(0, |progress| progress.borrow().turns);
        loop {
            let before = turns();
            let mut file = File::open(path).await?;
            let mut whole = tokio::fs::read(put_aside(path)).await.unwrap_or_default();
            file.read_to_end(&mut whole).await?;
            // A half that was put aside meanwhile would be seen twice.
            if turns() == before {
                let start = selection.start(&whole);
                let first = Some(selection.feed(&whole[start..]));
                let progress = progress.filter(|_| follow);
                return Ok(Self { path: path.to_owned(), file, selection, first, progress, turns: before });
            }
        }
    }

    /// What comes next; nothing at the end.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Some(first.into());
        }
        let mut piece = vec![0; 64 * 1024];
        while !self.selection.is_done() {
            // Looked at before the file: what was written by then is read below.
            let known = *self.progress.as_mut()?.borrow_and_update();
            let count = self.file.read(&mut piece).await.ok()?;
            if count > 0 {
                let seen = self.selection.feed(&piece[..count]);
                if !seen.is_empty() {
                    return Some(seen.into());
                }
            } else if known.turns > self.turns {
                self.file = File::open(&self.path).await.ok()?;
                self.turns = known.turns;
            } else if known.ended || self.progress.as_mut()?.changed().await.is_err() {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::capture::{LogFile, capture};
    use super::super::line::Stream;
    use super::super::query::Query;
    use super::*;

    #[tokio::test]
    async fn follower_sees_every_line_until_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.log");
        // Small enough that halves are put aside while it is read.
        let (file, progress) = LogFile::open(path.clone(), 2_000).unwrap();
        let log = Arc::new(Mutex::new(file));
        let selection = Query::read("follow=true").unwrap().selection(jiff::Timestamp::now());
        let mut reader = Reader::open(&path, selection, Some(progress), true).await.unwrap();
        let mut seen = Vec::new();
        for number in 0..100 {
            capture(format!("{number}\n").as_bytes(), Stream::Stdout, log.clone()).await;
            seen.extend_from_slice(&reader.next().await.unwrap());
        }
        log.lock().unwrap().end();
        assert!(reader.next().await.is_none());
        let expected: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(String::from_utf8(seen).unwrap().lines().collect::<Vec<_>>(), expected);
    }

    #[tokio::test]
    async fn without_following_the_log_ends_where_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.log");
        let (file, progress) = LogFile::open(path.clone(), 2_000).unwrap();
        capture(&b"a\nb\n"[..], Stream::Stdout, Arc::new(Mutex::new(file))).await;
        let selection = Query::read("tailLines=1").unwrap().selection(jiff::Timestamp::now());
        let mut reader = Reader::open(&path, selection, Some(progress), false).await.unwrap();
        assert_eq!(reader.next().await.unwrap(), "b\n");
        assert!(reader.next().await.is_none());
    }
}
