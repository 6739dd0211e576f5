//! What a request for a log asks for, and what of a log that is. Pure.

use jiff::{SignedDuration, Timestamp};

use super::line::{Entry, Stream, parse};

/// The options of a request, as `PodLogOptions` has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) container: Option<String>,
    pub(super) follow: bool,
    pub(super) previous: bool,
    timestamps: bool,
    tail_lines: Option<i64>,
    since_seconds: Option<i64>,
    since_time: Option<Timestamp>,
    limit_bytes: Option<i64>,
    stream: Option<String>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It cannot be read.
    Unreadable(String),
    /// These fields cannot be so: field, what is wrong with it, and the kind of that.
    Invalid(Vec<(&'static str, String, &'static str)>),
}

impl Query {
    /// Reads the query of a URL.
    pub(super) fn read(query: &str) -> Result<Self, Refusal> {
        let mut all = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value);
            match name {
                "container" => all.container = Some(value).filter(|name| !name.is_empty()),
                "follow" => all.follow = flag(&value),
                "previous" => all.previous = flag(&value),
                "timestamps" => all.timestamps = flag(&value),
                "tailLines" => all.tail_lines = Some(number(&value)?),
                "sinceSeconds" => all.since_seconds = Some(number(&value)?),
                "limitBytes" => all.limit_bytes = Some(number(&value)?),
                "sinceTime" => all.since_time = time(&value)?,
                "stream" => all.stream = Some(value),
                _ => {}
            }
        }
        all.check()?;
        Ok(all)
    }

    fn check(&self) -> Result<(), Refusal> {
        let mut wrong = Vec::new();
        let mut invalid = |field: &'static str, value: i64, why: &str| {
            wrong.push((field, format!("Invalid value: {value}: {why}"), "FieldValueInvalid"));
        };
        if let Some(lines) = self.tail_lines.filter(|lines| *lines < 0) {
            invalid("tailLines", lines, "must be greater than or equal to 0");
        }
        if let Some(bytes) = self.limit_bytes.filter(|bytes| *bytes < 1) {
            invalid("limitBytes", bytes, "must be greater than 0");
        }
        match (self.since_seconds, self.since_time) {
            (Some(_), Some(_)) => {
                let why = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
                wrong.push(("", why.into(), "FieldValueForbidden"));
            }
            (Some(seconds), None) if seconds < 1 => {
                invalid("sinceSeconds", seconds, "must be greater than 0");
            }
            _ => {}
        }
        match self.stream.as_deref() {
            Some("Stdout" | "Stderr") if self.tail_lines.is_some() => {
                let why = "Forbidden: `tailLines` and specific `stream` are mutually exclusive for now";
                wrong.push(("", why.into(), "FieldValueForbidden"));
            }
            None | Some("All" | "Stdout" | "Stderr") => {}
            Some(other) => {
                let why = format!(
                    "Unsupported value: {other:?}: supported values: \"All\", \"Stderr\", \"Stdout\""
                );
                wrong.push(("stream", why, "FieldValueNotSupported"));
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(Refusal::Invalid(wrong)) }
    }

    /// The part of a log that is asked for. `now` is what `sinceSeconds` counts from.
    pub(super) fn selection(&self, now: Timestamp) -> Selection {
        let since = self.since_seconds.map(|seconds| {
            now.checked_sub(SignedDuration::from_secs(seconds.min(YEARS))).unwrap_or(Timestamp::MIN)
        });
        Selection {
            since: self.since_time.or(since),
            timestamps: self.timestamps,
            stream: match self.stream.as_deref() {
                Some("Stdout") => Some(Stream::Stdout),
                Some("Stderr") => Some(Stream::Stderr),
                _ => None,
            },
            left: self.limit_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            lines: self.tail_lines.map(|lines| usize::try_from(lines).unwrap_or(usize::MAX)),
            line: Vec::new(),
            begins: true,
        }
    }
}

