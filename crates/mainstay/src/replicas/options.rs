//! How an operator's replicas share the work: what its author chooses, and the periods that follow from it.

use std::time::Duration;

use crate::rbac::Rbac;

use super::shard::Identity;

/// How many replicas of an operator may run, and how they share its parents.
///
/// ```
/// use mainstay::Replicas;
///
/// // One process and no lease: for a laptop, or where something else sees to it that only one runs.
/// let replicas = Replicas::single();
/// // Any number of replicas. One writes, the others stand by with warm caches.
/// let replicas = Replicas::leader("operators");
/// // Any number of replicas that all write, each for its share of eight shards.
/// let replicas = Replicas::sharded("operators", 8);
/// ```
///
/// Choose more shards than there will be replicas: they are the units that move between replicas. The number can
/// be changed by an ordinary rolling update. Replicas with the new number wait until those with the old one have
/// given up their leases, so no parent ever has two writers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replicas {
    pub(super) leases: Option<Leases>,
    identity: Option<String>,
    duration: Duration,
    retry: Option<Duration>,
    margin: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leases {
    pub(super) namespace: String,
    pub(super) shards: u32,
}

/// Options that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidReplicas {
    /// An operator has at least one shard.
    #[error("an operator has at least one shard")]
    NoShards,
    /// A lease's duration is written in seconds.
    #[error("a lease lasts whole seconds, at least two, not {duration:?}")]
    Duration {
        /// What was given.
        duration: Duration,
    },
    /// What is left of the duration is too short to renew in.
    #[error(
        "a lease of {duration:?} that is given up {margin:?} early and tried every {retry:?} cannot be renewed in time"
    )]
    TooTight {
        /// The lease's duration.
        duration: Duration,
        /// The safety margin.
        margin: Duration,
        /// The interval between attempts.
        retry: Duration,
    },
}

impl Replicas {
    /// One process, and no lease at all.
    pub fn single() -> Self {
        Self { leases: None, identity: None, duration: Duration::from_secs(15), retry: None, margin: None }
    }

    /// One replica at a time writes, elected by a Lease in `namespace` that has the operator's name. The others
    /// stand by.
    pub fn leader(namespace: impl Into<String>) -> Self {
        Self::sharded(namespace, 1)
    }

    /// All replicas write, each for the shards whose Leases in `namespace` it holds. Shards are spread evenly over
    /// the replicas that are alive. With one shard this is [`Replicas::leader`].
    pub fn sharded(namespace: impl Into<String>, shards: u32) -> Self {
        Self { leases: Some(Leases { namespace: namespace.into(), shards }), ..Self::single() }
    }

    /// The beginning of this replica's identity, `HOSTNAME` if not given. A random end is always added, so that a
    /// process that is started again is not mistaken for the one before it.
    #[must_use]
    pub fn identity(mut self, name: impl Into<String>) -> Self {
        self.identity = Some(name.into());
        self
    }

    /// How long a lease lasts without renewal: 15 s if not given. Renewed every third of it. It is also how long the
    /// parents of a replica that has died rest until another takes them.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// How often a replica without its share looks for a free lease, and how soon a failed renewal is tried again:
    /// 2 s for a lease of 15 s if not given.
    #[must_use]
    pub fn retry_interval(mut self, interval: Duration) -> Self {
        self.retry = Some(interval);
        self
    }

    /// How long before another replica may take a lease this one stops to write: 2 s for a lease of 15 s if not given.
    /// It covers clocks that go at different speeds and requests that arrive late.
    #[must_use]
    pub fn safety_margin(mut self, margin: Duration) -> Self {
        self.margin = Some(margin);
        self
    }

    /// The namespace of the leases, if there are any.
    pub fn namespace(&self) -> Option<&str> {
        self.leases.as_ref().map(|leases| leases.namespace.as_str())
    }

    /// Adds the permissions that leases need.
    pub(crate) fn allow(&self, rbac: &mut Rbac) {
        if let Some(leases) = &self.leases {
            let verbs = ["get", "list", "create", "update", "delete"];
            rbac.allow_within(&leases.namespace, "coordination.k8s.io", "leases", &verbs);
        }
    }

    /// The number of shards.
    pub fn shards(&self) -> u32 {
        self.leases.as_ref().map_or(1, |leases| leases.shards)
    }

