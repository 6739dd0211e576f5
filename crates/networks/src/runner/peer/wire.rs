//! What peers say to each other: JSON documents, one in each line.

use std::io;

use bytes::BytesMut;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};

/// The largest block.
pub(super) const BLOCK_MAX: usize = 2 * 1024 * 1024;
/// The longest line: a block in base 64, and what is around it.
const LINE_MAX: usize = BLOCK_MAX / 3 * 4 + 1024;

/// One thing said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Frame {
    /// The first that the one says who dialled.
    Hello {
        peer_id: String,
        /// One run of the program.
        session: u64,
        /// Which of its dials.
        attempt: u64,
        /// Whom it wants.
        expects: String,
        /// Where it listens itself.
        listen: Vec<String>,
    },
    /// The answer if they are connected now.
    Welcome { peer_id: String, session: u64, listen: Vec<String> },
    /// The answer if they are not.
    Refused { peer_id: String, why: Refusal },
    /// Nothing, only to be heard.
    Ping,
    /// Asks for a block.
    Want { number: u64, cid: String },
    /// The block, in base 64.
    Block { number: u64, data: String },
    /// It is not here.
    Lack { number: u64 },
}

/// Why somebody who dialled is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Refusal {
    /// Somebody else is wanted.
    Mismatch,
    /// They are connected already.
    Duplicate,
    /// It is going away.
    Ending,
}

/// Lines from another peer.
pub(super) struct Lines<R> {
    from: R,
    read: BytesMut,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, read: BytesMut::new() }
    }

    /// The same connection, to say something there.
    pub(super) fn other_end(&mut self) -> &mut R {
        &mut self.from
    }

    /// Both ways of it apart, with what has been read already.
    pub(super) fn split(self) -> (Lines<ReadHalf<R>>, WriteHalf<R>)
    where
        R: AsyncWrite,
    {
        let (from, to) = tokio::io::split(self.from);
        (Lines { from, read: self.read }, to)
    }

    /// The next frame; none at the end. Nothing is lost if it is not awaited to its end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.read[searched..]) {
                let line = self.read.split_to(searched + end + 1);
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            searched = self.read.len();
            if searched > LINE_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line has no end"));
            }
            if self.from.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }
}

pub(super) async fn say(to: &mut (impl AsyncWrite + Unpin), frame: &Frame) -> io::Result<()> {
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    to.write_all(&line).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_arrive_however_they_are_cut() {
        let frames = [Frame::Ping, Frame::Want { number: 7, cid: "baf\n".into() }, Frame::Lack { number: 7 }];
        let mut sent = Vec::new();
        for frame in &frames {
            say(&mut sent, frame).await.unwrap();
        }
        for cut in 0..sent.len() {
            let (first, second) = sent.split_at(cut);
            let mut lines = Lines::new(first.chain(second));
            for frame in &frames {
                assert_eq!(lines.next().await.unwrap().as_ref(), Some(frame));
            }
            assert_eq!(lines.next().await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn a_line_without_end_is_not_read_to_its_end() {
        let mut lines = Lines::new(tokio::io::repeat(b' '));
        assert_eq!(lines.next().await.unwrap_err().to_string(), "a line has no end");
        let mut lines = Lines::new(&b"GET / HTTP/1.1\r\n\r\n"[..]);
        assert!(lines.next().await.is_err());
    }
}
