//! Who made what, and what was removed: so that nothing is lost unnoticed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::record::server;
use super::state::{Place, State};
use super::trace::Actor;

/// What was removed, and who had made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Removal {
    pub(super) place: Place,
    pub(super) maker: Arc<str>,
    pub(super) had_finalizers: bool,
    /// A name that the server made up begins with this.
    pub(super) generate_name: Option<String>,
    /// Who asked for it.
    pub(super) by: Actor,
    /// After how many of the steps that the user waits after.
    pub(super) stage: usize,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Account {
    makers: BTreeMap<Place, Arc<str>>,
    finalized: BTreeSet<Place>,
    /// Who marked what for deletion.
    marked: BTreeMap<Place, Actor>,
    /// What was made by mistake, for an owner that was gone already or by an instance that had been replaced: no loss when
    /// it goes again.
    stillborn: BTreeSet<Place>,
    removals: Vec<Removal>,
}

impl Account {
    /// Takes in a change that has been made to the state.
    pub(super) fn keep(
        &mut self,
        state: &State,
        stage: usize,
        place: &Place,
        actor: &Actor,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        if before.is_none() {
            self.makers.insert(place.clone(), actor.name.clone());
            self.finalized.remove(place);
            self.marked.remove(place);
            if after.is_some_and(|object| has_only_dead_owners(state, object)) {
                self.stillborn.insert(place.clone());
            }
        }
        // Whoever takes off the last finalizer only does what was asked for.
        if after.is_some_and(is_marked) {
            self.marked.entry(place.clone()).or_insert_with(|| actor.clone());
        }
        if after.is_some_and(has_finalizers) {
            self.finalized.insert(place.clone());
        }
        if let (Some(before), None) = (before, after)
            && !self.stillborn.remove(place)
        {
            let generate_name = before.pointer("/metadata/generateName").and_then(Value::as_str);
            self.removals.push(Removal {
                place: place.clone(),
                maker: self.makers.remove(place).unwrap_or_else(|| server().name),
                had_finalizers: self.finalized.remove(place),
                generate_name: generate_name.map(str::to_owned),
                by: self.marked.remove(place).unwrap_or_else(|| actor.clone()),
                stage,
            });
        }
    }

    /// What is about to be made here was made by mistake.
    pub(super) fn expect_nothing_of(&mut self, place: &Place) {
        self.stillborn.insert(place.clone());
    }

    /// All that was removed.
    pub(super) fn take(&mut self) -> Vec<Removal> {
        std::mem::take(&mut self.removals)
    }
}

/// Whether an object waits for its finalizers.
pub(super) fn is_marked(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

fn has_finalizers(object: &Value) -> bool {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

fn has_only_dead_owners(state: &State, object: &Value) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let lives = |owner: &Value| {
        let mut all = state.objects.values();
        all.any(|object| object.pointer("/metadata/uid") == Some(&owner["uid"]))
    };
    owners.is_some_and(|owners| !owners.is_empty() && !owners.iter().any(lives))
}

#[cfg(test)]
mod tests;
