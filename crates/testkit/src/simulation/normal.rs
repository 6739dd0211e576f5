//! End states, made comparable.
//!
//! Two runs of the same script are equal here if they differ only in what nobody decided: uids, names that the server
//! made up, times, revisions, generations, addresses and ports that the server gave out, and the order of lists that
//! are sets. Whatever refers to one of these refers to the same thing afterwards. What is only there for the cluster's
//! own sake (events, leases, the namespaces of the cluster itself) is left out. Everything else that differs is told.
//!
//! ```text
//! State ─▶ Lexicon (text: what strings stand for) ─▶ generated: which made-up name is which ─▶ tree ─▶ Normal
//! ```
//!
//! Pure, and the same for the same state.

mod generated;
mod ignored;
#[cfg(test)]
mod laws;
mod report;
#[cfg(test)]
mod tests;
mod text;
mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub(super) use self::ignored::Ignored;
use self::text::Lexicon;
pub(super) use self::text::without_uids;
use self::tree::{Mention, normal_tree};
use super::ask::is_aside;
use super::state::{Place, State};

/// One end state, normalised.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Normal {
    /// What is outside of the clusters is at `external <name>`.
    objects: BTreeMap<Place, Value>,
}

/// What is left of a state when everything is gone that may differ from run to run.
pub(super) fn normalise(state: &State, ignored: &[Ignored]) -> Normal {
    let outside: Vec<(Place, &Value)> =
        state.external().iter().map(|(name, value)| (Place::new("external", "", name), value)).collect();
    let objects: Vec<(&Place, &Value)> = state
        .objects()
        .filter(|(place, _)| is_compared(place))
        .chain(outside.iter().map(|(place, value)| (place, *value)))
        .collect();
    let mut lexicon = Lexicon::of(state.objects().filter(|(place, _)| !is_aside(&place.resource)), &objects);
    let render = |lexicon: &Lexicon<'_>, index: usize, mentions: &mut Vec<Mention>| {
        let (place, object) = objects[index];
        let tree = normal_tree(lexicon, place, object, ignored, mentions);
        (lexicon.place(place, &mut |node| mentions.push(Mention { node, path: String::new() })), tree)
    };
    let trees = generated::tell_apart(&mut lexicon, objects.len(), render);
    Normal { objects: trees.into_iter().collect() }
}

fn is_compared(place: &Place) -> bool {
    let is_root_certificate = &*place.resource == "configmaps" && &*place.name == "kube-root-ca.crt";
    !is_aside(&place.resource) && !is_root_certificate
}

impl Normal {
    /// In what another state is not as this one, one line each: `deployments.apps default/web: spec.replicas: 2 -> 1`,
    /// `secrets default/x: missing`, `pods default/y: should not exist`. Empty only if they are equal.
    pub(super) fn differences(&self, other: &Normal) -> Vec<String> {
        report::report(&self.objects, &other.objects)
    }
}

/// A place with another namespace and name.
fn renamed(place: &Place, namespace: Option<String>, name: Option<String>) -> Place {
    let or = |text: Option<String>, old: &Arc<str>| text.map_or_else(|| Arc::clone(old), Arc::from);
    Place { namespace: or(namespace, &place.namespace), name: or(name, &place.name), ..place.clone() }
}
