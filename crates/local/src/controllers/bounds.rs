//! How many pods a parent gets now, when it asks for more than there will ever be room for.
//!
//! A number in a spec costs whoever writes it nothing. Pods are made a few hundred at a time, and while too many of those that are there have
//! yet to start, no more are made: that is told by a condition.

use k8s_openapi::api::core::v1::Pod;

use super::pods;

/// Pods that one parent gets, or loses, in one pass.
pub(super) const AT_ONCE_MAX: usize = 500;
/// Pods of one parent that have yet to start. With this many, no more are made.
pub(super) const UNSTARTED_MAX: usize = 1000;
/// Pods of one parent that have not ended.
pub(super) const PODS_MAX: usize = 10_000;

/// The condition of parents whose pods are held back. Kubernetes has it for sets that cannot have their pods.
pub(super) const CONDITION: &str = "ReplicaFailure";
/// Its reason.
pub(super) const REASON: &str = "PodsHeldBack";

/// How many pods a parent has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Crowd {
    /// Those that have not ended and are not about to go.
    pub(super) active: usize,
    /// Those among them that have yet to start.
    pub(super) unstarted: usize,
}

impl Crowd {
    /// Counts pods; those that have ended or go are left out.
    pub(super) fn of<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> Self {
        pods.into_iter().filter(|pod| pods::is_active(pod)).fold(Self::default(), |crowd, pod| Self {
            active: crowd.active + 1,
            unstarted: crowd.unstarted + usize::from(pods::phase(pod) != "Running"),
        })
    }

    /// How many of so many missing pods are made now.
    pub(super) fn room(self, missing: usize) -> usize {
        let unstarted = UNSTARTED_MAX.saturating_sub(self.unstarted);
        missing.min(AT_ONCE_MAX).min(unstarted).min(PODS_MAX.saturating_sub(self.active))
    }

    /// Why none of so many missing pods is made, if none is.
    pub(super) fn held_back(self, missing: usize) -> Option<String> {
        if missing == 0 || self.room(missing) > 0 {
            return None;
        }
        Some(if self.active >= PODS_MAX {
            format!("{PODS_MAX} pods are there, which is as many as one owner can have; more are wanted")
        } else {
            format!(
                "{UNSTARTED_MAX} pods have yet to start; more are wanted and will be made when some of these run"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count() -> impl Strategy<Value = usize> {
        prop_oneof![0..3_usize, 400..2000_usize, 9_900..10_100_usize, Just(usize::MAX), any::<usize>()]
    }

    proptest! {
        #[test]
        fn a_pass_is_bounded_and_whatever_is_not_made_now_is_made_later_or_told(
            missing in count(), active in count(), unstarted in count(),
        ) {
            let crowd = Crowd { active, unstarted: unstarted.min(active) };
            let room = crowd.room(missing);
            prop_assert!(room <= missing && room <= AT_ONCE_MAX);
            prop_assert_eq!(room == 0, missing == 0 || crowd.held_back(missing).is_some());
        }
    }
}
