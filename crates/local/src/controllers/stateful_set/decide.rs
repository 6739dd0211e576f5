//! Which pods of a set are made, deleted or put right now.
//!
//! In an ordered set there is one act at a time: nothing happens beyond a pod that is not available, however long that takes; the
//! others go on as they are. In a parallel set only an update waits.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What a set asks of its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    /// The first ordinal.
    pub(super) start: i32,
    pub(super) replicas: i32,
    /// One after the other, each when the one before it is available.
    pub(super) ordered: bool,
    pub(super) update: Update,
    /// How many pods may be made now.
    pub(super) room: usize,
}

impl Wish {
    /// The ordinals that shall be there.
    pub(super) fn ordinals(&self) -> Range<i32> {
        self.start..self.start.saturating_add(self.replicas.max(0))
    }

    /// The ordinals that something may be done about now: those that are there, and as many of the others as there is room for.
    /// There may be billions more, which nobody ever counts through.
    fn considered(&self, members: &BTreeMap<i32, Member>) -> BTreeSet<i32> {
        let missing = self.ordinals().filter(|ordinal| !members.contains_key(ordinal));
        // One that is missing and cannot be made keeps an ordered set waiting all the same.
        let missing = missing.take(if self.ordered { 1 } else { self.room });
        members.range(self.ordinals()).map(|(ordinal, _)| *ordinal).chain(missing).collect()
    }
}

/// How pods get a new template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Update {
    /// When somebody deletes them.
    OnDelete,
    /// From the highest ordinal down to the partition. Without a maximum each waits for the one above it alone; with one, for
    /// all that are unavailable to be fewer.
    Rolling { partition: i32, max_unavailable: Option<i32> },
}

/// How a pod stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// There is none, and cannot be before a claim of that name is gone.
    Blocked,
    /// Its containers have ended for good.
    Ended,
    /// It is not ready, or not for long enough.
    Unavailable,
    Available,
    /// It is being deleted.
    Going,
}

/// A pod of the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) state: State,
    /// Whether its template is the present one.
    pub(super) is_updated: bool,
    /// Whether its labels say which pod of the set it is.
    pub(super) is_labelled: bool,
}

/// What is done about a pod, by its ordinal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    Make(i32),
    Delete(i32),
    /// Gives it the labels that it lacks.
    Label(i32),
}

/// All that is done now.
pub(super) fn decide(wish: &Wish, members: &BTreeMap<i32, Member>) -> Vec<Act> {
    let mut acts = Vec::new();
    let goes_on = fill(wish, members, &mut acts) && scale_down(wish, members, &mut acts);
    if goes_on {
        update(wish, members, &mut acts);
    }
    acts
}

/// Sees to those that shall be there. Whether there is nothing to wait for.
fn fill(wish: &Wish, members: &BTreeMap<i32, Member>, acts: &mut Vec<Act>) -> bool {
    for ordinal in wish.considered(members) {
        let member = members.get(&ordinal);
        match member.map(|member| member.state) {
            None if wish.room > 0 => acts.push(Act::Make(ordinal)),
            Some(State::Ended) => acts.push(Act::Delete(ordinal)),
            _ => {}
        }
        if wish.ordered && member.is_none_or(|member| member.state != State::Available) {
            return false;
        }
        let labels = |member: &Member| {
            !member.is_labelled && matches!(member.state, State::Available | State::Unavailable)
        };
        if member.is_some_and(labels) {
            acts.push(Act::Label(ordinal));
        }
    }
    true
}

/// Deletes those that shall not be there, from the highest ordinal on. Whether there is nothing to wait for.
fn scale_down(wish: &Wish, members: &BTreeMap<i32, Member>, acts: &mut Vec<Act>) -> bool {
    let condemned = || members.iter().filter(|(ordinal, _)| !wish.ordinals().contains(ordinal));
    // Of those that are not available the lowest may go although it is not: nothing else could ever happen.
    let lowest_ailing =
        condemned().find(|(_, member)| member.state != State::Available).map(|(ordinal, _)| *ordinal);
    for (&ordinal, member) in condemned().rev() {
        let waits = match member.state {
            State::Going => true,
            State::Available => false,
            _ => wish.ordered && lowest_ailing != Some(ordinal),
        };
        if !waits {
            acts.push(Act::Delete(ordinal));
        }
        if wish.ordered {
            return false;
        }
    }
    true
}

/// Deletes those that have an old template, so that they are made anew.
fn update(wish: &Wish, members: &BTreeMap<i32, Member>, acts: &mut Vec<Act>) {
    let Update::Rolling { partition, max_unavailable } = wish.update else { return };
    let is_available = |member: &Member| member.state == State::Available;
    let is_old =
        |member: &Member| !member.is_updated && matches!(member.state, State::Available | State::Unavailable);
    let ordinals = wish.ordinals();
    let from = wish.start.saturating_add(partition);
    match max_unavailable {
        None => {
            // The first that is not there ends the search.
            let updated = ordinals.rev().take_while(|ordinal| *ordinal >= from);
            let mut updated = updated.map(|ordinal| (ordinal, members.get(&ordinal)));
            let next = updated
                .find(|(_, member)| member.is_none_or(|member| is_old(member) || !is_available(member)));
            acts.extend(
                next.filter(|(_, member)| member.is_some_and(is_old))
                    .map(|(ordinal, _)| Act::Delete(ordinal)),
            );
        }
        Some(most) => {
            let available =
                members.range(ordinals.clone()).filter(|(_, member)| is_available(member)).count();
            let unavailable = ordinals.len().saturating_sub(available);
            let allowed = usize::try_from(most).unwrap_or(0).saturating_sub(unavailable);
            let updated = members.range(ordinals).rev().take_while(|(ordinal, _)| **ordinal >= from);
            let old = updated.filter(|(_, member)| is_old(member)).take(allowed);
            acts.extend(old.map(|(ordinal, _)| Act::Delete(*ordinal)));
        }
    }
}
