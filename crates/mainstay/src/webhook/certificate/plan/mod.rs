//! When to make a certificate, which one to serve, which ones to trust.
//!
//! All replicas share one list of certificates, oldest first. Three rules hold, and together they mean that whatever a
//! replica serves, the API server trusts, at every moment of a rotation:
//!
//! 1. **Trusted is what is listed.** The registered `caBundle` holds the authorities of the whole list. A certificate leaves
//!    the list only when it has expired, and so nobody can be serving it with success.
//! 2. **A new one waits.** It is listed when the newest has used up two thirds of its life. A replica serves it only once it
//!    has itself seen the authority registered everywhere, and then only after a time in which every API server has taken
//!    note. Until then it serves the one before.
//! 3. **First come, first served.** The list is written with the version that was read. Of replicas that add to it at the
//!    same moment one wins, and the others read again and find nothing left to do.
//!
//! No replica needs to know how many there are: each follows the rules by itself, and looks often enough, which is twice in
//! the time that API servers may take to see a change.
//!
//! When the shared list is deleted, a new certificate is made at once, and the ones before stay trusted beside it, as long
//! as a replica that knows them runs. As nobody can tell what another replica had put into the list that is gone, all count
//! as new again: until they have settled, the oldest is served, which every replica knew. So deleting the list rotates
//! without a failure; to distrust the old ones too, restart all replicas after that.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Issued;

/// Since when authorities, by their PEM, have been seen registered everywhere.
pub(crate) type Trusted = BTreeMap<String, Timestamp>;

/// What the certificates are to be like.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The names that callers use, sorted.
    pub(crate) names: Vec<String>,
    /// How long a certificate lives.
    pub(crate) lifetime: Duration,
    /// How long API servers may take to see a change of what is registered.
    pub(crate) settle: Duration,
}

/// Why a certificate is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// There is none, or all have expired.
    None,
    /// None of those that there are has all the names.
    Names,
    /// Two thirds of the newest one's life are over.
    Due,
    /// Somebody deleted the list.
    Deleted,
}

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Take the certificate at this place off the list: it has expired.
    Forget(usize),
    /// Make a certificate and put it at the end of the list.
    Issue(Why),
    /// Answer with the certificate at this place.
    Serve(usize),
}

/// The steps, and when there may be others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificatePlan {
    /// `Forget` from the last place to the first, then `Issue`, then `Serve`. Places are those of the list as it is now.
    pub(crate) steps: Vec<Step>,
    /// Time alone changes nothing before this.
    pub(crate) look_again_at: Timestamp,
}

impl CertificatePlan {
    /// Whether the list is to be written.
    pub(crate) fn changes_list(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step, Step::Serve(_)))
    }

    /// The place of the certificate to answer with.
    pub(crate) fn serve(&self) -> Option<usize> {
        self.steps.iter().find_map(|step| if let Step::Serve(at) = step { Some(*at) } else { None })
    }
}

/// Decides from the list, what this replica has seen registered, and the time. `deleted` says that the shared list is gone
/// and `listed` is what this replica remembers of it.
pub(crate) fn plan_certificates(
    listed: &[Issued],
    deleted: bool,
    wanted: &Wanted,
    trusted: &Trusted,
    now: Timestamp,
) -> CertificatePlan {
    let alive = |issued: &Issued| issued.expires_at > now;
    let expired = (0..listed.len()).rev().filter(|at| !alive(&listed[*at]));
    let mut steps: Vec<_> = expired.map(Step::Forget).collect();
    let fitting: Vec<usize> =
        (0..listed.len()).filter(|at| alive(&listed[*at]) && fits(&listed[*at], wanted)).collect();
    let newest = fitting.last().map(|at| &listed[*at]);
    let why = match newest {
        _ if deleted && listed.iter().any(alive) => Some(Why::Deleted),
        Some(newest) => (due(newest) <= now).then_some(Why::Due),
        None if listed.iter().any(alive) => Some(Why::Names),
        None => Some(Why::None),
    };
    steps.extend(why.map(Step::Issue));
    steps.extend(choose(listed, &fitting, wanted, trusted, now).map(Step::Serve));

    let settling = fitting.iter().filter_map(|at| settled_at(&listed[*at], wanted, trusted));
    let moments = listed.iter().map(|issued| issued.expires_at).chain(newest.map(due)).chain(settling);
    let look_again_at = moments.filter(|at| *at > now).min().unwrap_or(Timestamp::MAX);
    CertificatePlan { steps, look_again_at }
}

/// The list with the plan's changes. `issue` makes a certificate.
pub(crate) fn change_list<E>(
    listed: &[Issued],
    plan: &CertificatePlan,
    now: Timestamp,
    issue: impl Fn(Why) -> Result<Issued, E>,
) -> Result<Vec<Issued>, E> {
    let mut next = listed.to_vec();
    for step in &plan.steps {
        match *step {
            Step::Forget(at) => drop(next.remove(at)),
            Step::Issue(why) => {
                if why == Why::Deleted {
                    for issued in &mut next {
                        issued.listed_since = now;
                    }
                }
                next.push(issue(why)?);
            }
            Step::Serve(_) => {}
        }
    }
    Ok(next)
}

/// The newest that API servers have had time to trust. If there is none such the oldest, as it has been registered the
/// longest. One that is about to expire only if there is no other.
fn choose(
    listed: &[Issued],
    fitting: &[usize],
    wanted: &Wanted,
    trusted: &Trusted,
    now: Timestamp,
) -> Option<usize> {
    let settled = |at: &usize| settled_at(&listed[*at], wanted, trusted).is_some_and(|at| at <= now);
    let lasting = |at: &usize| listed[*at].expires_at > later(now, wanted.settle);
    let newest_settled = fitting.iter().rev().find(|at| settled(at));
    let oldest_lasting = fitting.iter().find(|at| lasting(at));
    newest_settled.filter(|at| lasting(at)).or(oldest_lasting).or(fitting.last()).copied()
}

fn fits(issued: &Issued, wanted: &Wanted) -> bool {
    wanted.names.iter().all(|name| issued.names.contains(name))
}

/// When two thirds of its life are over.
fn due(issued: &Issued) -> Timestamp {
    let life = issued.expires_at.duration_since(issued.made_at);
    issued.made_at.checked_add(life / 3 * 2).unwrap_or(issued.expires_at)
}

fn settled_at(issued: &Issued, wanted: &Wanted, trusted: &Trusted) -> Option<Timestamp> {
    trusted.get(&issued.authority).map(|since| later(issued.listed_since.max(*since), wanted.settle))
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX)
}

/// What a `caBundle` holds: every listed authority.
pub(crate) fn bundle(listed: &[Issued]) -> String {
    listed.iter().map(|issued| issued.authority.as_str()).collect()
}

#[cfg(test)]
mod tests;
