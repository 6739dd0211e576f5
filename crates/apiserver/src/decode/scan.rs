//! Looks through JSON for what Go would say about it.

use super::MAX_DEPTH;
use std::collections::HashSet;
use std::fmt::Write as _;

/// As many repeated fields are reported as kube-apiserver reports. Each is named with its whole path.
const DUPLICATES_MAX: usize = 100;

/// What was found in JSON that is well formed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scan {
    /// Paths of fields that stand more than once, each named once.
    pub duplicates: Vec<String>,
    /// A number that no float can hold.
    pub too_big: Option<String>,
    /// Where escapes of half a surrogate pair start.
    pub lone_surrogates: Vec<usize>,
}

/// Scans a body; the error is that of Go's decoder.
pub(super) fn scan(body: &[u8]) -> Result<Scan, String> {
    let mut scanner = Scanner { body, at: 0, path: String::new(), found: Scan::default() };
    scanner.value(0)?;
    scanner.skip_space();
    match scanner.peek() {
        None => Ok(scanner.found),
        Some(byte) => Err(invalid(byte, "after top-level value")),
    }
}

struct Scanner<'b> {
    body: &'b [u8],
    at: usize,
    path: String,
    found: Scan,
}

fn invalid(byte: u8, place: &str) -> String {
    let shown = match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        // Go prints what is not printable of Latin-1 as an escape.
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        byte => {
            let quoted = crate::field::go_quote(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    };
    format!("invalid character {shown} {place}")
}

fn end() -> String {
    "unexpected end of JSON input".to_owned()
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.peek().ok_or_else(end)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), String> {
        self.skip_space();
        match self.next()? {
            byte @ (b'{' | b'[') if depth >= MAX_DEPTH => Err(invalid(byte, "exceeded max depth")),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(drop),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            byte @ (b'-' | b'0'..=b'9') => self.number(byte),
            byte => Err(invalid(byte, "looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), String> {
        let mut seen = HashSet::new();
        let outer = self.path.len();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            match self.next()? {
                b'"' => {}
                byte => return Err(invalid(byte, "looking for beginning of object key string")),
            }
            let key = self.string()?;
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if !seen.insert(key) && self.found.duplicates.len() < DUPLICATES_MAX {
                let mut path = self.path.clone();
                crate::field::cut(&mut path);
                if !self.found.duplicates.contains(&path) {
                    self.found.duplicates.push(path);
                }
            }
            self.skip_space();
            match self.next()? {
                b':' => {}
                byte => return Err(invalid(byte, "after object key")),
            }
            self.value(depth + 1)?;
            self.path.truncate(outer);
            self.skip_space();
            match self.next()? {
                b',' => {}
                b'}' => return Ok(()),
                byte => return Err(invalid(byte, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), String> {
        let outer = self.path.len();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        for index in 0.. {
            // Writing to a String cannot fail.
            let _ = write!(self.path, "[{index}]");
            self.value(depth + 1)?;
            self.path.truncate(outer);
            self.skip_space();
            match self.next()? {
                b',' => {}
                b']' => break,
                byte => return Err(invalid(byte, "after array element")),
            }
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for wanted in word.bytes().skip(1) {
            let byte = self.next()?;
            if byte != wanted {
                let place = format!("in literal {word} (expecting '{}')", char::from(wanted));
                return Err(invalid(byte, &place));
            }
        }
        Ok(())
    }

    /// The text of a string whose opening quote was read.
    fn string(&mut self) -> Result<String, String> {
        let start = self.at - 1;
        let mut high: Option<usize> = None;
        loop {
            let was_high = high.take();
            match self.next()? {
                b'"' => {
                    self.found.lone_surrogates.extend(was_high);
                    break;
                }
                b'\\' => high = self.escape(was_high)?,
                byte if byte < 0x20 => return Err(invalid(byte, "in string literal")),
                _ => self.found.lone_surrogates.extend(was_high),
            }
        }
        let raw = String::from_utf8_lossy(&self.body[start..self.at]);
        let inner = &raw[1..raw.len() - 1];
        Ok(serde_json::from_str(&raw).unwrap_or_else(|_| inner.to_owned()))
    }

    /// Reads an escape; the start of it if it is the first half of a surrogate pair.
    fn escape(&mut self, was_high: Option<usize>) -> Result<Option<usize>, String> {
        let start = self.at - 1;
        let byte = self.next()?;
        if byte != b'u' {
            self.found.lone_surrogates.extend(was_high);
            return if b"bfnrt\\/\"".contains(&byte) {
                Ok(None)
            } else {
                Err(invalid(byte, "in string escape code"))
            };
        }
        let mut unit = 0_u32;
        for _ in 0..4 {
            let byte = self.next()?;
            let digit = char::from(byte).to_digit(16);
            unit = unit * 16 + digit.ok_or_else(|| invalid(byte, "in \\u hexadecimal character escape"))?;
        }
        match (was_high, unit) {
            (Some(_), 0xdc00..=0xdfff) => Ok(None),
            (other, 0xd800..=0xdbff) => {
                self.found.lone_surrogates.extend(other);
                Ok(Some(start))
            }
            (other, 0xdc00..=0xdfff) => {
                self.found.lone_surrogates.extend(other.into_iter().chain([start]));
                Ok(None)
            }
            (other, _) => {
                self.found.lone_surrogates.extend(other);
                Ok(None)
            }
        }
    }

    fn number(&mut self, first: u8) -> Result<(), String> {
        let start = self.at - 1;
        let leading = if first == b'-' { self.next()? } else { first };
        match leading {
            b'0' => {}
            b'1'..=b'9' => self.skip_digits(),
            byte => return Err(invalid(byte, "in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            match self.next()? {
                b'0'..=b'9' => self.skip_digits(),
                byte => return Err(invalid(byte, "after decimal point in numeric literal")),
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            match self.next()? {
                b'0'..=b'9' => self.skip_digits(),
                byte => return Err(invalid(byte, "in exponent of numeric literal")),
            }
        }
        let text = String::from_utf8_lossy(&self.body[start..self.at]);
        if text.parse::<f64>().is_ok_and(f64::is_infinite) {
            self.found.too_big.get_or_insert(text.into_owned());
        }
        Ok(())
    }

    fn skip_digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }
}
