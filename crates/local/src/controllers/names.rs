//! Names for pods that no other pod of the same parent ever had.
//!
//! ```text
//! parent's uid ─▶ an order of all endings ─▶ number 0, 1, 2 … ─▶ web-x7k2q
//! annotation of the parent: how many numbers are used up
//! ```
//!
//! Each pod has the next number, and its name ends with what the number stands for. Different numbers never stand for the same, and the
//! number can be read back from a name. A number is used up once a pod that has it was seen; that is recorded with the
//! parent's status, and holds when the pod is gone. What was asked for and never seen keeps its number: a request whose answer was lost is
//! repeated under the same name, and finds the pod.
//!
//! A pod can be created and deleted before its parent is synced again. To the sync this looks as if the create had never arrived.
//! [`Gone`] tells the two apart: it has the names of pods that vanished a short time ago. It is in memory only;
//! ARCHITECTURE.md says why, and what that leaves open ("Names of pods that nobody saw").

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use kube::ResourceExt;
use kube::core::Resource;
use mainstay::diff::content_hash;
use mainstay::{Key, SyncRequest, SyncResponse};
use serde_json::json;

/// On parents: how many numbers are used up.
const USED: &str = "mainstay.dev/pod-numbers-used";
/// How long a generated name's prefix may be, so that the name is one that a host can have.
const PREFIX_BYTES_MAX: usize = 58;
/// What endings are made of. They make no words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const ENDING_LETTERS: usize = 5;
/// How many endings there are: 27 to the power of five. After this many pods of one parent, names come round again.
const ENDINGS: u64 = 14_348_907;
/// A number that is so much higher than all that are used up was not given here: the pod was adopted, and its name means something else.
const AHEAD_MAX: u64 = 20_000;
/// The highest number that a parent can have recorded. Nobody makes that many pods: a higher one was written by hand. The same names
/// follow on it if multiples of [`ENDINGS`] are left out.
const RECORDED_MAX: u64 = 1 << 53;

/// How many names of vanished pods are kept: more than are deleted between two syncs of one parent.
const GONE_MAX: usize = 20_000;

/// The names of the pods that vanished last. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Gone(Arc<Mutex<Vanished>>);

#[derive(Debug, Default)]
struct Vanished {
    order: VecDeque<Key>,
    names: HashSet<Key>,
}

impl Gone {
    /// Takes in a pod that is gone.
    pub(super) fn add(&self, pod: &Key) {
        let mut vanished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !vanished.names.insert(pod.clone()) {
            return;
        }
        vanished.order.push_back(pod.clone());
        if vanished.order.len() > GONE_MAX
            && let Some(oldest) = vanished.order.pop_front()
        {
            vanished.names.remove(&oldest);
        }
    }

    /// Whether a pod of this name, in the namespace of the parent, vanished a short time ago.
    pub(super) fn had(&self, request: &SyncRequest, name: &str) -> bool {
        let vanished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        vanished.names.contains(&Key::new(request.namespace(), name))
    }
}

/// The names of one parent's pods.
#[derive(Debug, Clone)]
pub(super) struct Names {
    factor: u64,
    offset: u64,
    /// Numbers below are used up, as the parent has it.
    recorded: u64,
    /// Numbers below are used up or belong to pods that are there.
    seen: u64,
    /// The numbers of pods that are there.
    there: BTreeSet<u64>,
}

impl Names {
    /// Those of the parent of a sync, which has these pods.
    pub(super) fn of<'a, K: Resource + 'a>(
        request: &SyncRequest,
        own: impl IntoIterator<Item = &'a K>,
    ) -> Self {
        let annotations = &request.parent_json()["metadata"]["annotations"];
        let recorded = annotations[USED].as_str().and_then(|used| used.parse().ok()).unwrap_or(0);
        Self::new(request.uid(), recorded, own.into_iter().map(ResourceExt::name_any))
    }

