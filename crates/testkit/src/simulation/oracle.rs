//! Whether a run came to what it should: the differential oracle. Pure.

use std::collections::BTreeMap;

use super::account::Removal;
use super::normal::{Ignored, Normal, normalise, without_uids};
use super::violation::Violation;
use super::world::Run;

/// The user's name in traces.
const USER: &str = "user";
/// Kinds that hold what cannot be made anew.
const DATA: [&str; 3] = ["persistentvolumeclaims", "persistentvolumes", "secrets"];

/// What a run is compared with.
#[derive(Debug)]
pub(super) struct Baseline {
    normal: Normal,
    /// At which stages of the script what was removed.
    removed: BTreeMap<String, Vec<usize>>,
}

/// What the author adds.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// Fields that may differ.
    pub(super) ignored: Vec<Ignored>,
    /// Resources that hold data, besides the usual ones.
    pub(super) kept: Vec<String>,
    /// Resources of which the program may remove what the user made.
    pub(super) removable: Vec<String>,
}

impl Rules {
    /// What the end of this run says of all others.
    pub(super) fn baseline(&self, run: &Run) -> Baseline {
        let removed = self.count(&run.remains.removals).into_iter();
        let stages = |removals: Vec<&Removal>| removals.iter().map(|removal| removal.stage).collect();
        let removed = removed.map(|(what, removals)| (what, stages(removals))).collect();
        Baseline { normal: normalise(&run.end, &self.ignored), removed }
    }

    /// What is wrong with the run without faults: an operator has no business removing what the user made.
    pub(super) fn judge_baseline(&self, subject: &str, run: &Run) -> Vec<Violation> {
        let taken = run.remains.removals.iter().filter(|removal| {
            let may = self.removable.iter().any(|resource| **resource == *removal.place.resource);
            &*removal.maker == USER && &*removal.by.name == subject && !may
        });
        let lost = |removal: &Removal| Violation::Lost {
            what: removal.place.to_string(),
            by: removal.by.to_string(),
        };
        run.remains.violations.iter().cloned().chain(taken.map(lost)).collect()
    }

    /// What is wrong with a run.
    pub(super) fn judge(&self, baseline: &Baseline, run: &Run) -> Vec<Violation> {
        let mut found = run.remains.violations.clone();
        for (what, removals) in self.count(&run.remains.removals) {
            let known = baseline.removed.get(&what).map_or(&[][..], Vec::as_slice);
            let is_lost = |(index, removal): &(usize, &&Removal)| {
                // Once more than without faults, or before the user did what it follows from.
                known.get(*index).is_none_or(|stage| removal.stage < *stage)
            };
            if let Some((_, removal)) = removals.iter().enumerate().find(is_lost) {
                found.push(Violation::Lost { what, by: removal.by.to_string() });
            }
        }
        // A run that was cut short has not come to an end that could be compared; a further pass begins after the end.
        let is_whole = |violation: &Violation| matches!(violation, Violation::SecondPass { .. });
        if run.remains.violations.iter().all(is_whole) {
            let differences = baseline.normal.differences(&normalise(&run.end, &self.ignored));
            if !differences.is_empty() {
                found.push(Violation::EndState { differences });
            }
        }
        found
    }

    /// In what the ends of two runs differ.
    pub(super) fn differences(&self, expected: &Run, run: &Run) -> Vec<String> {
        normalise(&expected.end, &self.ignored).differences(&normalise(&run.end, &self.ignored))
    }

    /// What was removed that must not be lost, by what it is called in every run.
    fn count<'a>(&self, removals: &'a [Removal]) -> BTreeMap<String, Vec<&'a Removal>> {
        let mut counted: BTreeMap<String, Vec<&Removal>> = BTreeMap::new();
        for removal in removals.iter().filter(|removal| self.is_kept(removal)) {
            let mut place = removal.place.clone();
            if let Some(prefix) = &removal.generate_name {
                place.name = format!("{prefix}*").into();
            }
            place.name = without_uids(&place.name).into();
            counted.entry(place.to_string()).or_default().push(removal);
        }
        counted
    }

    fn is_kept(&self, removal: &Removal) -> bool {
        let resource = &*removal.place.resource;
        &*removal.maker == USER
            || removal.had_finalizers
            || resource == "external"
            || DATA.contains(&resource)
            || self.kept.iter().any(|kept| kept == resource)
    }
}

#[cfg(test)]
mod tests;
