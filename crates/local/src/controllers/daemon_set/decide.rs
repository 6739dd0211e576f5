//! Which pods are made and deleted now, node by node.
//!
//! First every node gets what it should have: one pod, or none. Only when there is nothing of that kind to do, old pods are
//! replaced, as far as the strategy allows: without a surge they go first, with one the new pod comes first and the old one goes when
//! it is available.

use super::pod::Place;

/// A pod, as far as decisions go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Daemon {
    pub(super) name: String,
    pub(super) state: State,
    /// Whether its template is the present one.
    pub(super) is_updated: bool,
    pub(super) health: Health,
    pub(super) is_bound: bool,
}

impl Daemon {
    pub(super) fn is_ready(&self) -> bool {
        self.health != Health::Unready
    }

    pub(super) fn is_available(&self) -> bool {
        self.health == Health::Available
    }
}

/// Whether a pod can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Unready,
    /// Not for long enough.
    Ready,
    Available,
}

/// Where a pod is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Neither ended nor about to go.
    Live,
    /// It has ended, and is replaced.
    Ended,
    /// It has failed, too soon after it was made to be replaced already.
    Resting,
    /// It is being deleted.
    Going,
}

/// A node with its pods: bound ones first, then by age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) node: String,
    /// None: there is no such node.
    pub(super) place: Option<Place>,
    pub(super) pods: Vec<Daemon>,
}

impl Site {
    fn is_wanted(&self) -> bool {
        self.place == Some(Place::Wanted)
    }

    fn live(&self) -> impl Iterator<Item = &Daemon> {
        self.pods.iter().filter(|pod| pod.state == State::Live)
    }
}

/// How pods get a new template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Update {
    /// When somebody deletes them.
    OnDelete,
    /// At most so many more pods than nodes, and so many nodes without an available one.
    Rolling { surge: usize, unavailable: usize },
}

impl Update {
    fn surges(self) -> bool {
        matches!(self, Self::Rolling { surge: 1.., .. })
    }
}

/// What is done now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Acts {
    /// Nodes that get a pod.
    pub(super) make: Vec<String>,
    /// Pods that go.
    pub(super) delete: Vec<String>,
}

impl Acts {
    fn delete<'a>(&mut self, pods: impl IntoIterator<Item = &'a Daemon>) {
        self.delete.extend(pods.into_iter().map(|pod| pod.name.clone()));
    }
}

/// All that is done now.
pub(super) fn decide(sites: &[Site], update: Update) -> Acts {
    let mut acts = Acts::default();
    for site in sites {
        settle(site, update, &mut acts);
    }
    if acts != Acts::default() {
        return acts;
    }
    match update {
        Update::OnDelete => acts,
        Update::Rolling { surge: 0, unavailable } => replace(sites, unavailable),
        Update::Rolling { surge, .. } => surge_over(sites, surge),
    }
}

/// Gives a node what it should have.
fn settle(site: &Site, update: Update, acts: &mut Acts) {
    let present = || site.pods.iter().filter(|pod| pod.state != State::Going);
    match site.place {
        // Pods that are bound to a node that is gone are not the set's to remove.
        None => acts.delete(present().filter(|pod| !pod.is_bound)),
        Some(Place::Unwanted) => acts.delete(present()),
        Some(Place::Wanted) if site.pods.is_empty() => acts.make.push(site.node.clone()),
        Some(Place::Wanted | Place::Tolerated) => {
            acts.delete(present().filter(|pod| pod.state == State::Ended));
            if !update.surges() {
                acts.delete(site.live().skip(1));
            } else if site.live().next().is_none() && site.is_wanted() {
                acts.make.push(site.node.clone());
            } else {
                thin_out(site, acts);
            }
        }
    }
}

/// Leaves one pod, or two while the new one gets ready beside the old one that is.
fn thin_out(site: &Site, acts: &mut Acts) {
    let (new, old): (Vec<&Daemon>, Vec<&Daemon>) = site.live().partition(|pod| pod.is_updated);
    acts.delete(new.iter().chain(&old).copied().filter(|pod| {
        let is_first = |pods: &[&Daemon]| pods.first().is_some_and(|first| first.name == pod.name);
        !is_first(&new) && !is_first(&old)
    }));
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!old.is_ready() || new.is_available())
    {
        acts.delete([*old]);
    }
}

/// What a node has besides pods that go: a new pod, an old one.
type Pair<'a> = (Option<&'a Daemon>, Option<&'a Daemon>);

/// None: there are several of one sort, which is for [`settle`] to clear up.
fn pair(site: &Site) -> Option<Pair<'_>> {
    let present: Vec<&Daemon> = site.pods.iter().filter(|pod| pod.state != State::Going).collect();
    let (new, old): (Vec<&Daemon>, Vec<&Daemon>) = present.into_iter().partition(|pod| pod.is_updated);
    (new.len() <= 1 && old.len() <= 1).then(|| (new.first().copied(), old.first().copied()))
}

/// The nodes that an update is about.
fn updated(sites: &[Site]) -> impl Iterator<Item = &Site> {
    sites.iter().filter(|site| site.is_wanted() || !site.pods.is_empty())
}

/// Deletes old pods: those that are of no use, and so many others that not too many nodes are without.
fn replace(sites: &[Site], most_unavailable: usize) -> Acts {
    let (mut useless, mut useful, mut unavailable) = (Vec::new(), Vec::new(), 0);
    for site in updated(sites) {
        match pair(site) {
            Some((Some(new), None)) => unavailable += usize::from(!new.is_available()),
            Some((None, Some(old))) if old.is_available() => useful.push(old),
            Some((None, Some(old))) => {
                useless.push(old);
                unavailable += 1;
            }
            _ => unavailable += 1,
        }
    }
    let mut acts = Acts::default();
    acts.delete(useless);
    acts.delete(useful.into_iter().take(most_unavailable.saturating_sub(unavailable)));
    acts
}

/// Makes new pods beside old ones: where the old one is of no use, and on so many other nodes as may have two.
fn surge_over(sites: &[Site], surge: usize) -> Acts {
    let mut acts = Acts::default();
    let (mut candidates, mut leaving, mut surging, mut available) = (Vec::new(), Vec::new(), 0, 0_usize);
    for site in updated(sites) {
        let Some((new, old)) = pair(site) else {
            surging += 1;
            continue;
        };
        available += usize::from(old.or(new).is_some_and(Daemon::is_available));
        match (new, old) {
            (_, None) => {}
            (None, Some(old)) if site.is_wanted() && old.is_available() => candidates.push(site.node.clone()),
            (None, Some(_)) if site.is_wanted() => acts.make.push(site.node.clone()),
            (None, Some(old)) if old.is_available() => leaving.push(old),
            (Some(new), Some(_)) if !new.is_available() => surging += 1,
            (_, Some(old)) => acts.delete([old]),
        }
    }
    // A pod that may stay where none is wanted any more does so until there are enough elsewhere.
    let wanted = sites.iter().filter(|site| site.is_wanted()).count();
    acts.delete(leaving.into_iter().take(available.saturating_sub(wanted)));
    acts.make.extend(candidates.into_iter().take(surge.saturating_sub(surging)));
    acts
}
