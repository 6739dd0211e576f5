//! How far a rollout may go: how many pods there may be too many, and too few.

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

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
        let surge = resolve(rolling.and_then(|rolling| rolling.max_surge.as_ref()), replicas, Rounded::Up);
        let unavailable =
            resolve(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), replicas, Rounded::Down);
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { replicas, rolls, surge, unavailable: unavailable.min(replicas) }
    }

    /// How many pods there may be at most.
    pub(super) fn most(&self) -> i32 {
        self.replicas.saturating_add(self.surge)
    }

    /// How many pods must be available at least.
    pub(super) fn least(&self) -> i32 {
        self.replicas - self.unavailable
    }
}

#[derive(Clone, Copy)]
enum Rounded {
    Up,
    Down,
}

fn resolve(given: Option<&IntOrString>, replicas: i32, rounded: Rounded) -> i32 {
    let percent = match given {
        None => return 0,
        Some(IntOrString::Int(count)) => return *count,
        // The server has seen to it that it is a percentage.
        Some(IntOrString::String(text)) => text.strip_suffix('%').and_then(|text| text.parse::<i64>().ok()),
    };
    let hundredths = percent.unwrap_or(0).saturating_mul(replicas.into());
    let up = matches!(rounded, Rounded::Up) && hundredths % 100 != 0;
    i32::try_from(hundredths / 100 + i64::from(up)).unwrap_or(i32::MAX)
}
