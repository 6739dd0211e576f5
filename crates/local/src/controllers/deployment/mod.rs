//! A Deployment has a `ReplicaSet` for each pod template that it ever had, and moves pods from the old ones to the new one.
//!
//! ```text
//! its ReplicaSets ─▶ sets (which is the new one?) ─▶ sizes (the next move: roll, recreate, rescale) ─▶ ReplicaSets, status
//! ```
//!
//! - A set is found again by its template: going back to an old template is going forward to an old set, which becomes the newest
//!   revision.
//! - Each sync makes one move, decided from what the sets want and have. Nothing of a rollout is remembered elsewhere but when it last
//!   got on, which is in the condition `Progressing`.
//! - A set is always applied with all that it was made with.

mod annotations;
mod conditions;
mod limits;
mod sets;
mod sizes;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use mainstay::events::Event;
use mainstay::{ChildKind, Controller, Error, SyncRequest, SyncResponse};

use self::annotations::REVISION;
use self::conditions::{Doing, Told};
use self::limits::Wish;
use self::sets::{Revisions, Way};
use self::sizes::Move;
use self::status::Progress;
use super::pods::{self, Claimed};

pub(super) fn controller() -> Controller {
    let sets = ChildKind::of::<ReplicaSet>().adopt(sets::selector);
    Controller::of::<Deployment>().child(sets).reads::<ReplicaSet>().reads::<Pod>().until_gone().sync(sync)
}

/// A Deployment in one sync.
struct Rollout<'a> {
    request: &'a SyncRequest,
    deployment: &'a Deployment,
    spec: &'a DeploymentSpec,
    wish: Wish,
    revisions: Revisions,
    /// The label of a new set's pods, and its name.
    hash: String,
    name: String,
}

fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let deployment: Deployment = request.parent()?;
    let spec = deployment.spec.clone().unwrap_or_default();
    let Claimed { own, free, strayed, .. } = pods::claim_kind::<ReplicaSet>(request, &spec.selector)?;
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
    let hash = sets::hash(&spec.template, collisions);
    let name = sets::name(request.name(), &hash);
    let revisions = Revisions::of(own, &spec.template, &name);
    let (deployment, spec, wish) = (&deployment, &spec, Wish::of(&spec));
    let rollout = Rollout { request, deployment, spec, wish, revisions, hash, name };
    if request.is_deleting() {
        return rollout.answer(&Move::default(), Doing::Else, 0);
    }
    let mut response = if free.is_empty() {
        rollout.advance()?
    } else {
        // Sets that are adopted count from the next sync on.
        rollout.answer(&Move::default(), Doing::Rolling, 0)?
    };
    for set in &free {
        response.add_child(pods::kept::<ReplicaSet>(&set.name_any()))?;
    }
    Ok(strayed.into_iter().fold(response, SyncResponse::release))
}

