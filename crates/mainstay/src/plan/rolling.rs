//! A rolling change: which children may be changed now, so that no more than a few are unavailable at once.

use super::answer::Wanted;
use super::children::{Draft, Standing, apply, recreate, settle};
use super::{Reason, Situation, Waiting};
use crate::controller::{ChildKind, Rolling};
use crate::readiness::{Readiness, readiness};

/// A child of a kind that is rolled.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) wanted: Wanted,
    pub(super) standing: Standing,
}

/// Plans all children of one kind.
///
/// Missing ones are created at once. Of the outdated, those that are unavailable anyway are changed at once: that makes
/// nothing worse, and may be what mends them. The available ones follow in the handler's order, as many as may be unavailable
/// besides those that are. So a revision that never becomes ready stops after that many.
pub(super) fn plan_rolling(
    rolling: &Rolling,
    config: &ChildKind,
    members: Vec<Member>,
    situation: &Situation<'_>,
    draft: &mut Draft,
) {
    let states: Vec<_> = members.iter().map(|member| availability(member, rolling, situation)).collect();
    let unavailable = states.iter().filter(|state| !state.is_ready()).count();
    let mut allowed = rolling.max_unavailable.saturating_sub(unavailable);
    let mut outdated = 0;
    let mut waits = Vec::new();
    for (Member { wanted, standing }, state) in members.into_iter().zip(states) {
        let name = wanted.object.key.name().to_owned();
        let Standing::Different { live, reason, changes } = standing else {
            if let Readiness::NotReady(why) = state {
                waits.push((name, why));
            }
            settle(wanted, standing, draft);
            continue;
        };
        let down = !state.is_ready();
        if down || allowed > 0 {
            allowed -= usize::from(!down);
            let anew = rolling.recreate || reason == Reason::Immutable;
            let reason = if reason == Reason::DesiredChanged { Reason::Rollout } else { reason };
            draft.steps.push(if anew {
                recreate(wanted, &live, reason, changes)
            } else {
                apply(wanted, &live, reason, changes)
            });
        } else {
            outdated += 1;
        }
    }
    if outdated > 0 {
        draft.waiting.push(Waiting::Rollout { kind: config.kind.clone(), outdated, unavailable: waits });
    }
}

fn availability(member: &Member, rolling: &Rolling, situation: &Situation<'_>) -> Readiness {
    match &member.standing {
        Standing::Missing => Readiness::NotReady("it is missing".into()),
        Standing::Going => Readiness::NotReady("it is being deleted".into()),
        // What belongs to somebody else is neither changed nor waited for.
        Standing::Foreign { .. } => Readiness::Ready,
        Standing::Free { live, .. } | Standing::Different { live, .. } => judge(rolling, &live.value()),
        Standing::Same => situation
            .child(&member.wanted.object)
            .map_or(Readiness::Ready, |live| judge(rolling, &live.value())),
    }
}

fn judge(rolling: &Rolling, object: &serde_json::Value) -> Readiness {
    rolling.ready.as_ref().map_or_else(|| readiness(object), |ready| ready(object))
}
