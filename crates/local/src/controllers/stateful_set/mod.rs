//! `StatefulSets`: pods with names, claims and an order of their own.
//!
//! ```text
//! set, its pods, claims, revisions ─▶ revisions (which templates there are)
//!                                  ─▶ decide (who is made, deleted, labelled) ─▶ pod, claims
//!                                  ─▶ status
//! ```
//!
//! Claims are made once and stay, whatever becomes of the pods; with the retention policy `whenDeleted: Delete` they go with their
//! set. Under `whenScaled: Delete` they stay all the same. Pods are never changed but for the labels that say which one of the
//! set they are.

mod decide;
mod pod;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt as _;
use mainstay::events::Event;
use mainstay::{ChildKind, Controller, Error, SyncRequest, SyncResponse};

use self::decide::{Act, Member, State, Update, Wish, decide};
use self::status::Course;
use super::bounds::{AT_ONCE_MAX, Crowd};
use super::pods::{self, Availability, availability};
use super::revisions::{self, Revisions};
use super::share::{Round, share};

/// The label that revisions have their hash in.
const HASH: &str = "controller.kubernetes.io/hash";

/// The controller.
pub(super) fn controller() -> Controller {
    Controller::of::<StatefulSet>()
        .child(revisions::child_kind())
        .child(ChildKind::of::<PersistentVolumeClaim>().unowned())
        .child(ChildKind::of::<Pod>().adopt(revisions::parent_selector))
        .reads::<ControllerRevision>()
        .reads::<PersistentVolumeClaim>()
        .reads::<Pod>()
        .sync(sync)
}

fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let set: StatefulSet = request.parent()?;
    let spec = set.spec.unwrap_or_default();
    let known = set.status.unwrap_or_default();
    let revisions = revisions::observe(request, &spec.selector, HASH, known.collision_count)?;
    let update = revisions.update().clone();
    let current = known.current_revision.as_deref().and_then(|name| revisions.named(name)).unwrap_or(&update);
    let claimed = claim(request, &spec)?;
    let crowd = Crowd::of(&claimed.pods);
    let mut wish = wish(&spec);
    let is_there = |pod: &&Pod| {
        pod::ordinal(request.name(), &pod.name_any())
            .is_some_and(|ordinal| wish.ordinals().contains(&ordinal))
    };
    let missing = wish.ordinals().len().saturating_sub(claimed.pods.iter().filter(is_there).count());
    wish.room = crowd.room(missing);
    let makes = Makes { request, spec: &spec, wish: &wish, current, update: &update, pods: &claimed.pods };

    let course = Course {
        current: &current.name_any(),
        update: &update.name_any(),
        replicas: wish.replicas,
        strategy: wish.update,
        min_ready_seconds: spec.min_ready_seconds,
        collisions: revisions.collisions(),
        now: request.now(),
    };
    let mut status = status::status(course, &claimed.pods);
    status.conditions =
        crowd.held_back(missing).map(|why| vec![status::held_back(&known, why, request.now())]);
    let mut response = SyncResponse::from_status(status)?;
    for revision in revisions.children(&surplus(&revisions, &spec, current, &claimed.pods)) {
        response.add_child(revision)?;
    }
    response = makes.answer(response, &claimed.free)?;
    for pod in claimed.strayed {
        response = response.release(pod);
    }
    let available_after = claimed.pods.iter().filter_map(|pod| after(pod, &spec, request.now())).min();
    Ok(match available_after {
        Some(after) => response.requeue_after(after),
        None => response,
    })
}

/// When a pod will have been ready for long enough.
fn after(pod: &Pod, spec: &StatefulSetSpec, now: Timestamp) -> Option<Duration> {
    match availability(pod, spec.min_ready_seconds, now) {
        Availability::After(time) => Some(time),
        _ => None,
    }
}

fn wish(spec: &StatefulSetSpec) -> Wish {
    let replicas = spec.replicas.unwrap_or(1);
    let strategy = spec.update_strategy.clone().unwrap_or_default();
    let update = if strategy.type_.as_deref() == Some("OnDelete") {
        Update::OnDelete
    } else {
        let rolling = strategy.rolling_update.unwrap_or_default();
        let most = rolling.max_unavailable.map(|most| share(&most, replicas, Round::Down).max(1));
        Update::Rolling { partition: rolling.partition.unwrap_or(0), max_unavailable: most }
    };
    Wish {
        start: spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0),
        replicas,
        ordered: spec.pod_management_policy.as_deref() != Some("Parallel"),
        update,
        room: AT_ONCE_MAX,
    }
}

/// The pods of a set.
struct Claimed {
    /// Its own and those that it takes over.
    pods: Vec<Pod>,
    /// The names of those that it takes over.
    free: BTreeSet<String>,
    strayed: Vec<mainstay::ObjectRef>,
}

/// A pod is a set's by its labels and by its name.
fn claim(request: &SyncRequest, spec: &StatefulSetSpec) -> Result<Claimed, Error> {
    let is_member = |pod: &Pod| pod::ordinal(request.name(), &pod.name_any()).is_some();
    let pods::Claimed { own, free, mut strayed, .. } = pods::claim(request, &spec.selector)?;
    let (mut pods, others): (Vec<Pod>, Vec<Pod>) = own.into_iter().partition(is_member);
    strayed.extend(others.iter().map(pods::reference));
    let free: Vec<Pod> = free.into_iter().filter(is_member).collect();
    let names = free.iter().map(Pod::name_any).collect();
    pods.extend(free);
    Ok(Claimed { pods, free: names, strayed })
}

