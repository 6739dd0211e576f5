//! What the strings of a state stand for: uids, times, addresses, names that the server made up; alone or as a part of a
//! longer text (`pvc-<uid>`, `default/web-x7k2p`, `http://10.96.4.2:80`).
//!
//! A string is read once from left to right and everything is looked up, so the cost does not depend on how many
//! objects there are.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

use super::super::state::Place;
use super::renamed;

/// The server adds so many of these to a `generateName`, of which it takes at most so much.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_BYTES: usize = 5;
const PREFIX_BYTES_MAX: usize = 58;

/// What the server calls the volume with a pod's token, before a suffix of its own.
const TOKEN_VOLUME: &str = "kube-api-access-";

const UUID_BYTES: usize = 36;

/// A name can have a uid in it whose owner's name has one too. Names made up to go round in circles end here.
const DEPTH_MAX: usize = 3;

/// A name that the server made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generated<'s> {
    pub(super) name: &'s str,
    /// What it was told to begin with.
    pub(super) prefix: &'s str,
}

/// What every string of a state stands for.
#[derive(Debug, Default)]
pub(super) struct Lexicon<'s> {
    /// What a uid or an address is (the word for it), and of what.
    known: BTreeMap<&'s str, (&'static str, &'s Place)>,
    /// Shorter ones first: the prefix of one can have another one in it.
    generated: Vec<Generated<'s>>,
    /// By the last letters and digits of their names, the longest name first.
    endings: BTreeMap<&'s str, Vec<usize>>,
    /// What is written for each of the generated names.
    labels: Vec<String>,
}

enum Word<'s> {
    Known(&'static str, &'s Place),
    Gone,
    Time,
    TokenVolume,
    Name(usize),
}

impl<'s> Lexicon<'s> {
    /// Uids and addresses of everything that is known, generated names of what is compared.
    pub(super) fn of(
        known: impl Iterator<Item = (&'s Place, &'s Value)>,
        compared: &[(&'s Place, &'s Value)],
    ) -> Self {
        let mut lexicon = Self::default();
        for (place, object) in known {
            let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
            lexicon.known.extend(uid.filter(|uid| !uid.is_empty()).map(|uid| (uid, ("uid", place))));
            if &*place.resource == "services" {
                let addresses =
                    object.pointer("/spec/clusterIPs").and_then(Value::as_array).into_iter().flatten();
                let addresses = addresses.filter_map(Value::as_str).filter(|text| is_address(text));
                lexicon.known.extend(addresses.map(|address| (address, ("address", place))));
            }
        }
        let generated: BTreeSet<(usize, &str, &str)> = compared
            .iter()
            .filter_map(|(place, object)| {
                let prefix =
                    generated_prefix(&place.name, object.pointer("/metadata/generateName")?.as_str()?)?;
                Some((place.name.len(), &*place.name, prefix))
            })
            .collect();
        lexicon.generated =
            generated.into_iter().map(|(_, name, prefix)| Generated { name, prefix }).collect();
        for (index, generated) in lexicon.generated.iter().enumerate().rev() {
            lexicon.endings.entry(last_run(generated.name)).or_default().push(index);
        }
        lexicon
    }

    pub(super) fn generated(&self) -> &[Generated<'s>] {
        &self.generated
    }

    /// From now on the generated names are told apart by these numbers.
    pub(super) fn number(&mut self, numbers: &[usize]) {
        self.labels.clear();
        for (generated, number) in self.generated.iter().zip(numbers) {
            let prefix = self.text(generated.prefix, &mut |_| {});
            let label = format!("{prefix}*{number}");
            self.labels.push(label);
        }
    }

