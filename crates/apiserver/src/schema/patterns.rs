//! Compiled patterns, of which no more are kept than there is room for.
//!
//! A short pattern can need megabytes when it is compiled, and a definition can have tens of thousands of them.

use super::regexes::{self, TooLarge};
use regex::Regex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes all compiled patterns may take up that are kept for the next object. The others are compiled
/// again each time.
const KEPT_BYTES_MAX: usize = 128 << 20;

/// What a pattern may take up, in bytes: it is kept in the first of these that it fits in, and refused if there is none.
const SIZES: [usize; 3] = [32 << 10, 1 << 20, 10 << 20];

static KEPT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The compiled form of a schema's pattern, made when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Compiled(OnceLock<Option<Kept>>);

impl Clone for Compiled {
    /// The copy compiles for itself.
    fn clone(&self) -> Self {
        Compiled::default()
    }
}

#[derive(Debug)]
struct Kept {
    regex: Regex,
    bytes: usize,
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Compiled {
    /// Whether a text matches `pattern`, which must be the same each time. An invalid pattern is matched by nothing.
    pub(super) fn is_match(&self, pattern: &str, text: &str) -> bool {
        if let Some(kept) = self.0.get() {
            return kept.as_ref().is_some_and(|kept| kept.regex.is_match(text));
        }
        let Some((regex, bytes)) = compile(pattern) else {
            let _ = self.0.set(None);
            return false;
        };
        let matches = regex.is_match(text);
        if reserve(bytes) {
            // If somebody else was faster, this one is dropped and its room is given back.
            let _ = self.0.set(Some(Kept { regex, bytes }));
        }
        matches
    }
}

fn reserve(bytes: usize) -> bool {
    let more = |kept: usize| kept.checked_add(bytes).filter(|kept| *kept <= KEPT_BYTES_MAX);
    KEPT_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

/// The pattern, and how many bytes it takes up at most.
fn compile(pattern: &str) -> Option<(Regex, usize)> {
    SIZES.iter().find_map(|bytes| match regexes::compile_within(pattern, *bytes) {
        Ok(regex) => Some(Some((regex, *bytes))),
        Err(TooLarge::Pattern) => None,
        Err(TooLarge::Not(_)) => Some(None),
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_beyond_the_room_still_match() {
        let patterns: Vec<Compiled> = (0..16).map(|_| Compiled::default()).collect();
        for compiled in &patterns {
            assert!(compiled.is_match(r"^\pL{1,50}$", "é"));
            assert!(!compiled.is_match(r"^\pL{1,50}$", "1"));
        }
        assert!(KEPT_BYTES.load(Ordering::Relaxed) <= KEPT_BYTES_MAX);
        let (_, bytes) = compile(r"^\pL{1,50}$").unwrap();
        assert!(
            patterns.iter().filter(|compiled| compiled.0.get().is_some()).count() * bytes <= KEPT_BYTES_MAX
        );
        assert!(compile(r"(\pL{1000}){1000}").is_none(), "too large for any");
        assert!(!Compiled::default().is_match("(", "("));
    }
}