impl Rollout<'_> {
    fn is_paused(&self) -> bool {
        self.spec.paused == Some(true)
    }

    /// Makes the next move, unless something is in its way.
    fn advance(&self) -> Result<SyncResponse, Error> {
        let sets = self.revisions.sets();
        let pods = self.deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
        if self.is_paused() || sets.is_rescaled(&self.wish) {
            return self.answer(&sizes::rescale(&self.wish, &sets, pods), Doing::Else, 0);
        }
        let next = if self.wish.rolls {
            sizes::roll(&self.wish, &sets)
        } else {
            sizes::recreate(&self.wish, &sets, self.has_old_pods()?)
        };
        if next.create.is_none() {
            return self.answer(&next, Doing::Rolling, 0);
        }
        match sets::way(self.deployment, self.request.get(&self.name)?.as_ref()) {
            Way::Clear => self.answer(&next, Doing::Rolling, 0),
            Way::Blocked => self.answer(&Move::default(), Doing::Rolling, 0),
            Way::Taken => self.answer(&Move::default(), Doing::Rolling, 1),
        }
    }

    /// Whether pods of old sets are still there, be it that they are going.
    fn has_old_pods(&self) -> Result<bool, Error> {
        let old: BTreeSet<String> = self.revisions.old.iter().filter_map(ReplicaSet::uid).collect();
        let pods: Vec<Pod> = self.request.select(&pods::selector_text(&self.spec.selector))?;
        let is_old = |pod: &Pod| pods::controller_uid(pod).is_some_and(|uid| old.contains(uid));
        Ok(pods.iter().any(|pod| is_old(pod) && !pods::has_ended(pod)))
    }

    /// The answer that makes a move. `collisions` are names that were found to be somebody else's.
    fn answer(&self, next: &Move, doing: Doing, collisions: i32) -> Result<SyncResponse, Error> {
        let told = Told {
            deployment: self.deployment,
            spec: self.spec,
            wish: &self.wish,
            doing,
            name: &self.name,
            now: self.request.now(),
        };
        let (mut status, conditions) = status::status(&told, &self.revisions);
        if collisions > 0 {
            status.collision_count = Some(status.collision_count.unwrap_or(0).saturating_add(collisions));
        }
        let is_complete = Progress::of(&status).is_complete(&self.wish);
        let mut response = SyncResponse::from_status(status)?;
        if let Some(wait) = conditions.next_look(self.spec, is_complete, self.request.now()) {
            response = response.requeue_after(wait);
        }
        if let Some(revision) = self.deployment.annotations().get(REVISION) {
            response = response.with_status_annotation(REVISION, revision);
        }
        if self.request.is_deleting() {
            return Ok(response);
        }
        let mut response = self.with_new(response, next)?;
        let forgotten = self.forgotten(next, doing);
        for set in self.revisions.old.iter().filter(|set| !forgotten.contains(&set.name_any())) {
            if !pods::is_going(set) {
                let size = next.sizes.get(&set.name_any()).copied();
                let mut annotations = annotations::own(set);
                if size.is_some() {
                    annotations::tell(&mut annotations, &self.wish);
                }
                response.add_child(sets::kept(set, size.unwrap_or_else(|| sets::size(set)), annotations))?;
            }
        }
        Ok(self.scalings(next).fold(response, SyncResponse::with_event))
    }

    /// Adds the new set, if it is there or to be made, and its revision as that of the Deployment. A new revision is written on the
    /// Deployment first, and only if it is as it was seen: whoever does not know its present template makes no set the newest.
    fn with_new(&self, mut response: SyncResponse, next: &Move) -> Result<SyncResponse, Error> {
        let live = self.revisions.new.as_ref().filter(|new| !pods::is_going(*new));
        let known = live.map(annotations::own).unwrap_or_default();
        let others = self.revisions.highest_old();
        let mut annotations = annotations::of_new(known, self.deployment.annotations(), others);
        let revision = annotations.get(REVISION).cloned().unwrap_or_default();
        let size = next.create.or_else(|| next.sizes.get(&live?.name_any()).copied());
        if size.is_some() {
            annotations::tell(&mut annotations, &self.wish);
        }
        match (live, next.create) {
            (Some(new), _) => {
                let size = size.unwrap_or_else(|| sets::size(new));
                response.add_child(sets::renewed(new, self.spec, &self.name, size, annotations))?;
            }
            (None, Some(size)) => {
                response.add_child(sets::made(self.spec, &self.name, &self.hash, size, annotations))?;
            }
            (None, None) => return Ok(response),
        }
        if self.deployment.annotations().get(REVISION) != Some(&revision) {
            response = response.status_first();
        }
        Ok(response.with_status_annotation(REVISION, &revision))
    }

    /// Old sets that are no longer kept: when all is done that there is to do.
    fn forgotten(&self, next: &Move, doing: Doing) -> Vec<String> {
        let is_over = doing == Doing::Rolling && status::was_complete(self.deployment, &self.wish);
        if next.is_nothing() && (self.is_paused() || is_over) {
            self.revisions.forgotten(self.spec.revision_history_limit)
        } else {
            Vec::new()
        }
    }

    fn scalings(&self, next: &Move) -> impl Iterator<Item = Event> {
        let created = next.create.filter(|size| *size > 0).map(|size| (self.name.clone(), 0, size));
        let resized = self.revisions.all().filter_map(|set| {
            let (name, before) = (set.name_any(), sets::size(set));
            next.sizes.get(&name).filter(|size| **size != before).map(|size| (name, before, *size))
        });
        created.into_iter().chain(resized).map(|(name, before, size)| {
            let way = if size > before { "up" } else { "down" };
            Event::normal(
                "ScalingReplicaSet",
                &format!("Scaled {way} replica set {name} from {before} to {size}"),
            )
        })
    }
}