    /// The longest timeout of a write that the fence never refuses while the lease is renewed as it should be: 5 s for a
    /// lease of 15 s. None if there is no lease, so that any will do.
    pub fn longest_write(&self) -> Option<Duration> {
        self.leases.as_ref()?;
        self.terms().ok()?.slack()
    }

    pub(super) fn terms(&self) -> Result<Terms, InvalidReplicas> {
        let duration = self.duration;
        if self.shards() == 0 {
            return Err(InvalidReplicas::NoShards);
        }
        if duration < Duration::from_secs(2)
            || duration.subsec_nanos() != 0
            || duration.as_secs() > i32::MAX as u64
        {
            return Err(InvalidReplicas::Duration { duration });
        }
        let terms = Terms {
            duration,
            margin: self.margin.unwrap_or(duration * 2 / 15),
            renew: duration / 3,
            retry: self.retry.unwrap_or(duration * 2 / 15),
            request: duration / 5,
        };
        if terms.retry.is_zero() || terms.slack().is_none_or(|slack| slack < terms.retry) {
            return Err(InvalidReplicas::TooTight { duration, margin: terms.margin, retry: terms.retry });
        }
        Ok(terms)
    }

    pub(super) fn choose_identity(&self, rng: &mut fastrand::Rng) -> Identity {
        let name = self.identity.clone().or_else(hostname).unwrap_or_else(|| "replica".to_owned());
        Identity::new(&format!("{name}_{:016x}", rng.u64(..)))
    }
}

impl Default for Replicas {
    fn default() -> Self {
        Self::single()
    }
}

fn hostname() -> Option<String> {
    let from_environment = std::env::var("HOSTNAME").ok();
    let name = from_environment.or_else(|| std::fs::read_to_string("/etc/hostname").ok())?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The periods of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terms {
    /// After so long without renewal anyone may take it.
    pub(super) duration: Duration,
    /// So much earlier its holder stops to write.
    pub(super) margin: Duration,
    /// Its holder renews it so often.
    pub(super) renew: Duration,
    /// What failed, or is waited for, is tried so often.
    pub(super) retry: Duration,
    /// No request about leases takes longer.
    pub(super) request: Duration,
}

impl Terms {
    /// What remains of a lease when its renewal is due and the answer comes at the last moment: the longest timeout of
    /// a write that is never refused while renewals succeed.
    pub(super) fn slack(&self) -> Option<Duration> {
        let used = self.margin.saturating_add(self.renew).saturating_add(self.request);
        self.duration.checked_sub(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_leave_time_for_writes_of_five_seconds() {
        let terms = Replicas::leader("a").terms().unwrap();
        assert_eq!(terms.slack(), Some(Duration::from_secs(5)));
        assert_eq!(Replicas::leader("a").longest_write(), terms.slack());
        assert_eq!(Replicas::single().longest_write(), None);
        assert_eq!(terms.retry, Duration::from_secs(2));
    }

    #[test]
    fn options_that_cannot_work_are_refused() {
        let seconds = Duration::from_secs;
        let tight = Replicas::leader("a").safety_margin(seconds(10)).terms().unwrap_err();
        expect_test::expect![
            "a lease of 15s that is given up 10s early and tried every 2s cannot be renewed in time"
        ]
        .assert_eq(&tight.to_string());
        let short = Replicas::leader("a").lease_duration(Duration::from_millis(1500)).terms().unwrap_err();
        expect_test::expect!["a lease lasts whole seconds, at least two, not 1.5s"]
            .assert_eq(&short.to_string());
        assert_eq!(Replicas::sharded("a", 0).terms(), Err(InvalidReplicas::NoShards));
        assert!(Replicas::leader("a").lease_duration(seconds(2)).terms().is_ok());
        assert!(Replicas::leader("a").retry_interval(Duration::ZERO).terms().is_err());
    }

    #[test]
    fn identities_of_two_processes_differ() {
        let replicas = Replicas::leader("a").identity("pod-0");
        let mut rng = fastrand::Rng::with_seed(1);
        let (first, second) = (replicas.choose_identity(&mut rng), replicas.choose_identity(&mut rng));
        assert!(first.as_str().starts_with("pod-0_"));
        assert_ne!(first, second);
    }
}
