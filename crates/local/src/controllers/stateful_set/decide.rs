//! Which pods of a set are made, deleted or put right now.
//!
//! In an ordered set there is one act at a time: nothing happens beyond a pod that is not available, however long that takes; the
//! others go on as they are. In a parallel set only an update waits.

use std::collections::BTreeMap;
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
}

impl Wish {
    /// The ordinals that shall be there.
    pub(super) fn ordinals(&self) -> Range<i32> {
        self.start..self.start.saturating_add(self.replicas)
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
    for ordinal in wish.ordinals() {
        let member = members.get(&ordinal);
        match member.map(|member| member.state) {
            None => acts.push(Act::Make(ordinal)),
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
    let is_available =
        |ordinal: i32| members.get(&ordinal).is_some_and(|member: &Member| member.state == State::Available);
    let is_old = |ordinal: i32| {
        members.get(&ordinal).is_some_and(|member| {
            !member.is_updated && matches!(member.state, State::Available | State::Unavailable)
        })
    };
    let from = wish.start.saturating_add(partition);
    let updated = || wish.ordinals().rev().take_while(|ordinal| *ordinal >= from);
    match max_unavailable {
        None => {
            let next = updated().find(|ordinal| is_old(*ordinal) || !is_available(*ordinal));
            acts.extend(next.filter(|ordinal| is_old(*ordinal)).map(Act::Delete));
        }
        Some(most) => {
            let unavailable = wish.ordinals().filter(|ordinal| !is_available(*ordinal)).count();
            let allowed = usize::try_from(most).unwrap_or(0).saturating_sub(unavailable);
            acts.extend(updated().filter(|ordinal| is_old(*ordinal)).take(allowed).map(Act::Delete));
        }
    }
}
