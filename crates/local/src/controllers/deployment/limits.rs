//! How far a rollout may go: how many pods there may be too many, and too few.

use k8s_openapi::api::apps::v1::DeploymentSpec;

use crate::controllers::share::{Round, share};

/// What a Deployment wants, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wish {
    /// How many pods.
    pub(super) replicas: i32,
    /// Whether pods are replaced a few at a time, not all at once.
    pub(super) rolls: bool,
    /// By how many there may be more than wanted.
    pub(super) surge: i32,
    /// By how many there may be fewer available than wanted.
    pub(super) unavailable: i32,
}

impl Wish {
    /// A count or a share of the replicas; of a share, surge is rounded up and unavailability down. Should both come to nothing, one
    /// pod may be unavailable: a rollout that may do nothing would never begin.
    pub(super) fn of(spec: &DeploymentSpec) -> Self {
        let replicas = spec.replicas.unwrap_or(1);
        let strategy = spec.strategy.as_ref();
        let rolls = strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("Recreate");
        if !rolls {
            return Self { replicas, rolls, surge: 0, unavailable: 0 };
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
        let surge = surge.map_or(0, |surge| share(surge, replicas, Round::Up));
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let unavailable = unavailable.map_or(0, |unavailable| share(unavailable, replicas, Round::Down));
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { replicas, rolls, surge, unavailable: unavailable.min(replicas) }
    }

    /// How many pods there may be at most.
    pub(super) fn most(&self) -> i32 {
        self.replicas.saturating_add(self.surge)
    }

    /// How many pods must be available at least.
    pub(super) fn least(&self) -> i32 {
        self.replicas.saturating_sub(self.unavailable)
    }
}
