//! Sets of completion indexes in the form that statuses and policies have them: `0,2,4-7`.

use std::collections::BTreeSet;
use std::fmt;

/// A set of indexes, as intervals that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(i32, i32)>);

impl Indexes {
    /// Reads a list of indexes, of those below `completions`. What cannot be read is passed over.
    pub(super) fn read(text: &str, completions: i32) -> Self {
        let parts = text.split(',').filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse::<i32>().ok()?, last.parse::<i32>().ok()?);
            Some((first.max(0), last.min(completions.saturating_sub(1))))
        });
        Self::of_intervals(parts.collect())
    }

    /// These and more.
    pub(super) fn with(&self, more: impl IntoIterator<Item = i32>) -> Self {
        let more = more.into_iter().map(|index| (index, index));
        Self::of_intervals(self.0.iter().copied().chain(more).collect())
    }

    /// Those in either.
    pub(super) fn union(&self, other: &Self) -> Self {
        Self::of_intervals(self.0.iter().chain(&other.0).copied().collect())
    }

    /// Whether this one is among them.
    pub(super) fn has(&self, index: i32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&index))
    }

    /// How many there are.
    pub(super) fn count(&self) -> i32 {
        self.0.iter().map(|interval| length(*interval)).fold(0, i32::saturating_add)
    }

    /// How many are in both.
    pub(super) fn shared(&self, other: &Self) -> i32 {
        let (mut own, mut others, mut shared) = (self.0.iter().peekable(), other.0.iter().peekable(), 0_i32);
        while let (Some(a), Some(b)) = (own.peek(), others.peek()) {
            shared = shared.saturating_add(length((a.0.max(b.0), a.1.min(b.1))));
            if a.1 < b.1 {
                own.next()
            } else {
                others.next()
            };
        }
        shared
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

    /// Intervals in any order, which may touch and overlap. Those that end before they begin are empty.
    fn of_intervals(mut intervals: Vec<(i32, i32)>) -> Self {
        intervals.retain(|(first, last)| first <= last);
        intervals.sort_unstable();
        let mut merged: Vec<(i32, i32)> = Vec::new();
        for (first, last) in intervals {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }
}

/// How many indexes an interval has.
fn length((first, last): (i32, i32)) -> i32 {
    let length = i64::from(last) - i64::from(first) + 1;
    i32::try_from(length.max(0)).unwrap_or(i32::MAX)
}

impl From<BTreeSet<i32>> for Indexes {
    fn from(indexes: BTreeSet<i32>) -> Self {
        Self::default().with(indexes)
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.iter().map(|(first, last)| match last.saturating_sub(*first) {
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

    fn end() -> impl Strategy<Value = i32> {
        prop_oneof![0..6, (i32::MAX - 4)..=i32::MAX, Just(i32::MIN), any::<i32>()]
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_in_order_and_counted(
            parts in prop::collection::vec((end(), end()), 0..6), completions in end(), others in prop::collection::vec(end(), 0..4),
        ) {
            let text = parts.iter().map(|(first, last)| format!("{first}-{last}")).collect::<Vec<_>>().join(",");
            let read = Indexes::read(&text, completions);
            prop_assert!(read.0.iter().all(|(first, last)| 0 <= *first && first <= last && *last < completions));
            prop_assert!(read.0.windows(2).all(|pair| pair[0].1.saturating_add(1) < pair[1].0));
            let all = Indexes::read(&format!("0-{}", i32::MAX), completions);
            prop_assert_eq!(all.shared(&read), read.count());
            prop_assert_eq!(read.shared(&all), read.count());
            prop_assert!(read.missing(completions, 3).iter().all(|index| !read.has(*index) && all.has(*index)));
            let more = read.with(others.clone());
            prop_assert!(others.iter().all(|index| more.has(*index)));
            prop_assert_eq!(more.union(&read), more.clone());
            prop_assert_eq!(more.to_string().is_empty(), more.0.is_empty());
        }

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