    /// Those of the parent with this uid. Numbers below `recorded` are used up.
    pub(super) fn new(uid: &str, recorded: u64, own: impl IntoIterator<Item = String>) -> Self {
        let recorded = if recorded > RECORDED_MAX { recorded % ENDINGS } else { recorded };
        let seed = |what: &str| {
            let hash = content_hash(&json!([uid, what]));
            u64::from_str_radix(&hash[..hash.len().min(16)], 16).unwrap_or_default()
        };
        // Whatever is no multiple of three has an inverse, because the number of endings is a power of three.
        let factor = seed("factor") % (ENDINGS / 3) * 3 + 1;
        let mut names = Self {
            factor,
            offset: seed("offset") % ENDINGS,
            recorded,
            seen: recorded,
            there: BTreeSet::new(),
        };
        for name in own {
            if let Some(number) = names.number(&name) {
                names.there.insert(number);
                names.seen = names.seen.max(number + 1);
            }
        }
        names
    }

    /// Names that begin with what `prefix` makes of a place in the order, which begins at zero, and are free. Of a long prefix
    /// only the beginning is used, as Kubernetes does for generated names.
    pub(super) fn new_names<'a>(
        &'a self,
        mut prefix: impl FnMut(usize) -> String + 'a,
        is_taken: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = String> + 'a {
        let mut numbers = (self.recorded..).filter(|number| !self.there.contains(number));
        (0..).map_while(move |place| {
            let prefix = prefix(place);
            let prefix = &prefix[..prefix.floor_char_boundary(PREFIX_BYTES_MAX)];
            numbers.find_map(|number| {
                let name = format!("{prefix}{}", self.ending(number));
                (!is_taken(&name)).then_some(name)
            })
        })
    }

    /// Records with the parent's status which numbers are used up. While pods are made, those below the first of the new ones are;
    /// of the others nobody knows whether they are there.
    pub(super) fn record(&self, response: SyncResponse, first_new: Option<&str>) -> SyncResponse {
        let first_new = first_new.and_then(|name| self.number(name));
        match first_new.unwrap_or(self.seen) {
            0 => response,
            used => response.with_status_annotation(USED, &used.to_string()),
        }
    }

    fn ending(&self, number: u64) -> String {
        let mut rest = (number % ENDINGS * self.factor + self.offset) % ENDINGS;
        let mut letters = String::new();
        for _ in 0..ENDING_LETTERS {
            let count = LETTERS.len() as u64;
            letters.push(LETTERS[usize::try_from(rest % count).unwrap_or_default()].into());
            rest /= count;
        }
        letters
    }

    /// The number that a name was made from, if it can have been given here.
    fn number(&self, name: &str) -> Option<u64> {
        let ending = name.get(name.len().checked_sub(ENDING_LETTERS)?..)?;
        let mut value = 0;
        for letter in ending.bytes().rev() {
            let place = LETTERS.iter().position(|known| *known == letter)?;
            value = value * LETTERS.len() as u64 + u64::try_from(place).ok()?;
        }
        let turned = (value + ENDINGS - self.offset) % ENDINGS * inverse(self.factor) % ENDINGS;
        // Used-up numbers may have gone round already; the pod's is the one that is closest below or ahead.
        let base = self.recorded / ENDINGS * ENDINGS;
        let candidates = [base.checked_sub(ENDINGS), Some(base), base.checked_add(ENDINGS)];
        let candidates = candidates.into_iter().flatten().map(|base| base + turned);
        candidates.filter(|number| *number < self.recorded.saturating_add(AHEAD_MAX)).max()
    }
}

/// What makes one of a factor, in the arithmetic of endings: a power of it, because there are two thirds as many factors as endings.
fn inverse(factor: u64) -> u64 {
    let (mut power, mut base, mut exponent) = (1, factor % ENDINGS, ENDINGS / 3 * 2 - 1);
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power * base % ENDINGS;
        }
        base = base * base % ENDINGS;
        exponent /= 2;
    }
    power
}
