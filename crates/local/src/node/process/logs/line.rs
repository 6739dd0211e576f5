//! The format of log files: a time, the stream, whether the line is whole, and the line.
//!
//! ```text
//! 2026-01-02T03:04:05.000000006Z stdout F a whole line
//! 2026-01-02T03:04:05.000000006Z stderr P a part of a line
//! ```

use jiff::Timestamp;

/// What a process prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// The longest piece of a line that is written as one.
const PIECE_MAX: usize = 16 * 1024;

/// Makes lines of a log from what comes in on one stream, piece by piece.
#[derive(Debug)]
pub(crate) struct Framer {
    stream: Stream,
    rest: Vec<u8>,
}

impl Framer {
    /// For a stream on which nothing has come yet.
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, rest: Vec::new() }
    }

    /// Adds to `out` the lines that are whole now. The rest waits for its end.
    pub(crate) fn feed(&mut self, bytes: &[u8], now: Timestamp, out: &mut Vec<u8>) {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let mut from = rest.as_slice();
        loop {
            let end = from.iter().take(PIECE_MAX + 1).position(|byte| *byte == b'\n');
            if let Some(end) = end {
                self.entry(&from[..end], 'F', now, out);
                from = &from[end + 1..];
            } else if from.len() > PIECE_MAX {
                self.entry(&from[..PIECE_MAX], 'P', now, out);
                from = &from[PIECE_MAX..];
            } else {
                break;
            }
        }
        self.rest = from.to_vec();
    }

    /// Adds what is left when the stream has ended: a line without an end.
    pub(crate) fn finish(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.entry(&rest, 'P', now, out);
        }
    }

    fn entry(&self, text: &[u8], tag: char, now: Timestamp, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{now:.9} {} {tag} ", self.stream.name()).as_bytes());
        out.extend_from_slice(text);
        out.push(b'\n');
    }
}

/// A line of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// When it was written, as the file has it.
    pub(crate) stamp: &'a str,
    /// The same, to compare.
    pub(crate) time: Timestamp,
    /// On which stream.
    pub(crate) stream: Stream,
    /// Whether it ends its line.
    pub(crate) whole: bool,
    /// What was printed.
    pub(crate) text: &'a [u8],
}

/// Reads a line, without its end.
pub(crate) fn parse(line: &[u8]) -> Option<Entry<'_>> {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let stamp = std::str::from_utf8(parts.next()?).ok()?;
    let stream = match parts.next()? {
        b"stdout" => Stream::Stdout,
        b"stderr" => Stream::Stderr,
        _ => return None,
    };
    let whole = parts.next()?.first() != Some(&b'P');
    Some(Entry { stamp, time: stamp.parse().ok()?, stream, whole, text: parts.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05.000000006Z".parse().unwrap()
    }

    #[test]
    fn lines_have_time_stream_and_end() {
        let mut out = Vec::new();
        let mut framer = Framer::new(Stream::Stderr);
        framer.feed(b"one\ntw", now(), &mut out);
        framer.feed(b"o\n\nthree", now(), &mut out);
        framer.finish(now(), &mut out);
        expect_test::expect![[r#"
            2026-01-02T03:04:05.000000006Z stderr F one
            2026-01-02T03:04:05.000000006Z stderr F two
            2026-01-02T03:04:05.000000006Z stderr F 
            2026-01-02T03:04:05.000000006Z stderr P three
        "#]]
        .assert_eq(std::str::from_utf8(&out).unwrap());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(lengths in prop::collection::vec((0..40_000_usize, 1..30_000_usize), 0..4)) {
            // Lines of a length, in pieces of another.
            let piece = |(size, line): &(usize, usize)| -> Vec<u8> {
                (0..*size).map(|at| if at % line == line - 1 { b'\n' } else { b"any text \xff"[at % 10] }).collect()
            };
            let pieces: Vec<Vec<u8>> = lengths.iter().map(piece).collect();
            let mut out = Vec::new();
            let mut framer = Framer::new(Stream::Stdout);
            for piece in &pieces {
                framer.feed(piece, now(), &mut out);
            }
            framer.finish(now(), &mut out);
            let mut read = Vec::new();
            for line in out.split_inclusive(|byte| *byte == b'\n') {
                let entry = parse(line.strip_suffix(b"\n").unwrap()).unwrap();
                prop_assert!(entry.text.len() <= PIECE_MAX);
                prop_assert_eq!(entry.time, now());
                read.extend_from_slice(entry.text);
                if entry.whole {
                    read.push(b'\n');
                }
            }
            prop_assert_eq!(read, pieces.concat());
        }
    }
}