    /// A text with the names of things in place of what differs from run to run. The generated names in it are told to
    /// `mention`.
    pub(super) fn text<'t>(&self, text: &'t str, mention: &mut dyn FnMut(usize)) -> Cow<'t, str> {
        self.text_within(0, text, mention)
    }

    fn text_within<'t>(&self, depth: usize, text: &'t str, mention: &mut dyn FnMut(usize)) -> Cow<'t, str> {
        let found = self.find(text);
        if found.is_empty() || depth > DEPTH_MAX {
            return Cow::Borrowed(text);
        }
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for (start, end, word) in found {
            out.push_str(&text[done..start]);
            match word {
                Word::Known(what, place) => {
                    let place = self.place_within(depth + 1, place, mention);
                    let _ = write!(out, "<{what} of {place}>");
                }
                Word::Gone => out.push_str("<uid of something gone>"),
                Word::Time => out.push_str("<time>"),
                Word::TokenVolume => {
                    let _ = write!(out, "{TOKEN_VOLUME}*");
                }
                Word::Name(index) => {
                    mention(index);
                    // Labels are made in the order of the names' lengths, and a prefix only has shorter names in it.
                    out.push_str(self.labels.get(index).map_or("*", String::as_str));
                }
            }
            done = end;
        }
        out.push_str(&text[done..]);
        Cow::Owned(out)
    }

    /// A place with the names that its object has in every run.
    pub(super) fn place(&self, place: &Place, mention: &mut dyn FnMut(usize)) -> Place {
        self.place_within(0, place, mention)
    }

    fn place_within(&self, depth: usize, place: &Place, mention: &mut dyn FnMut(usize)) -> Place {
        let mut changed = |text: &str| match self.text_within(depth, text, mention) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        };
        let (namespace, name) = (changed(&place.namespace), changed(&place.name));
        renamed(place, namespace, name)
    }

    /// Everything in a text that stands for something, from left to right.
    fn find(&self, text: &str) -> Vec<(usize, usize, Word<'s>)> {
        if let Some((what, place)) = self.known.get(text) {
            return vec![(0, text.len(), Word::Known(what, place))];
        }
        let bytes = text.as_bytes();
        let mut found: Vec<(usize, usize, Word<'s>)> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            if !bytes[at].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            if let Some((end, word)) = self.word_at(text, at) {
                found.push((at, end, word));
                at = end;
                continue;
            }
            at += run_bytes(&bytes[at..]);
            if let Some((start, index)) = self.name_before(text, at) {
                // A longer name can have a shorter one in it: job-x7k2p and its pod job-x7k2p-9vbxz.
                while found.last().is_some_and(|(other, ..)| *other >= start) {
                    found.pop();
                }
                if found.last().is_none_or(|(_, end, _)| *end <= start) {
                    found.push((start, at, Word::Name(index)));
                }
            }
        }
        found
    }

    fn word_at(&self, text: &str, at: usize) -> Option<(usize, Word<'s>)> {
        let rest = &text.as_bytes()[at..];
        if is_uuid(rest) {
            let end = at + UUID_BYTES;
            let known = self.known.get(&text[at..end]);
            return Some((end, known.map_or(Word::Gone, |(what, place)| Word::Known(what, place))));
        }
        if let Some(suffix) = text[at..].strip_prefix(TOKEN_VOLUME)
            && is_suffix(&suffix[..run_bytes(suffix.as_bytes())])
        {
            return Some((at + TOKEN_VOLUME.len() + SUFFIX_BYTES, Word::TokenVolume));
        }
        if let Some(length) = time_bytes(rest) {
            let end = at + length;
            return text[at..end].parse::<Timestamp>().is_ok().then_some((end, Word::Time));
        }
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        let address = text[at..at + length].trim_end_matches('.');
        if !is_address(address) {
            return None;
        }
        let (what, place) = self.known.get(address)?;
        Some((at + address.len(), Word::Known(what, place)))
    }

    /// The longest generated name that ends there.
    fn name_before(&self, text: &str, end: usize) -> Option<(usize, usize)> {
        if self.endings.is_empty() {
            return None;
        }
        let before = &text[..end];
        self.endings.get(last_run(before))?.iter().find_map(|index| {
            let rest = before.strip_suffix(self.generated[*index].name)?;
            (!rest.ends_with(|end: char| end.is_ascii_alphanumeric())).then_some((rest.len(), *index))
        })
    }
}

/// What of a name was given, if the server made up the rest. Names that only look as if, such as those of a
/// `StatefulSet`'s pods, carry a `generateName` too.
fn generated_prefix<'n>(name: &'n str, generate_name: &str) -> Option<&'n str> {
    let cut = name.len().checked_sub(SUFFIX_BYTES)?;
    let (prefix, suffix) = (name.get(..cut)?, name.get(cut..)?);
    let taken = generate_name.get(..PREFIX_BYTES_MAX).unwrap_or(generate_name);
    (taken == prefix && is_suffix(suffix)).then_some(prefix)
}

/// Whether the server may have made this up.
fn is_suffix(text: &str) -> bool {
    text.len() == SUFFIX_BYTES && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

fn run_bytes(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()
}

/// The letters and digits that a text ends with.
fn last_run(text: &str) -> &str {
    let length = text.bytes().rev().take_while(u8::is_ascii_alphanumeric).count();
    &text[text.len() - length..]
}

fn is_address(text: &str) -> bool {
    text.parse::<std::net::Ipv4Addr>().is_ok()
}

/// A text with a star in the place of each uid.
pub(in crate::simulation) fn without_uids(text: &str) -> String {
    let mut without = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if is_uuid(rest.as_bytes()) {
            without.push('*');
            rest = &rest[UUID_BYTES..];
        } else {
            without.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    without
}

/// Whether bytes begin with a uid, and not with something longer.
fn is_uuid(bytes: &[u8]) -> bool {
    let Some(uuid) = bytes.get(..UUID_BYTES) else { return false };
    let is_dash = |index: usize| matches!(index, 8 | 13 | 18 | 23);
    let fits =
        |(index, byte): (usize, &u8)| if is_dash(index) { *byte == b'-' } else { byte.is_ascii_hexdigit() };
    uuid.iter().enumerate().all(fits)
        && bytes.get(UUID_BYTES).is_none_or(|next| !next.is_ascii_alphanumeric())
}

/// How long the RFC 3339 time is that bytes begin with, as far as its shape tells.
fn time_bytes(bytes: &[u8]) -> Option<usize> {
    let has_shape = |bytes: &[u8], shape: &[u8]| {
        let fits =
            |(byte, shape): (&u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
        bytes.len() >= shape.len() && bytes.iter().zip(shape).all(fits)
    };
    let seconds = b"0000-00-00T00:00:00";
    if !has_shape(bytes, seconds) {
        return None;
    }
    let mut length = seconds.len();
    if bytes.get(length) == Some(&b'.') {
        length += 1 + bytes[length + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    let zone = &bytes[length..];
    match zone.first()? {
        b'Z' => Some(length + 1),
        b'+' | b'-' if has_shape(&zone[1..], b"00:00") => Some(length + 6),
        _ => None,
    }
}
