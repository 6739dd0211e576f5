//! The keeper: a task that reads and writes the leases, as decided.
//!
//! One round: renew what is due; list all leases of the operator; decide; carry that out; sleep. No request may take longer
//! than a fifth of the lease's duration, and a renewal that failed is not kept waiting by anything else. Every write
//! carries the version it was decided on; what the server refuses is looked at again in the next round.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, join_all, select};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::decide::{Decision, Step, decide, due, has_run_out};
use super::fence::{Fence, Standing};
use super::ledger::{Drain, Ledger};
use super::moment::Moment;
use super::options::{InvalidReplicas, Replicas};
use super::record::{self, Names, Role};
use crate::clock::{Clock, later};

/// A request about a lease that came to nothing.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("no answer within {0:?}")]
    Slow(Duration),
    #[error("the server refused")]
    Refused(#[source] kube::Error),
    #[error("the lease belongs to the operator {0}")]
    Taken(String),
}

impl Failure {
    fn code(&self) -> Option<u16> {
        match self {
            Failure::Refused(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    /// Whether the server has answered that the lease is not as it was thought to be.
    fn is_outdated(&self) -> bool {
        matches!(self.code(), Some(404 | 409))
    }
}

/// Keeps the leases of one replica, while it [runs](Keeper::run).
#[derive(Debug)]
pub struct Keeper {
    api: Api<Lease>,
    clock: Arc<dyn Clock>,
    rng: fastrand::Rng,
    fence: Fence,
    ledger: Ledger,
    /// Leases that have a name of ours but not our labels, so no list shows them. They are read one by one.
    strays: BTreeSet<String>,
}

impl Replicas {
    /// The fence of a replica of an operator, and the keeper that opens it, unless it is always open. The name of the
    /// operator becomes part of the names of its leases and the value of a label.
    pub fn join(
        &self,
        operator: &str,
        client: Client,
        clock: Arc<dyn Clock>,
        mut rng: fastrand::Rng,
    ) -> Result<(Fence, Option<Keeper>), InvalidReplicas> {
        let terms = self.terms()?;
        let Some(leases) = &self.leases else { return Ok((Fence::unguarded(clock), None)) };
        let me = self.choose_identity(&mut rng);
        let names = Names { operator: operator.to_owned(), count: leases.shards };
        let fence = Fence::closed(me.clone(), leases.shards, clock.clone());
        let keeper = Keeper {
            api: Api::namespaced(client, &leases.namespace),
            clock,
            rng,
            fence: fence.clone(),
            ledger: Ledger::new(me, names, terms),
            strays: BTreeSet::new(),
        };
        Ok((fence, Some(keeper)))
    }
}

/// What follows from a round.
enum Next {
    /// Look again at once: something changed that more depends on.
    AtOnce,
    /// Look again after about so long, and not later than that instant.
    After(Duration, Option<Instant>),
    /// All is given up.
    Finish,
}

impl Keeper {
    /// Keeps the leases until `stop` resolves; then lets running work end, gives everything back, and returns. Begin it when
    /// caches are warm, because it takes shards at once.
    ///
    /// Dropping it keeps the guarantees of the fence, but successors must then wait until the leases expire.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send) {
        let mut stop = Box::pin(stop);
        loop {
            let next = self.round().await;
            let until = match next {
                Next::Finish => break,
                Next::AtOnce => continue,
                Next::After(pause, latest) => {
                    let at = later(Instant::now(), pause.mul_f64(0.8 + 0.2 * self.rng.f64()));
                    latest.map_or(at, |latest| at.min(latest))
                }
            };
            let fence = self.fence.clone();
            let wake = select(Box::pin(sleep_until(until)), Box::pin(fence.drained()));
            if self.ledger.stopping.is_some() {
                wake.await;
            } else if let Either::Left(_) = select(&mut stop, wake).await {
                self.ledger.stopping = Some(Instant::now());
            }
        }
        self.ledger.own.clear();
        self.show(None);
    }

    async fn round(&mut self) -> Next {
        let failed = Next::After(self.ledger.terms.retry, None);
        self.note_drained();
        let steps = self.change_locally(due(&self.ledger, Instant::now()));
        self.show(None);
        if self.write_all(steps).await.failed || !self.read_all().await {
            self.show(None);
            return if has_run_out(&self.ledger, Instant::now()) { Next::Finish } else { failed };
        }
        self.note_drained();
        let mut decision = decide(&self.ledger, Instant::now());
        let steps = self.change_locally(std::mem::take(&mut decision.steps));
        self.show(Some(&decision));
        if decision.finished {
            return Next::Finish;
        }
        let written = self.write_all(steps).await;
        self.show(Some(&decision));
        if written.failed {
            failed
        } else if written.changed || !self.drained().is_empty() {
            Next::AtOnce
        } else {
            Next::After(decision.pause, decision.latest)
        }
    }

    fn note_drained(&mut self) {
        for shard in self.drained() {
            self.ledger.drain(shard, Drain::Done);
        }
    }

    /// The shards whose last work has just ended.
    fn drained(&self) -> Vec<super::Shard> {
        let draining = self.ledger.own.iter().filter(|(_, own)| own.drain == Drain::Running);
        draining.map(|(shard, _)| *shard).filter(|shard| self.fence.is_idle(*shard)).collect()
    }

    /// Carries out the steps that need no request, and leaves the others.
    fn change_locally(&mut self, mut steps: Vec<Step>) -> Vec<Step> {
        steps.retain(|step| {
            match step {
                Step::Open(shard) => self.ledger.open(*shard),
                Step::Drain(shard) => self.ledger.drain(*shard, Drain::Running),
                // The fence is closed before the lease is given away.
                Step::Release(shard) => self.ledger.close(*shard),
                _ => {}
            }
            !matches!(step, Step::Open(_) | Step::Drain(_))
        });
        steps
    }

    /// Shows the ledger's state to the fence and to who listens.
    fn show(&self, decision: Option<&Decision>) {
        self.fence.reflect(&self.ledger);
        let now = Moment::now(&*self.clock);
        let open = self.ledger.own.iter().filter(|(_, own)| {
            own.open && self.ledger.deadline(own).is_some_and(|deadline| !deadline.passed(now))
        });
        let held = open.map(|(shard, own)| (*shard, own.tenure)).collect();
        let before = self.fence.standing().borrow().clone();
        let standing = match decision {
            Some(decision) => Standing { held, members: decision.members, waiting: decision.waiting.clone() },
            None => Standing { held, ..before.clone() },
        };
        if standing.held != before.held {
            let held: Vec<u32> = standing.held.keys().map(|shard| shard.index()).collect();
            info!(identity = %self.ledger.me, ?held, members = standing.members, "shards held by this replica changed");
        }
        self.fence.tell(standing);
    }

    async fn read_all(&mut self) -> bool {
        let params = ListParams::default().labels(&self.ledger.names.selector());
        let mut leases = match self.within(self.api.list(&params)).await {
            Ok(list) => list.items,
            Err(failure) => {
                warn!(error = &failure as &dyn std::error::Error, "cannot list leases");
                return false;
            }
        };
        for name in std::mem::take(&mut self.strays) {
            if leases.iter().any(|lease| lease.metadata.name.as_ref() == Some(&name)) {
                continue;
            }
            match self.within(self.api.get_opt(&name)).await.and_then(|lease| self.refuse_foreign(lease)) {
                Ok(Some(lease)) => {
                    leases.push(lease);
                    self.strays.insert(name);
                }
                Ok(None) => {}
                Err(failure) => {
                    warn!(lease = name, error = &failure as &dyn std::error::Error, "cannot use a lease");
                    self.strays.insert(name);
                    return false;
                }
            }
        }
        self.ledger.observe_all(leases, Instant::now());
        true
    }

    fn refuse_foreign(&self, lease: Option<Lease>) -> Result<Option<Lease>, Failure> {
        match lease.as_ref().and_then(|lease| record::label(lease, record::OPERATOR)) {
            Some(operator) if operator != self.ledger.names.operator => {
                Err(Failure::Taken(operator.to_owned()))
            }
            _ => Ok(lease),
        }
    }

    /// Sends the requests of these steps all at once, so that none waits for a slow one, and takes note of the answers.
    async fn write_all(&mut self, steps: Vec<Step>) -> Written {
        let requests = steps.into_iter().map(|step| async {
            let sent = Moment::now(&*self.clock);
            let answer = self.write(&step, sent).await;
            (step, sent, answer, Moment::now(&*self.clock))
        });
        let mut written = Written { changed: false, failed: false };
        for (step, sent, answer, now) in join_all(requests).await {
            match answer {
                Ok(lease) => {
                    written.changed |= !matches!(step, Step::Sweep(_));
                    self.note(step, lease, sent, now);
                }
                Err(failure) if failure.is_outdated() => {
                    debug!(
                        ?step,
                        error = &failure as &dyn std::error::Error,
                        "a lease is not as it was seen"
                    );
                    self.note_outdated(&step, &failure);
                }
                Err(failure) => {
                    warn!(?step, error = &failure as &dyn std::error::Error, "cannot write a lease");
                    written.failed = true;
                }
            }
        }
        written
    }

    /// Sends the request of one step. The answer is the lease as it stands then, if it still exists.
    async fn write(&self, step: &Step, sent: Moment) -> Result<Option<Lease>, Failure> {
        let Ledger { me, names, terms, leases, .. } = &self.ledger;
        let (name, role) = match step {
            Step::Renew(shard) | Step::Acquire(shard) | Step::Release(shard) => {
                (names.shard(*shard), Role::Shard)
            }
            Step::KeepMember | Step::RemoveMember => (names.member(me), Role::Member),
            Step::Sweep(name) => (name.clone(), Role::Member),
            Step::Open(_) | Step::Drain(_) => return Ok(None),
        };
        let seen = leases.get(&name).filter(|seen| !seen.gone).map(|seen| &seen.lease);
        match (step, seen) {
            (Step::RemoveMember | Step::Sweep(_), seen) => {
                let version = seen.and_then(|seen| seen.metadata.resource_version.clone());
                let preconditions = Preconditions { resource_version: version, uid: None };
                let params = DeleteParams::default().preconditions(preconditions);
                self.within(self.api.delete(&name, &params)).await.map(|_| None)
            }
            (Step::Release(_), Some(seen)) => self
                .within(self.api.replace(&name, &PostParams::default(), &record::release(seen, sent.wall)))
                .await
                .map(Some),
            (Step::Release(_), None) => Ok(None),
            (_, seen) => {
                let lease = record::hold(seen, &name, role, names, me, terms.duration, sent.wall);
                let params = PostParams::default();
                match seen {
                    Some(_) => self.within(self.api.replace(&name, &params, &lease)).await.map(Some),
                    None => self.within(self.api.create(&params, &lease)).await.map(Some),
                }
            }
        }
    }

    fn note(&mut self, step: Step, lease: Option<Lease>, sent: Moment, now: Moment) {
        match (step, lease) {
            (Step::Renew(shard) | Step::Acquire(shard), Some(lease)) => {
                self.ledger.renewed(shard, lease, sent, now);
            }
            (Step::KeepMember, Some(lease)) => self.ledger.kept_member(lease, sent, now),
            (Step::RemoveMember, _) => self.ledger.removed_member(),
            (_, Some(lease)) => self.ledger.observe(lease, now.at),
            (_, None) => {}
        }
    }

    fn note_outdated(&mut self, step: &Step, failure: &Failure) {
        match step {
            // It is there, though the list didn't show it.
            Step::Acquire(shard) if self.ledger.shard(*shard).is_none_or(|seen| seen.gone) => {
                self.strays.insert(self.ledger.names.shard(*shard));
            }
            Step::RemoveMember if failure.code() == Some(404) => self.ledger.removed_member(),
            _ => {}
        }
    }

    async fn within<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
        let limit = self.ledger.terms.request;
        match timeout(limit, request).await {
            Ok(answer) => answer.map_err(Failure::Refused),
            Err(_) => Err(Failure::Slow(limit)),
        }
    }
}

/// What became of a number of requests.
struct Written {
    /// At least one changed something.
    changed: bool,
    /// At least one came to nothing, and not because the lease had changed.
    failed: bool,
}
