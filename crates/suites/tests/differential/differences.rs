//! Differences that are accepted: listed in DIFFERENCES.md with a reason, and named by the traces that show them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::differential::compare::Difference;
use crate::differential::pointer::covers;
use crate::differential::trace::Trace;

/// What remains of a trace's differences.
pub(crate) struct Verdict {
    pub(crate) unaccepted: Vec<Difference>,
    /// The ids that occurred.
    pub(crate) accepted: Vec<String>,
    /// What the trace accepts but did not occur.
    pub(crate) stale: Vec<String>,
}

/// Takes the accepted differences off. One that did not occur is stale where both servers were compared.
pub(crate) fn judge(trace: &Trace, differences: Vec<Difference>, both_servers: bool) -> Verdict {
    let mut used = BTreeSet::new();
    let mut unaccepted = Vec::new();
    for difference in differences {
        let accepting = trace.steps[difference.step].accept.iter().find_map(|(id, places)| {
            places
                .iter()
                .find(|place| covers(place, &difference.pointer))
                .map(|place| (difference.step, id, place))
        });
        match accepting {
            Some(acceptance) => {
                used.insert(acceptance);
            }
            None => unaccepted.push(difference),
        }
    }
    let all = trace.steps.iter().enumerate().flat_map(|(step, content)| {
        content.accept.iter().flat_map(move |(id, places)| places.iter().map(move |place| (step, id, place)))
    });
    let stale = all
        .filter(|acceptance| both_servers && !used.contains(acceptance))
        .map(|(step, id, place)| format!("step {}: accepts {id} at {place}, where nothing differs", step + 1))
        .collect();
    let accepted = used.iter().map(|(_, id, _)| (*id).clone()).collect();
    Verdict { unaccepted, accepted, stale }
}

/// The ids that DIFFERENCES.md lists, each as a heading `## D1: …`, and whether a trace has shown them.
pub(crate) struct Ledger(BTreeMap<String, bool>);

impl Ledger {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let heading = |line: &str| {
            let (id, _) = line.strip_prefix("## D")?.split_once(':')?;
            id.parse::<u32>().ok().map(|number| format!("D{number}"))
        };
        Self(text.lines().filter_map(heading).map(|id| (id, false)).collect())
    }

    /// Fails for an id that is not listed.
    pub(crate) fn mark_seen(&mut self, ids: Vec<String>) -> Result<(), String> {
        for id in ids {
            match self.0.get_mut(&id) {
                Some(seen) => *seen = true,
                None => return Err(format!("a trace accepts {id}, which DIFFERENCES.md does not list")),
            }
        }
        Ok(())
    }

    /// What is listed and was not shown.
    pub(crate) fn stale(&self) -> impl Iterator<Item = &String> {
        self.0.iter().filter(|(_, seen)| !**seen).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::differential::compare::compare_transcripts;

    fn verdict(accepted_place: &str) -> Verdict {
        let mut trace: Trace = serde_json::from_value(json!({
            "steps": [{"GET": "/", "accept": {"D1": [accepted_place]}}],
        }))
        .unwrap();
        trace.name = "t".into();
        let (left, right) = (json!({"body": {"message": "a"}}), json!({"body": {"message": "b"}}));
        judge(&trace, compare_transcripts(&[left], &[right]), true)
    }

    #[test]
    fn an_accepted_difference_is_taken_off_and_remembered() {
        let verdict = verdict("/body");
        assert!(verdict.unaccepted.is_empty() && verdict.stale.is_empty());
        assert_eq!(verdict.accepted, ["D1"]);
    }

    #[test]
    fn an_acceptance_that_nothing_needs_is_stale() {
        let verdict = verdict("/status");
        assert_eq!(verdict.unaccepted.len(), 1);
        assert_eq!(verdict.stale, ["step 1: accepts D1 at /status, where nothing differs"]);
    }
}