/// Revisions that nothing needs any more.
fn surplus<'a>(
    revisions: &'a Revisions,
    spec: &StatefulSetSpec,
    current: &ControllerRevision,
    pods: &[Pod],
) -> Vec<&'a str> {
    let live: BTreeSet<&str> =
        pods.iter().map(pod::revision).chain(current.metadata.name.as_deref()).collect();
    let is_live =
        |revision: &ControllerRevision| live.contains(revision.metadata.name.as_deref().unwrap_or_default());
    revisions.surplus(spec.revision_history_limit, false, is_live)
}

/// What the pods and claims of an answer are made from.
struct Makes<'a> {
    request: &'a SyncRequest,
    spec: &'a StatefulSetSpec,
    wish: &'a Wish,
    current: &'a ControllerRevision,
    update: &'a ControllerRevision,
    pods: &'a [Pod],
}

impl Makes<'_> {
    /// Adds claims and pods as they should be now.
    fn answer(&self, mut response: SyncResponse, free: &BTreeSet<String>) -> Result<SyncResponse, Error> {
        let set = self.request.name();
        let acts: BTreeSet<Act> = decide(self.wish, &self.members()?).into_iter().collect();
        for pod in self.pods {
            let name = pod.name_any();
            let Some(ordinal) = pod::ordinal(set, &name) else { continue };
            let is_pending = pods::phase(pod) == "Pending" && !pods::is_going(pod);
            if is_pending && self.wish.ordinals().contains(&ordinal) {
                self.add_claims(ordinal, &mut response)?;
            }
            // What is taken over is first made the set's own; then it is as any other.
            if free.contains(&name) {
                response.add_child(pods::kept::<Pod>(&name))?;
            } else if acts.contains(&Act::Label(ordinal)) {
                response.add_child(pod::labelled(pod, ordinal))?;
            } else if !acts.contains(&Act::Delete(ordinal)) {
                response.add_child(pods::kept::<Pod>(&name))?;
            } else {
                response = response.with_event(event("Delete", set, &name));
            }
        }
        for act in acts {
            if let Act::Make(ordinal) = act {
                self.add_claims(ordinal, &mut response)?;
                response.add_child(self.new_pod(ordinal)?)?;
                response = response.with_event(event("Create", set, &pod::pod_name(set, ordinal)));
            }
        }
        Ok(response)
    }

    /// How the pods stand. An ordinal without one is missing, unless a claim of it has yet to go.
    fn members(&self) -> Result<BTreeMap<i32, Member>, Error> {
        let (set, update) = (self.request.name(), self.update.name_any());
        let mut members = BTreeMap::new();
        for pod in self.pods {
            let Some(ordinal) = pod::ordinal(set, &pod.name_any()) else { continue };
            let is_updated = pod::revision(pod) == update;
            let (state, is_labelled) = (self.state(pod), pod::is_labelled(pod));
            members.insert(ordinal, Member { state, is_updated, is_labelled });
        }
        // Only as many of the others are looked at as may be made.
        let mut room = if self.wish.ordered { 1 } else { self.wish.room };
        let mut ordinals = self.wish.ordinals();
        while room > 0
            && let Some(ordinal) = ordinals.next()
        {
            if members.contains_key(&ordinal) {
                continue;
            }
            if self.has_going_claim(ordinal)? {
                let blocked = Member { state: State::Blocked, is_updated: true, is_labelled: true };
                members.insert(ordinal, blocked);
            } else {
                room -= 1;
            }
        }
        Ok(members)
    }

    fn state(&self, pod: &Pod) -> State {
        if pods::is_going(pod) {
            State::Going
        } else if pods::has_ended(pod) {
            State::Ended
        } else {
            match availability(pod, self.spec.min_ready_seconds, self.request.now()) {
                Availability::Available => State::Available,
                Availability::After(_) | Availability::Unready => State::Unavailable,
            }
        }
    }

    fn claims(&self, ordinal: i32) -> Vec<PersistentVolumeClaim> {
        pod::claims(self.request.name(), self.request.uid(), self.spec, ordinal)
    }

    fn has_going_claim(&self, ordinal: i32) -> Result<bool, Error> {
        for claim in self.claims(ordinal) {
            let live: Option<PersistentVolumeClaim> = self.request.get(&claim.name_any())?;
            if live.is_some_and(|live| pods::is_going(&live)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn add_claims(&self, ordinal: i32, response: &mut SyncResponse) -> Result<(), Error> {
        for claim in self.claims(ordinal) {
            response.add_child(claim)?;
        }
        Ok(())
    }

    /// A pod that an update has not come to is made as the others there are.
    fn new_pod(&self, ordinal: i32) -> Result<Pod, Error> {
        let current = self.current.name_any();
        let strategy = self.spec.update_strategy.as_ref();
        let kept = match (self.wish.update, strategy.and_then(|strategy| strategy.rolling_update.as_ref())) {
            (Update::OnDelete, _) => 0,
            (Update::Rolling { partition, .. }, Some(_)) => partition,
            // Without a partition those that are left of the old ones are the lowest.
            (Update::Rolling { .. }, None) => {
                pods::count(self.pods, |pod| !pods::is_going(pod) && pod::revision(pod) == current)
            }
        };
        let is_kept = ordinal < self.wish.start.saturating_add(kept);
        let revision = if is_kept { self.current } else { self.update };
        let template = revisions::template(revision)?;
        Ok(pod::new_pod(self.request.name(), self.spec, &template, &revision.name_any(), ordinal))
    }
}

fn event(verb: &str, set: &str, pod: &str) -> Event {
    Event::normal(&format!("Successful{verb}"), &format!("{verb} Pod {pod} in StatefulSet {set} successful"))
}