/// More seconds than any log is old.
const YEARS: i64 = 1_000_000_000;

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = text.get(at + 1..at + 3).and_then(|code| u8::from_str_radix(code, 16).ok());
        match (byte, code) {
            (b'%', Some(code)) => {
                out.push(code);
                at += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(*byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A flag as Kubernetes reads it: whatever is not plainly no is yes.
fn flag(value: &str) -> bool {
    !(value.eq_ignore_ascii_case("false") || value == "0")
}

fn number(value: &str) -> Result<i64, Refusal> {
    let why = |_| Refusal::Unreadable(format!("strconv.ParseInt: parsing {value:?}: invalid syntax"));
    value.parse().map_err(why)
}

fn time(value: &str) -> Result<Option<Timestamp>, Refusal> {
    if value.is_empty() {
        return Ok(None);
    }
    let why = |_| Refusal::Unreadable(format!("parsing time {value:?} as RFC 3339: it is not one"));
    value.parse().map(Some).map_err(why)
}

/// What is taken of a log: it is fed with the file, and gives what the client sees.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    since: Option<Timestamp>,
    timestamps: bool,
    stream: Option<Stream>,
    left: Option<usize>,
    lines: Option<usize>,
    line: Vec<u8>,
    begins: bool,
}

impl Selection {
    /// Where to begin in what is there already, so that only the last lines are seen that are asked for.
    pub(super) fn start(&self, whole: &[u8]) -> usize {
        let Some(lines) = self.lines else { return 0 };
        let body = whole.strip_suffix(b"\n").unwrap_or(whole);
        if lines == 0 {
            return whole.len();
        }
        let ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        ends.map(|(end, _)| end + 1).nth(lines - 1).unwrap_or(0)
    }

    /// What the client sees of a further piece of the file.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if let Some(line) = self.line.strip_suffix(b"\n") {
                let line = line.to_vec();
                self.line.clear();
                if let Some(entry) = parse(&line) {
                    self.show(&entry, &mut out);
                }
            }
        }
        out
    }

    /// Whether the client has seen as much as it wants.
    pub(super) fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    fn show(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        let wanted = self.stream.is_none_or(|stream| stream == entry.stream);
        if !wanted || self.since.is_some_and(|since| entry.time < since) {
            return;
        }
        let begins = std::mem::replace(&mut self.begins, entry.whole);
        let mut shown = Vec::with_capacity(entry.text.len() + 1);
        if self.timestamps && begins {
            shown.extend_from_slice(entry.stamp.as_bytes());
            shown.push(b' ');
        }
        shown.extend_from_slice(entry.text);
        if entry.whole {
            shown.push(b'\n');
        }
        if let Some(left) = &mut self.left {
            shown.truncate(*left);
            *left -= shown.len();
        }
        out.extend_from_slice(&shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
2026-01-01T00:00:01.000000000Z stdout F one
2026-01-01T00:00:02.000000000Z stderr F two
2026-01-01T00:00:03.000000000Z stdout P thr
2026-01-01T00:00:03.500000000Z stdout F ee
2026-01-01T00:00:04.000000000Z stdout F four
";

    fn check(query: &str, expected: &str) {
        let now = "2026-01-01T00:00:05Z".parse().unwrap();
        let query = Query::read(query).unwrap();
        // However the file comes in pieces, the client sees the same.
        for size in [1, 7, 1000] {
            let mut selection = query.selection(now);
            let start = selection.start(LOG.as_bytes());
            let pieces = LOG.as_bytes()[start..].chunks(size);
            let seen: Vec<u8> = pieces.flat_map(|piece| selection.feed(piece)).collect();
            assert_eq!(String::from_utf8(seen).unwrap(), expected, "{query:?}");
        }
    }

    #[test]
    fn whole_log_is_shown_without_times() {
        check("", "one\ntwo\nthree\nfour\n");
        check("container=main&pretty=true", "one\ntwo\nthree\nfour\n");
    }

    #[test]
    fn times_are_at_the_beginning_of_lines() {
        check(
            "timestamps=true&sinceSeconds=3",
            "2026-01-01T00:00:02.000000000Z two\n2026-01-01T00:00:03.000000000Z three\n2026-01-01T00:00:04.000000000Z four\n",
        );
    }

    #[test]
    fn log_is_cut_at_both_ends() {
        check("tailLines=1", "four\n");
        check("tailLines=0", "");
        check("tailLines=100", "one\ntwo\nthree\nfour\n");
        check("limitBytes=6", "one\ntw");
        check("sinceTime=2026-01-01T00%3A00%3A04Z", "four\n");
    }

    #[test]
    fn one_stream_can_be_asked_for() {
        check("stream=Stderr", "two\n");
        check("stream=Stdout", "one\nthree\nfour\n");
        check("stream=All", "one\ntwo\nthree\nfour\n");
    }

    #[test]
    fn flags_are_read_as_kubernetes_reads_them() {
        for (text, expected) in [
            ("follow", true),
            ("follow=", true),
            ("follow=1", true),
            ("follow=False", false),
            ("follow=0", false),
            ("", false),
        ] {
            assert_eq!(Query::read(text).unwrap().follow, expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let invalid = |query: &str| match Query::read(query) {
            Err(Refusal::Invalid(fields)) => {
                fields.into_iter().map(|(f, why, _)| format!("{f}: {why}")).collect::<Vec<_>>().join("; ")
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(
            invalid("tailLines=-1"),
            "tailLines: Invalid value: -1: must be greater than or equal to 0"
        );
        assert_eq!(invalid("limitBytes=0"), "limitBytes: Invalid value: 0: must be greater than 0");
        assert_eq!(invalid("sinceSeconds=0"), "sinceSeconds: Invalid value: 0: must be greater than 0");
        assert!(invalid("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z").contains("at most one of"));
        assert!(invalid("stream=Both").contains("Unsupported value: \"Both\""));
        let unreadable = Query::read("tailLines=many").unwrap_err();
        assert_eq!(
            unreadable,
            Refusal::Unreadable("strconv.ParseInt: parsing \"many\": invalid syntax".into())
        );
    }
}
