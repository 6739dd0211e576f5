//! Sets of completion indexes in the form that statuses and policies have them: `0,2,4-7`.

use std::collections::BTreeSet;
use std::fmt;

/// A set of indexes, as intervals that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(i32, i32)>);

impl Indexes {
    /// Reads a list of indexes, of those below `completions`. What cannot be read is passed over.
    pub(super) fn read(text: &str, completions: i32) -> Self {
        let mut read = Self::default();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
                read = read.with_interval(first.max(0), last.min(completions - 1));
            }
        }
        read
    }

    /// These and more.
    pub(super) fn with(&self, more: impl IntoIterator<Item = i32>) -> Self {
        more.into_iter().fold(self.clone(), |all, index| all.with_interval(index, index))
    }

    /// Those in either.
    pub(super) fn union(&self, other: &Self) -> Self {
        other.0.iter().fold(self.clone(), |all, (first, last)| all.with_interval(*first, *last))
    }

    /// Whether this one is among them.
    pub(super) fn has(&self, index: i32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&index))
    }

    /// How many there are.
    pub(super) fn count(&self) -> i32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// How many are in both.
    pub(super) fn shared(&self, other: &Self) -> i32 {
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(move |b| (a, b)));
        pairs.map(|(a, b)| (a.1.min(b.1) - a.0.max(b.0) + 1).max(0)).sum()
    }

    /// The first indexes below `completions` that are not among them.
    pub(super) fn missing(&self, completions: i32, count: usize) -> Vec<i32> {
        let mut missing = Vec::new();
        let mut next = 0;
        let end = (completions, completions);
        for (first, last) in self.0.iter().chain([&end]) {
            let room = count - missing.len();
            missing.extend((next..*first.min(&completions)).take(room));
            next = last.saturating_add(1);
        }
        missing
    }

    fn with_interval(self, first: i32, last: i32) -> Self {
        if first > last {
            return self;
        }
        let (mut merged, mut before, mut after) = ((first, last), Vec::new(), Vec::new());
        for (from, to) in self.0 {
            if to.saturating_add(1) < first {
                before.push((from, to));
            } else if from > last.saturating_add(1) {
                after.push((from, to));
            } else {
                merged = (merged.0.min(from), merged.1.max(to));
            }
        }
        before.push(merged);
        before.append(&mut after);
        Self(before)
    }
}

impl From<BTreeSet<i32>> for Indexes {
    fn from(indexes: BTreeSet<i32>) -> Self {
        Self::default().with(indexes)
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.iter().map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        });
        f.write_str(&parts.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_in_a_row_are_an_interval() {
        let text = |indexes: &[i32]| Indexes::default().with(indexes.iter().copied()).to_string();
        assert_eq!(text(&[]), "");
        assert_eq!(text(&[7, 1, 3, 5, 4]), "1,3-5,7");
        assert_eq!(text(&[0, 1]), "0,1");
        assert_eq!(text(&[0, 1, 2]), "0-2");
    }

    #[test]
    fn what_is_beyond_the_completions_or_cannot_be_read_is_passed_over() {
        assert_eq!(Indexes::read("0,2-9,x,11", 5).to_string(), "0,2-4");
        assert_eq!(Indexes::read("", 5), Indexes::default());
        assert_eq!(Indexes::read("7-9", 5), Indexes::default());
    }

    proptest! {
        #[test]
        fn they_are_a_set(a in prop::collection::btree_set(0..40, 0..20), b in prop::collection::btree_set(0..40, 0..20), some in 0..20_usize) {
            let (x, y) = (Indexes::from(a.clone()), Indexes::from(b.clone()));
            prop_assert_eq!(Indexes::read(&x.to_string(), 40), x.clone());
            prop_assert_eq!(usize::try_from(x.count()).unwrap(), a.len());
            prop_assert!((0..40).all(|index| x.has(index) == a.contains(&index)));
            prop_assert_eq!(x.union(&y), Indexes::from(a.union(&b).copied().collect::<BTreeSet<_>>()));
            prop_assert_eq!(usize::try_from(x.shared(&y)).unwrap(), a.intersection(&b).count());
            let missing: Vec<i32> = (0..30).filter(|index| !a.contains(index)).take(some).collect();
            prop_assert_eq!(x.missing(30, some), missing);
        }
    }
}
